"""The public producer."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from threading import get_ident
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, Unpack, overload

from kip848_client.config import ProducerConfig, ProducerSettings
from kip848_client.core.produce import (
    AbortRequested,
    BeginRequested,
    CommitRequested,
    EndsSoon,
    Event,
    FlushRequested,
    OffsetsAdded,
    Refused,
    State,
)
from kip848_client.core.shown import repr_at_any_time
from kip848_client.errors import (
    CommitFailed,
    ConfigError,
    Kip848Error,
    LocalProtocolError,
    ProducerFailed,
)
from kip848_client.producer._deliveries import Receipts, RecordMetadata
from kip848_client.producer._engine import Engine, Network, connections
from kip848_client.producer._groups import to_commit
from kip848_client.producer._sending import (
    Partitioner,
    Sending,
    Serializer,
    checked_serializer,
)
from kip848_client.producer._transaction import Transaction
from kip848_client.runtime.arguments import checked_timeout_ms
from kip848_client.runtime.client._runtime import ClientRuntime
from kip848_client.runtime.net._builder import builder_maker

__all__ = ["Producer"]

_log = logging.getLogger("kip848_client")

K = TypeVar("K")
V = TypeVar("V")

_TRANSACTIONAL_STOP_MS: Final = 30_000
"""What is not committed by then is aborted by its coordinator, sooner or later."""


class Producer(Generic[K, V]):
    """Sends records, each once and in order, alone or in transactions.

        async with Producer(bootstrap_servers="localhost:9092") as producer:
            await producer.send_and_wait("orders", b"value", key=b"key")

        async with Producer(transactional_id="billing-1") as producer:
            async with producer.transaction() as txn:
                await txn.send("invoices", b"...")
                await txn.send_offsets(consumer)

    Settings are Kafka's by aiokafka's names, see ``kip848_client.config.ProducerConfig``; a wrong
    one raises ``ConfigError``. Serializers make bytes of keys and values; they get ``None``, too,
    and may be coroutine functions. ``partitioner`` is aiokafka's: it gets the key's bytes, all
    partitions and those that can be written to. Without one keys are spread as by Kafka's Java
    producer, and records without a key stay with one partition for a batch.

    Beside what a method names it may raise ``ConfigError`` for an argument that cannot be meant,
    ``LocalProtocolError`` for a call that is not possible now, and the error that ended the
    producer: ``ProducerFenced`` when another one has taken the transactional id over,
    ``ProducerFailed`` (``stop`` it then, and make a new one).
    """

    @overload
    def __init__(
        self: Producer[bytes, bytes],
        *,
        key_serializer: None = None,
        value_serializer: None = None,
        partitioner: Partitioner | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[Any, bytes],
        *,
        key_serializer: Serializer,
        value_serializer: None = None,
        partitioner: Partitioner | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[bytes, Any],
        *,
        key_serializer: None = None,
        value_serializer: Serializer,
        partitioner: Partitioner | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[Any, Any],
        *,
        key_serializer: Serializer,
        value_serializer: Serializer,
        partitioner: Partitioner | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    def __init__(
        self,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | None = None,
        **settings: Any,
    ) -> None:
        self._config = ProducerConfig.of(settings)
        builder_maker(self._config.compression_type)  # raises where the library is missing
        self._key_serializer = checked_serializer(key_serializer, "key_serializer")
        self._value_serializer = checked_serializer(value_serializer, "value_serializer")
        self._partitioner = checked_serializer(partitioner, "partitioner")
        self._receipts = Receipts()
        self._network: Network = connections
        self._runtime = ClientRuntime(
            "producer", failed=lambda text, cause: ProducerFailed(text, cause=cause)
        )
        self._engine: Engine | None = None
        self._sending: Sending | None = None
        self._bytes_sending: Sending | None = None
        self._unfenced: set[str] = set()
        """Groups whose offsets are committed in nobody's name; that was said."""

    def __del__(self) -> None:
        runtime = getattr(self, "_runtime", None)  # __init__ may have raised
        if runtime is not None and runtime.is_forgotten:
            warnings.warn(
                f"{self!r} was never stopped: records that wait may be lost, and its connections "
                "stay open; await stop(), or use async with",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )

    @repr_at_any_time
    def __repr__(self) -> str:
        return f"<Producer transactional_id={self._config.transactional_id!r} {self._runtime}>"

    @property
    def config(self) -> ProducerConfig:
        """The settings. Frozen."""
        return self._config

    @property
    def was_started(self) -> bool:
        """Whether ``start`` was called, which is possible once."""
        return self._runtime.was_started

    @property
    def was_stopped(self) -> bool:
        """Whether ``stop`` was called: closed is closed, also before ``start``."""
        return self._runtime.was_stopped

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster, as its brokers tell it. ``None`` before ``start``."""
        return None if self._engine is None else self._engine.topics.cluster_id

    @property
    def problems(self) -> tuple[str, ...]:
        """What the producer has waited for for more than a second, and why: a missing topic, a
        leader, a coordinator. Each wait is also logged."""
        return () if self._engine is None else self._engine.producing.problems()

    async def client_instance_id(self, timeout_ms: int | None = None) -> str:
        """What brokers call this producer where they tell of the metrics that it pushes (KIP-714),
        as their logs show it. Waits for it for ``timeout_ms`` (default: ``max_block_ms``).

        Raises ``LocalProtocolError`` for a producer that pushes none (it takes ``metrics`` and the
        extra ``telemetry``), ``UnsupportedVersion`` where brokers take none, ``RequestTimedOut``.
        """
        limit_ms: float = self._config.max_block_ms
        if timeout_ms is not None:
            limit_ms = checked_timeout_ms(timeout_ms)
        return await self._run().observers.telemetry.instance_id(int(limit_ms))

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect. With a transactional id: become the one producer that has it; another one that
        has it is fenced, and what it has open aborted.

        Raises ``BootstrapFailed`` when no broker answers, another ``TransportError`` when one does
        not go on answering, ``CoordinatorUnavailable`` when no producer id can be had within
        ``max_block_ms``, ``BrokerError`` when our credentials are refused; make a new producer
        then. ``LocalProtocolError`` for a second ``start``, and after ``stop``.
        """
        self._runtime.begin()
        engine = self._engine = Engine(self._runtime, self._config, self._network, self._receipts)
        await self._runtime.open(engine.open, lambda: self.stop(timeout_ms=0))
        self._sending = Sending(
            engine, self._key_serializer, self._value_serializer, self._partitioner
        )
        self._bytes_sending = Sending(engine, None, None, None)

    async def stop(self, *, timeout_ms: int | None = None) -> None:
        """Take no more records, send those that wait, abort an open transaction, disconnect.

        Takes at most ``timeout_ms`` (default: ``delivery_timeout_ms``; 30 s with a transactional
        id). What is not acknowledged by then fails with ``DeliveryTimedOut``. Runs to its end even
        if the caller is cancelled; calling it again waits for the end, and the nearer deadline
        counts. Before ``start`` it forbids that.
        """
        limit_ms: float = self._config.deliver_within_ms
        if self._config.transactional_id is not None:
            limit_ms = min(limit_ms, _TRANSACTIONAL_STOP_MS)
        if timeout_ms is not None:
            limit_ms = checked_timeout_ms(timeout_ms)
        engine = self._engine
        if self._runtime.stop_first() or engine is None:
            return
        closing = engine.stop(limit_ms)
        self._sending = None
        await closing.finish()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    # -- records ---------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> Coroutine[Any, Any, asyncio.Future[RecordMetadata]]:
        """Put a record into a batch; what is awaited is a future of its ``RecordMetadata``.

        Waits for the topic's metadata and for room in ``buffer_memory``, each for at most
        ``max_block_ms``. A call that raises or is cancelled has sent nothing. Records are in the
        order in which calls return: where it matters, await one before the next. With a
        transactional id a transaction must be open, and the same one until the call returns.

        Raises ``RecordTooLarge``, what a serializer raises, ``BrokerError`` or ``RequestTimedOut``
        for a topic that is not there, ``DeliveryTimedOut`` when there was no room. The future
        raises ``BrokerError`` when a broker refuses the record, ``DeliveryTimedOut`` after
        ``delivery_timeout_ms``, ``TransactionAborted`` when its transaction was.
        """
        return self._to_send().send(topic, value, key, partition, timestamp_ms, headers)

    async def send_and_wait(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> RecordMetadata:
        """Send a record, and return where it is. Raises what ``send`` and its future raise."""
        return await (
            await self._to_send().send(topic, value, key, partition, timestamp_ms, headers)
        )

    async def flush(self) -> None:
        """Send what waits, without lingering, and return when all records sent before this call
        are acknowledged or have failed. It raises for none: their futures do."""
        await self._run().producing.ask(FlushRequested)

    async def partitions_for(self, topic: str) -> frozenset[int]:
        """The partitions of a topic. Raises ``BrokerError`` or ``RequestTimedOut`` when they
        cannot be had within ``max_block_ms``."""
        return frozenset(range(await self.sending().count(topic)))

    # -- transactions ----------------------------------------------------------------------------

    def transaction(self) -> Transaction[K, V]:
        """A transaction as a block: ``async with producer.transaction() as txn``. See
        ``Transaction``."""
        self._transactional()
        return Transaction(self)

    async def begin_transaction(self) -> None:
        """Open a transaction. Waits for the end of an abort that was left alone. Raises
        ``CoordinatorUnavailable`` when the coordinator cannot be had within ``max_block_ms``."""
        engine, sending = self._transactional(), self.sending()
        if engine.core.transaction_state is State.ABORTING:
            await self.abort_transaction()
        if engine.core.transaction_state is not State.IN_TRANSACTION:
            sending.transaction += 1  # what is being sent to an older one must not get into this
        deadline_ms = engine.deadline_ms()
        await engine.producing.ask(
            lambda ticket: BeginRequested(ticket, deadline_ms),
            # nobody knows that it has begun
            undo=lambda: engine.producing.post(AbortRequested(0, deadline_ms)),
        )

    async def commit_transaction(self) -> None:
        """Wait for all records and offsets of the transaction, and commit it.

        Raises ``TransactionAborted`` when something of it was refused or lost: nothing is
        committed, and ``abort_transaction`` comes next. ``CommitInDoubt`` when nobody knows within
        ``max_block_ms``: call it again, it is the same commit, and so is a call after one that was
        cancelled. ``ProducerFailed`` when this producer cannot go on; where its ``maybe_committed``
        is true, only the committed offsets tell what became of the commit.
        """
        engine = self._transactional()
        deadline_ms = engine.deadline_ms()
        await engine.producing.ask(lambda ticket: CommitRequested(ticket, deadline_ms))

    async def abort_transaction(self) -> None:
        """Drop what waits, and abort the transaction. It begins at once: a caller that is cancelled
        need not call it again. Raises ``RequestTimedOut`` after ``max_block_ms``; it goes on."""
        engine = self._transactional()
        deadline_ms = engine.deadline_ms()
        await engine.producing.ask(lambda ticket: AbortRequested(ticket, deadline_ms))

    async def send_offsets_to_transaction(
        self, offsets: Mapping[Any, Any] | None, group: Any
    ) -> None:
        """Commit ``offsets`` of a group with the transaction: each the offset of the *next* record
        to read, or that and a text. Returns when the group's coordinator has them; they count when
        the transaction is committed.

        ``group`` is the ``Consumer`` that read the records: its membership is part of what is
        committed, so that one that has lost its partitions cannot commit for them; ``offsets`` may
        be ``None`` then: after everything it has handed out. Or its ``group_metadata()``, taken
        together with the offsets. Or the group's name: in nobody's name, which is not safe.

        Raises ``CommitFailed`` for partitions that are not the consumer's (any more), and
        ``TransactionAborted`` when the coordinator refuses; the transaction can only be aborted
        then. Look at the consumer's assignment after that, and seek to the committed offsets.
        """
        engine = self._transactional()
        try:
            member, found = to_commit(group, offsets)
        except CommitFailed as err:
            engine.producing.post(Refused(err))
            raise
        if isinstance(group, str) and group not in self._unfenced:
            self._unfenced.add(group)
            _log.warning(
                "offsets of group %r are committed in nobody's name: a consumer that has lost its "
                "partitions is not found out; pass the Consumer, or its group_metadata()",
                group,
            )

        def added(ticket: int) -> Event:
            return OffsetsAdded(ticket, member, found)

        await engine.producing.ask(added)

    # -- inside ----------------------------------------------------------------------------------

    def ends_soon(self) -> None:
        """Called before ``stop``: no longer wait for topics that do not exist."""
        self.check_home()
        with suppress(Kip848Error):  # it has already ended
            self._run().producing.post(EndsSoon())

    def check_home(self) -> None:
        """Raise ``LocalProtocolError`` outside of the event loop, thread and process in which the
        producer was started. Every call checks this."""
        self._runtime.check_home()

    def sending(self) -> Sending:
        """Accepts records; for transactions."""
        self._run()
        assert self._sending is not None, "_run() has seen that it runs"
        return self._sending

    def bytes_sending(self) -> Sending:
        """Takes records that are bytes already, past serializers and partitioner."""
        self._run()
        assert self._bytes_sending is not None, "_run() has seen that it runs"
        return self._bytes_sending

    def _to_send(self) -> Sending:
        """Accepts records. A call from another loop fails when it is awaited; a call from another
        thread, which may have no loop, fails at once."""
        sending = self._sending
        if sending is None or get_ident() != sending.thread:
            return self.sending()
        return sending

    def _run(self) -> Engine:
        self._runtime.check_started()
        engine = self._engine
        if engine is None or self._runtime.was_stopped:
            raise self._runtime.closed()
        if self._sending is None:
            raise LocalProtocolError("the producer is still starting; await start() first")
        return engine

    def _transactional(self) -> Engine:
        if self._config.transactional_id is None:
            raise ConfigError("transactions need a transactional_id; make the producer with one")
        return self._run()

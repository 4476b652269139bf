"""The public producer class."""

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
from kip848_client.core.short import repr_at_any_time
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

__all__ = ["Producer"]

_log = logging.getLogger("kip848_client")

K = TypeVar("K")
V = TypeVar("V")

_TRANSACTIONAL_STOP_MS: Final = 30_000
"""The longest default stop of a transactional producer. The coordinator aborts an uncommitted
transaction sooner or later."""


class Producer(Generic[K, V]):
    """Sends records, each once and in order, alone or in transactions (KIP-98).

    ::

        async with Producer(bootstrap_servers="localhost:9092") as producer:
            await producer.send_and_wait("orders", b"value", key=b"key")

        async with Producer(transactional_id="billing-1") as producer:
            async with producer.transaction() as txn:
                await txn.send("invoices", b"...")
                await txn.send_offsets(consumer)

    All methods with an effect may also raise these errors:

    - ``ConfigError``: an argument has a wrong type or value.
    - ``LocalProtocolError``: the producer is not started or is stopped, no transaction is open
      although one must be, or the call comes from another event loop, thread or process.
    - ``ProducerFenced``: another producer has taken over the transactional id.
    - ``ProducerFailed``: the producer cannot continue. Call ``stop``, and create a new one.

    Args:
        key_serializer: Returns the bytes of a key. It is also called with ``None``, and may be a
            coroutine function. Default: keys are bytes or ``None``.
        value_serializer: The same for values.
        partitioner: Chooses the partition of a record that names none. It has aiokafka's
            parameters: the key's bytes, the numbers of all partitions, and those of the partitions
            that have a leader (possibly none). Default: a record with a key goes to the same
            partition as with Kafka's Java producer, and records without a key stay with one
            partition for a batch (KIP-480).
        **settings: The fields of ``kip848_client.config.ProducerConfig``, which explains each. They
            are Kafka's, by aiokafka's names.

    Raises:
        ConfigError: A setting is unknown or wrong, or a function is not callable.
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
        """Groups whose offsets are committed without a member, and for which this was logged."""

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
        """The settings, immutable."""
        return self._config

    @property
    def was_started(self) -> bool:
        """Whether ``start`` was called; it can be called only once."""
        return self._runtime.was_started

    @property
    def was_stopped(self) -> bool:
        """Whether ``stop`` was called, even before ``start``."""
        return self._runtime.was_stopped

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster, as returned by its brokers. ``None`` before ``start``."""
        return None if self._engine is None else self._engine.topics.cluster_id

    @property
    def problems(self) -> tuple[str, ...]:
        """What the producer has been waiting for for more than a second, and why.

        For example a missing topic, a leader or a coordinator. Each wait is also logged.
        """
        return () if self._engine is None else self._engine.producing.problems()

    async def client_instance_id(self, timeout_ms: int | None = None) -> str:
        """Get the id under which brokers report this client's metrics (KIP-714).

        Waits until a broker has assigned it (Kafka's GetTelemetrySubscriptions). The text is as in
        brokers' logs.

        Args:
            timeout_ms: How long to wait, in milliseconds. Default: ``max_block_ms``.

        Returns:
            The id as URL-safe Base64 without padding.

        Raises:
            LocalProtocolError: This producer pushes no metrics. Pushing requires the setting
                ``metrics`` and the extra ``telemetry``.
            UnsupportedVersion: The brokers do not accept metrics.
            RequestTimedOut: No broker has answered in time.
        """
        limit_ms: float = self._config.max_block_ms
        if timeout_ms is not None:
            limit_ms = checked_timeout_ms(timeout_ms)
        return await self._run().observers.telemetry.instance_id(int(limit_ms))

    # -- life cycle ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, and get a producer id (Kafka's InitProducerId).

        With a ``transactional_id`` it becomes the only producer with that id: an older one is
        fenced, and its open transaction is aborted. If it raises, everything it had opened is
        closed: create a new producer.

        Raises:
            BootstrapFailed: No broker answers.
            TransportError: A broker stopped answering.
            CoordinatorUnavailable: No producer id was assigned within ``max_block_ms``.
            BrokerError: The brokers refuse the credentials or the producer id.
            LocalProtocolError: ``start`` or ``stop`` was called before, or ``stop`` while it ran.
        """
        self._runtime.begin()
        engine = self._engine = Engine(self._runtime, self._config, self._network, self._receipts)
        await self._runtime.open(engine.open, lambda: self.stop(timeout_ms=0))
        self._sending = Sending(
            engine, self._key_serializer, self._value_serializer, self._partitioner
        )
        self._bytes_sending = Sending(engine, None, None, None)

    async def stop(self, *, timeout_ms: int | None = None) -> None:
        """Send all queued records, abort an open transaction, and disconnect.

        No records are accepted after the call. Records not acknowledged within the time limit fail
        with ``DeliveryTimedOut``. Once begun, it runs to its end even if the caller is cancelled. A
        second call waits for the first, and the nearer deadline counts. A call before ``start``
        forbids ``start``.

        Args:
            timeout_ms: The total time limit, in milliseconds. Default: ``delivery_timeout_ms``;
                with a ``transactional_id`` at most 30 s.

        Raises:
            ConfigError: ``timeout_ms`` is not a number.
            LocalProtocolError: The call comes from another event loop, thread or process.
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
        """Put a record into a batch (Kafka's Produce).

        Await the call: it waits for the topic's metadata and for room in ``buffer_memory``, each
        for at most ``max_block_ms``. A call that raises or is cancelled has sent nothing. Records
        are in the order in which the calls return; if order matters, await one call before the
        next. With a ``transactional_id`` a transaction must be open, and must stay open until the
        call returns.

        Args:
            topic: Name of the topic.
            value: An argument for the ``value_serializer``; without one, bytes or ``None`` (a
                tombstone in compacted topics).
            key: An argument for the ``key_serializer``; without one, bytes or ``None``.
            partition: Number of the partition. Default: chosen by the partitioner.
            timestamp_ms: Milliseconds since 1970. Default: the time of the call.
            headers: Pairs of a name and bytes (or ``None``).

        Returns:
            A coroutine that returns a future of the record's ``RecordMetadata``. The future raises
            ``BrokerError`` when a broker refuses the record, ``DeliveryTimedOut`` after
            ``delivery_timeout_ms``, and ``TransactionAborted`` when its transaction was aborted.

        Raises:
            RecordTooLarge: The record is larger than ``max_request_size`` or ``buffer_memory``.
            DeliveryTimedOut: There was no room within ``max_block_ms``.
            RequestTimedOut: The topic's metadata did not arrive within ``max_block_ms``.
            BrokerError: The brokers refuse the topic.
            ConfigError: The key, value, headers or partition cannot be sent.
            LocalProtocolError: No transaction is open, or it ended meanwhile.
            Exception: Any error of a serializer or the partitioner.
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
        """Send a record, and wait for its acknowledgement.

        Args:
            topic: Name of the topic.
            value: As for ``send``.
            key: As for ``send``.
            partition: Number of the partition. Default: chosen by the partitioner.
            timestamp_ms: Milliseconds since 1970. Default: the time of the call.
            headers: Pairs of a name and bytes (or ``None``).

        Returns:
            Where the record is in the log.

        Raises:
            Kip848Error: The errors of ``send`` and its future.
        """
        return await (
            await self._to_send().send(topic, value, key, partition, timestamp_ms, headers)
        )

    async def flush(self) -> None:
        """Send queued records without lingering, and wait for all records sent so far.

        Returns when each is acknowledged or has failed. It does not raise for records that failed:
        their futures do.

        Raises:
            ProducerFailed: The producer cannot continue.
            LocalProtocolError: The producer does not run.
        """
        await self._run().producing.ask(FlushRequested)

    async def partitions_for(self, topic: str) -> frozenset[int]:
        """Get the partitions of a topic (Kafka's Metadata).

        Args:
            topic: Name of the topic.

        Returns:
            Their numbers.

        Raises:
            RequestTimedOut: The metadata did not arrive within ``max_block_ms``.
            BrokerError: The brokers refuse the topic.
        """
        return frozenset(range(await self.sending().count(topic)))

    # -- transactions ----------------------------------------------------------------------------

    def transaction(self) -> Transaction[K, V]:
        """Create a transaction as a block: ``async with producer.transaction() as txn``.

        Returns:
            The block, for one transaction. It begins when the block is entered.

        Raises:
            ConfigError: The producer has no ``transactional_id``.
            LocalProtocolError: The producer does not run.
        """
        self._transactional()
        return Transaction(self)

    async def begin_transaction(self) -> None:
        """Open a transaction. End it with ``commit_transaction`` or ``abort_transaction``.

        First waits for the end of an abort that is still in progress.

        Raises:
            CoordinatorUnavailable: The transaction coordinator is not available within
                ``max_block_ms``.
            ConfigError: The producer has no ``transactional_id``.
            LocalProtocolError: A transaction is open.
        """
        engine, sending = self._transactional(), self.sending()
        if engine.core.transaction_state is State.ABORTING:
            await self.abort_transaction()
        if engine.core.transaction_state is not State.IN_TRANSACTION:
            sending.transaction += 1  # a send for an older transaction must not get into this one
        deadline_ms = engine.deadline_ms()
        await engine.producing.ask(
            lambda ticket: BeginRequested(ticket, deadline_ms),
            # the application does not know that it has begun
            undo=lambda: engine.producing.post(AbortRequested(0, deadline_ms)),
        )

    async def commit_transaction(self) -> None:
        """Wait for the transaction's records and offsets, and commit it (EndTxn).

        A call after one that was cancelled continues the same commit.

        Raises:
            TransactionAborted: Something of the transaction was refused or lost. Nothing is
                committed; call ``abort_transaction`` next.
            CommitInDoubt: The outcome is not known after ``max_block_ms``. Call it again; that
                continues the same commit.
            ProducerFailed: This producer cannot continue. If the error's ``maybe_committed`` is
                true, only the committed offsets show whether the commit took place.
            LocalProtocolError: No transaction is open.
        """
        engine = self._transactional()
        deadline_ms = engine.deadline_ms()
        await engine.producing.ask(lambda ticket: CommitRequested(ticket, deadline_ms))

    async def abort_transaction(self) -> None:
        """Drop queued records, and abort the transaction (Kafka's EndTxn).

        The abort begins at once and continues if the caller is cancelled: no second call is needed.

        Raises:
            RequestTimedOut: The coordinator did not answer within ``max_block_ms``; the abort
                continues.
            LocalProtocolError: No transaction is open.
        """
        engine = self._transactional()
        deadline_ms = engine.deadline_ms()
        await engine.producing.ask(lambda ticket: AbortRequested(ticket, deadline_ms))

    async def send_offsets_to_transaction(
        self, offsets: Mapping[Any, Any] | None, group: Any
    ) -> None:
        """Commit a group's offsets with the transaction (KIP-447).

        Returns when the group coordinator has them (Kafka's AddOffsetsToTxn and TxnOffsetCommit);
        they take effect when the transaction is committed.

        Args:
            offsets: By partition: the offset of the *next* record to read, or a tuple of that and a
                text. ``None`` with a ``Consumer``: the positions after all records it has returned.
            group: The ``Consumer`` that read the records. The coordinator checks its membership, so
                a consumer that has lost its partitions cannot commit for them. Or its
                ``group_metadata()``, taken together with the offsets. Or the group's name, which is
                unsafe: no membership is checked.

        Raises:
            CommitFailed: A partition is not, or no longer, assigned to the consumer. The
                transaction can only be aborted. After that check the consumer's assignment, and
                seek to the committed offsets.
            TransactionAborted: The coordinator refused; do the same.
            ConfigError: ``group`` or ``offsets`` is of the wrong type.
            LocalProtocolError: No transaction is open.
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
                "offsets of group %r are committed without a member id, so the coordinator cannot "
                "refuse a consumer that has lost its partitions; pass the Consumer, or its "
                "group_metadata()",
                group,
            )

        def added(ticket: int) -> Event:
            return OffsetsAdded(ticket, member, found)

        await engine.producing.ask(added)

    # -- internals -------------------------------------------------------------------------------

    def ends_soon(self) -> None:
        """Announce that ``stop`` follows, so that calls no longer wait for topics that do not
        exist.

        Raises:
            LocalProtocolError: The call comes from another event loop, thread or process.
        """
        self.check_home()
        with suppress(Kip848Error):  # it has already ended
            self._run().producing.post(EndsSoon())

    def check_home(self) -> None:
        """Check that the caller is in the producer's event loop, thread and process.

        All methods with an effect call it. Before ``start`` any place is accepted.

        Raises:
            LocalProtocolError: The producer was started in another event loop, thread or process.
        """
        self._runtime.check_home()

    def sending(self) -> Sending:
        """Get the object that accepts records; for ``Transaction``, not for applications.

        Returns:
            The ``Sending`` of this producer.

        Raises:
            LocalProtocolError: The producer does not run.
        """
        self._run()
        assert self._sending is not None, "_run() has seen that it runs"
        return self._sending

    def bytes_sending(self) -> Sending:
        """Get the object that accepts bytes, without serializers and partitioner; for this
        library's own classes.

        Returns:
            A ``Sending`` for bytes.

        Raises:
            LocalProtocolError: The producer does not run.
        """
        self._run()
        assert self._bytes_sending is not None, "_run() has seen that it runs"
        return self._bytes_sending

    def _to_send(self) -> Sending:
        """Return the object that accepts records. A call from another loop fails when it is
        awaited; a call from another thread, which may have no loop, fails at once."""
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

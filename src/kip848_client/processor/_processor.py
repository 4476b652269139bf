"""``ExactlyOnceProcessor``: the public class."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Generic, Literal, Self, TypeVar, overload
from weakref import WeakSet

from kip848_client.consumer import Consumer
from kip848_client.core.short import repr_at_any_time, short
from kip848_client.errors import ConfigError, Kip848Error, LocalProtocolError
from kip848_client.observe.core.watching import ConsumerHealth
from kip848_client.processor._handlers import Function, RecordHandler
from kip848_client.processor._processor_driver import ProcessorDriver
from kip848_client.processor.core._core import ProcessorCore
from kip848_client.processor.core._model import ProcessorSettings
from kip848_client.processor.core._records import Outputs, ProducerRecord
from kip848_client.producer import Producer
from kip848_client.records import Record
from kip848_client.runtime._backoff import jittered
from kip848_client.runtime._signals import checked_signals, on_first_signal
from kip848_client.runtime.arguments import (
    checked_count,
    checked_timeout_ms,
    checked_topic,
    checked_topics,
)
from kip848_client.runtime.client._runtime import ClientRuntime

__all__ = ["ExactlyOnceProcessor", "ProducerRecord"]

K = TypeVar("K")
V = TypeVar("V")

_Results = Outputs | Awaitable[Outputs] | AsyncIterable[ProducerRecord]

_STOP_TIMEOUT_MS: Final = 30_000
_PROCESSING_SHARE: Final = 0.5
"""The share of the stop timeout for the open transaction. The rest is for closing the clients."""
_GRACE_S: Final = 1.0
_CLAIMED: Final[WeakSet[Consumer[Any, Any] | Producer[Any, Any]]] = WeakSet()
"""The clients of processors whose ``start`` was called. The clients themselves start slightly
later."""


class ExactlyOnceProcessor(Generic[K, V]):
    """Read records, call a function with each, and write its results, exactly once.

    Each record counts once, through crashes, pauses and rebalances.

    ::

        def invoice(order: Record) -> ProducerRecord | None:
            return ProducerRecord("invoices", key=order.key, value=...)

        async with ExactlyOnceProcessor(
            "orders",
            invoice,
            consumer=Consumer(
                bootstrap_servers="...",
                group_id="billing",
                enable_auto_commit=False,
                isolation_level="read_committed",
            ),
            producer=Producer(bootstrap_servers="...", transactional_id="billing-1"),
        ) as processor:
            await processor.run()

    The outputs of the function and the offsets of its records are committed in one transaction
    (KIP-98, KIP-447), or neither is. A reader with ``isolation_level="read_committed"`` sees each
    output once. After an aborted transaction the function is called again for the same records:
    other effects of the function are not undone.

    A transaction is closed only after the function has finished its current record. If that takes
    longer than the producer's ``transaction_timeout_ms``, the coordinator aborts the transaction,
    and its records are repeated with one transaction per record.

    With a ``dead_letter_topic``, these records go there, in the same transaction and without
    outputs:

    - A record whose function raises; with ``batch=True`` every record of the batch.
    - A record with an output that can never be sent, because it is too large or a serializer
      refuses it. The transaction is aborted first, and repeated.
    - A record that the consumer cannot read (``RecordUnreadable``). If its fields cannot be
      separated, the value has all its bytes.

    A dead letter keeps key, value, timestamp and headers. These headers are added, all text:
    ``kip848.errors.topic``, ``kip848.errors.partition``, ``kip848.errors.offset``,
    ``kip848.errors.exception.class.name`` and ``kip848.errors.exception.message``. Without a
    ``dead_letter_topic``, ``run`` raises the function's error, with a note that has the record's
    place, and nothing of the transaction is committed.

    The processor starts, subscribes and stops both clients; do not use them elsewhere.

    Args:
        topics: One name or several.
        function: Called with a record. Returns ``None``, a ``ProducerRecord`` or an iterable of
            them. It may be a coroutine function, a generator or an async generator. A plain
            function runs in the event loop: it must not block.
        consumer: Not started and not subscribed, with a ``group_id``, ``enable_auto_commit=False``
            and ``isolation_level="read_committed"``. With a ``dead_letter_topic`` it must have no
            deserializers: decode in the function, so that a record that cannot be decoded becomes a
            dead letter as well.
        producer: Not started, with a ``transactional_id`` that no other running processor has, and
            that stays the same when this one starts again (``"billing-" + group_instance_id``).
            Then a transaction that a crash has left open is aborted at the next start, and
            otherwise only after ``transaction_timeout_ms``. Choose that at most as long as the
            group's session timeout, and longer than ``commit_interval_ms`` plus the time that the
            function needs for the records of that interval.
        batch: Call the function with a list of records of one partition, as many as are buffered.
        max_records: At most this many records per transaction.
        commit_interval_ms: A transaction is closed this many milliseconds after the function got
            its first record. Readers see the outputs that much later. Must be less than
            ``transaction_timeout_ms``.
        dead_letter_topic: Name of a topic that the processor does not read. Default: none.

    Raises:
        ConfigError: An argument, or a setting of a client, is unsuitable.
    """

    @overload
    def __init__(
        self,
        topics: str | Iterable[str],
        function: Callable[[Record[K, V]], _Results],
        *,
        consumer: Consumer[K, V],
        producer: Producer[Any, Any],
        batch: Literal[False] = False,
        max_records: int = 500,
        commit_interval_ms: int = 100,
        dead_letter_topic: str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        topics: str | Iterable[str],
        function: Callable[[list[Record[K, V]]], _Results],
        *,
        consumer: Consumer[K, V],
        producer: Producer[Any, Any],
        batch: Literal[True],
        max_records: int = 500,
        commit_interval_ms: int = 100,
        dead_letter_topic: str | None = None,
    ) -> None: ...
    def __init__(
        self,
        topics: str | Iterable[str],
        function: Function,
        *,
        consumer: Consumer[K, V],
        producer: Producer[Any, Any],
        batch: bool = False,
        max_records: int = 500,
        commit_interval_ms: int = 100,
        dead_letter_topic: str | None = None,
    ) -> None:
        self._topics = checked_topics([topics] if isinstance(topics, str) else topics)
        if not self._topics:
            raise ConfigError("a processor reads at least one topic")
        if not callable(function):
            raise ConfigError(f"function is called with each record; {short(function)} cannot be")
        self._function = function
        self._consumer = _checked_consumer(consumer)
        self._producer = _checked_producer(producer)
        self._batch = _checked_flag(batch, "batch")
        self._max_records = checked_count(max_records, "max_records")
        self._commit_interval_ms = _checked_interval(commit_interval_ms, producer)
        self._dead_letter_topic = _checked_dead_letters(dead_letter_topic, consumer)
        if self._dead_letter_topic in self._topics:
            raise ConfigError(f"{dead_letter_topic} is read by the processor: take another topic")
        self._runtime: Final = ClientRuntime("processor")
        self._driver: ProcessorDriver | None = None
        self._is_stop_requested = self._has_run = False

    @repr_at_any_time
    def __repr__(self) -> str:
        topics = ", ".join(sorted(self._topics))
        return f"<ExactlyOnceProcessor {topics} by {self._producer!r}>"

    # -- life cycle ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the producer, then the consumer, which joins the group.

        The producer fences an older one with the same ``transactional_id`` and aborts its open
        transaction. If this raises anything other than ``LocalProtocolError``, both clients are
        stopped: create new ones, and a new processor. Call ``run`` next.

        Raises:
            Kip848Error: The errors of ``Producer.start`` and ``Consumer.start``.
            ConfigError: Consumer and producer are in different clusters.
            LocalProtocolError: ``start`` or ``stop`` was called before, or a client is used
                elsewhere already; the clients are not touched then.
        """
        self._runtime.require_new()
        self._check_clients()
        self._runtime.begin()
        driver = self._driver = ProcessorDriver(
            ProcessorCore(self._settings(), jittered),
            self._consumer,
            self._producer,
            RecordHandler(
                self._function,
                self._producer,
                batch=self._batch,
                dead_letter_topic=self._dead_letter_topic,
            ),
            self._runtime.clock,
        )
        self._consumer.subscribe(self._topics, listener=driver)
        await self._runtime.open(self._open, self.stop)

    async def _open(self) -> None:
        await self._producer.start()
        await self._consumer.start()
        self._check_cluster()

    def _check_clients(self) -> None:
        """Claim the clients. Clients that are used elsewhere are not touched."""
        for client in (self._consumer, self._producer):
            if client.was_started or client.was_stopped or client in _CLAIMED:
                raise LocalProtocolError(
                    f"a client can be started once, and stopped once, and {client!r} was: give the "
                    "processor a consumer and a producer of its own, and leave them alone"
                )
        if self._consumer.subscription() or self._consumer.assignment():
            raise LocalProtocolError(
                f"{self._consumer!r} has got something to read already, from another processor "
                "perhaps: give the processor a consumer of its own, and do not subscribe it"
            )
        _CLAIMED.update((self._consumer, self._producer))

    def _check_cluster(self) -> None:
        """Check that both clients use one cluster: offsets are committed where the outputs are."""
        read, written = self._consumer.cluster_id, self._producer.cluster_id
        if read is not None and written is not None and read != written:
            raise ConfigError(
                f"the consumer and the producer of a processor are in two clusters ({read} and "
                f"{written}), and a transaction is in one: check their bootstrap_servers"
            )

    def _settings(self) -> ProcessorSettings:
        return ProcessorSettings(
            max_records=self._max_records,
            commit_interval_ms=self._commit_interval_ms,
            dead_letters=self._dead_letter_topic is not None,
            revocation_patience_ms=self._consumer.config.callback_timeout_ms // 2,
        )

    async def run(self, *, stop_on: Iterable[int] = ()) -> None:
        """Process records until ``stop`` or ``request_stop`` is called.

        An error also ends it. Can be called once. Failed transactions are logged and repeated after
        a pause, whatever brokers, leaders and the group do. Errors that repetition cannot fix are
        raised. If it is cancelled, ``stop`` aborts the open transaction. After that, and after an
        error, the next owner of the partitions reads the records again.

        Args:
            stop_on: Signals that call ``request_stop``, as in ``(signal.SIGTERM, signal.SIGINT)``.
                A second signal has the effect that it had before ``run`` was called. This replaces
                a handler set with ``loop.add_signal_handler``; in that case call ``request_stop``
                in your handler instead.

        Raises:
            Exception: Any error of the function, without a ``dead_letter_topic``.
            ProducerFenced: Another producer has the transactional id now.
            ProducerFailed: The producer cannot continue.
            TransactionAborted: A broker refused an output permanently, or the topic of an output
                did not exist for ``delivery_timeout_ms``.
            TransactionTimedOut: The outputs of one record alone could not be sent within
                ``transaction_timeout_ms``, three times in a row.
            BrokerError: An output cannot be sent.
            RecordTooLarge: An output is too large.
            RecordUnreadable: A record cannot be read, and there is no ``dead_letter_topic``; or
                bytes are damaged, or a batch decompresses to too much data. Other errors of
                ``Consumer.getmany`` are raised as well.
            CommitInDoubt: The processor was stopped, or the producer failed, before the last commit
                was answered.
            ConfigError: A value in ``stop_on`` is not a signal.
            LocalProtocolError: It was called before, ``start`` was not, or signals cannot be
                handled here (not in the main thread).
        """
        signals = checked_signals(stop_on)
        self._runtime.check_started()
        driver = self._driver
        if self._has_run:
            raise LocalProtocolError("a processor can be run once; make a new one")
        if driver is None or self._runtime.was_stopped or self._is_stop_requested:
            return  # a signal may arrive before
        with on_first_signal(signals, self.request_stop):
            self._has_run = True
            await driver.run()

    def request_stop(self) -> None:
        """Ask ``run`` to return soon. Returns at once.

        The function finishes its current record or batch, and the transaction is committed, or
        aborted after 15 s. You may call it from a signal handler, from any thread, from the
        function, before ``run``, and more than once. After ``run`` has returned, call ``stop`` or
        leave the block to leave the group and disconnect. Raises nothing.
        """
        self._is_stop_requested = True
        if self._driver is not None:
            self._driver.stop_soon(int(_STOP_TIMEOUT_MS * _PROCESSING_SHARE))

    async def stop(self, *, timeout_ms: int | None = None) -> None:
        """Finish the function's record or batch, commit, leave and disconnect.

        ``run`` returns. Once begun, it runs to its end even if the caller is cancelled. A second
        call waits for the first. A call before ``start`` forbids ``start``.

        Args:
            timeout_ms: The total time limit, in milliseconds; half of it is for the function and
                the commit. A transaction that is not complete by then is aborted, and its records
                are read again. Default: 30 s.

        Raises:
            LocalProtocolError: The function calls it; call it in another task.
            ConfigError: ``timeout_ms`` is not a number.
        """
        limit_ms = _STOP_TIMEOUT_MS if timeout_ms is None else checked_timeout_ms(timeout_ms)
        driver = self._driver
        if self._runtime.stop_first() or driver is None:
            return
        if driver.in_function:
            raise LocalProtocolError(
                "stop() would wait for the function that calls it; call it in another task"
            )
        if not self._runtime.was_stopped:
            driver.stop(self._runtime.clock.now_ms() + int(limit_ms * _PROCESSING_SHARE))
        leave = (self._end_run, self._stop_producer, self._stop_consumer)
        await self._runtime.close(limit_ms, leave).finish()

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

    def health(self) -> ConsumerHealth:
        """Get the processor's health. Raises nothing.

        May be called in any state and in any thread.

        Returns:
            The health of its consumer, with the producer's waits, such as a missing topic, added to
            ``problems``.
        """
        found: ConsumerHealth = self._consumer.health()
        return replace(found, waits=(*found.waits, *self._producer.problems))

    # -- closing ---------------------------------------------------------------------------------

    def _left_ms(self) -> int:
        return int(self._runtime.left_s() * 1000)

    async def _end_run(self) -> None:
        assert self._driver is not None, "stop() has seen to that"
        if self._has_run:
            left_s = self._left_ms() / 1000 * _PROCESSING_SHARE + _GRACE_S
            try:
                async with asyncio.timeout(left_s):
                    await self._driver.over.wait()
            except TimeoutError:
                raise Kip848Error(
                    "the function does not end although it was cancelled; it is not waited for"
                ) from None

    async def _stop_producer(self) -> None:
        """Stop the producer before the consumer leaves, because then no record it has read is in an
        open transaction."""
        await self._producer.stop(timeout_ms=self._left_ms() // 2)

    async def _stop_consumer(self) -> None:
        await self._consumer.stop(timeout_ms=self._left_ms())


def _checked_consumer(consumer: Any) -> Any:
    if not isinstance(consumer, Consumer):
        raise ConfigError(f"consumer is a Consumer that is not started, not {short(consumer)}")
    config = consumer.config
    wrong: list[str] = []
    if config.group_id is None:
        wrong.append("group_id: offsets are committed for a group")
    if config.enable_auto_commit:
        wrong.append("enable_auto_commit=False: offsets are committed with the transaction")
    if config.isolation_level != "read_committed":
        wrong.append('isolation_level="read_committed": what was aborted must not be processed')
    if wrong:
        raise ConfigError(f"the consumer of a processor needs {'; '.join(wrong)}")
    if consumer.subscription() or consumer.assignment():
        raise ConfigError("give the topics to the processor: it subscribes for the consumer")
    return consumer


def _checked_producer(producer: Any) -> Any:
    if not isinstance(producer, Producer):
        raise ConfigError(f"producer is a Producer that is not started, not {short(producer)}")
    if producer.config.transactional_id is None:
        raise ConfigError(
            "the producer of a processor needs a transactional_id: one that no other running "
            "processor has, and that stays the same when this one starts again"
        )
    return producer


def _checked_interval(value: Any, producer: Producer[Any, Any]) -> int:
    interval_ms = checked_count(value, "commit_interval_ms")
    limit_ms = producer.config.transaction_timeout_ms
    if interval_ms >= limit_ms:
        raise ConfigError(
            f"commit_interval_ms={interval_ms} keeps transactions open for longer than they may "
            f"be: the coordinator aborts each after the producer's transaction_timeout_ms="
            f"{limit_ms}. Take a shorter commit_interval_ms, or a producer with a longer "
            "transaction_timeout_ms"
        )
    return interval_ms


def _checked_dead_letters(topic: Any, consumer: Consumer[Any, Any]) -> str | None:
    if topic is None:
        return None
    decoding = consumer.decoding
    if decoding.key_deserializer is not None or decoding.value_deserializer is not None:
        raise ConfigError(
            "with a dead_letter_topic the consumer has no deserializers: a dead letter has the "
            "bytes that were read. Decode in the function; what cannot be decoded is a dead "
            "letter then, too"
        )
    return checked_topic(topic)


def _checked_flag(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{name} is True or False, not {short(value)}")

"""``ExactlyOnceProcessor``: the class that users hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Generic, Literal, Self, TypeVar, overload

from kip848_client.consumer import Consumer
from kip848_client.core.shown import repr_at_any_time, shown
from kip848_client.errors import ConfigError, Kip848Error, LocalProtocolError
from kip848_client.observe.core.watching import ConsumerHealth
from kip848_client.processor._processor_driver import ProcessorDriver
from kip848_client.processor._working import Function, Working
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
"""Of the time to stop: for the transaction that is open. The rest is for closing the clients."""
_GRACE_S: Final = 1.0


class ExactlyOnceProcessor(Generic[K, V]):
    """Reads records, lets a function make others of them, and writes these: each record counts
    once, whatever crashes, is paused or rebalanced.

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

    What the function returns and the offsets of what it was given are committed in one transaction,
    or neither is; a reader with ``isolation_level="read_committed"`` sees each output once. The
    function itself may be called again for the same record, after a transaction was aborted: what
    it does beside its outputs is not undone.

    ``function`` gets a record and returns nothing (``None``), a ``ProducerRecord`` or an iterable
    of them; it may be a coroutine function, a generator, or an async generator. A function that is
    not async runs in the event loop: it must not block. With ``batch=True`` it gets a list of
    records of one partition, as many as are there.

    A transaction has at most ``max_records`` records, and is closed ``commit_interval_ms`` after
    the function got the first of them: readers see outputs that much later. The record that the
    function has then is waited for. Where that takes longer than ``transaction_timeout_ms``, the
    coordinator aborts the transaction; its records are repeated with a transaction for each.

    A record whose function raises goes to ``dead_letter_topic``, in the same transaction and none
    of its outputs with it; with ``batch=True`` every record of the batch does. So does one with an
    output that can never be sent: one that is too large, or that a serializer refuses; the
    transaction is aborted for that and repeated. So does a record that the consumer cannot read
    (``RecordUnreadable``), with all its bytes as the value if its fields make no sense. Key, value,
    time and headers stay as they were, with these headers added, all text: ``kip848.errors.topic``,
    ``kip848.errors.partition``, ``kip848.errors.offset``, ``kip848.errors.exception.class.name``
    and ``kip848.errors.exception.message``. The consumer must be one without deserializers then:
    decode in the function, so that what cannot be decoded is a dead letter, too. Without a
    ``dead_letter_topic`` ``run`` raises what the function raised, with a note that says where, and
    nothing of the transaction is committed.

    The clients are the processor's: it starts and stops them and subscribes. The consumer needs a
    ``group_id``, ``enable_auto_commit=False`` and ``isolation_level="read_committed"``, the
    producer a ``transactional_id`` that no other running processor has and that stays the same when
    this one starts again (``"billing-" + group_instance_id``): a transaction that a crash has left
    open is aborted then, and else only after ``transaction_timeout_ms``. Let that be no longer than
    the group's session timeout, longer than ``commit_interval_ms`` and than the function takes for
    what it gets in that time.

    Raises ``ConfigError`` for what does not fit.
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
            raise ConfigError(f"function is called with each record; {shown(function)} cannot be")
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

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the producer, which fences one with the same transactional id and aborts what it
        has left open, and then the consumer, which joins the group.

        Raises what their ``start`` raises, and ``ConfigError`` when they are in two clusters: both
        are stopped then; make new ones, and a new processor. ``LocalProtocolError`` for a second
        ``start`` and after ``stop``, and for clients that somebody else uses already: they are left
        alone.
        """
        self._runtime.require_new()
        self._check_clients()
        self._runtime.begin()
        driver = self._driver = ProcessorDriver(
            ProcessorCore(self._settings(), jittered),
            self._consumer,
            self._producer,
            Working(
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
        """What somebody else uses is not touched."""
        for client in (self._consumer, self._producer):
            if client.was_started or client.was_stopped:
                raise LocalProtocolError(
                    f"a client can be started once, and stopped once, and {client!r} was: give the "
                    "processor a consumer and a producer of its own, and leave them alone"
                )
        if self._consumer.subscription() or self._consumer.assignment():
            raise LocalProtocolError(
                f"{self._consumer!r} has got something to read already, from another processor "
                "perhaps: give the processor a consumer of its own, and do not subscribe it"
            )

    def _check_cluster(self) -> None:
        """Offsets are committed where the outputs are."""
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
        """Process records until ``stop`` or ``request_stop`` is called, or until an error ends it,
        which is raised. Can be called once.

        ``stop_on``: signals that call ``request_stop``, as in ``(signal.SIGTERM, signal.SIGINT)``.
        A second signal has the effect that it had before ``run``. This replaces a handler that you
        set with ``loop.add_signal_handler``: in that case call ``request_stop`` in your handler
        instead.

        Transactions that fail are repeated, after a pause, whatever brokers, leaders and the group
        do; each is logged. Raised is what repeating does not help: what the function raised
        (without a ``dead_letter_topic``), ``ProducerFenced`` when another producer has the
        transactional id now, ``ProducerFailed``, ``TransactionAborted`` when a broker has refused
        an output for good, or when the topic of one was not there for all of the producer's
        ``delivery_timeout_ms``, ``TransactionTimedOut`` when the outputs of one record alone did
        not get through within ``transaction_timeout_ms``, three times in a row, ``BrokerError`` or
        ``RecordTooLarge`` when an output cannot be sent, and what asking the consumer for records
        raises: ``RecordUnreadable`` without a ``dead_letter_topic``, or where it is about damaged
        bytes or a batch that unpacks to too much. ``CommitInDoubt`` when it was stopped, or the
        producer has failed, before the last commit was answered.

        If it is cancelled, ``stop`` aborts the open transaction. After that, and after an error,
        the next owner of the partitions reads the records again. Raises ``ConfigError`` for a value
        that is not a signal, and ``LocalProtocolError`` where signals cannot be handled, as in
        threads.
        """
        signals = checked_signals(stop_on)
        self._runtime.check_started()
        driver = self._driver
        if self._has_run:
            raise LocalProtocolError("a processor can be run once; make a new one")
        if driver is None or self._runtime.was_stopped or self._is_stop_requested:
            return  # a signal may come before
        with on_first_signal(signals, self.request_stop):
            self._has_run = True
            await driver.run()

    def request_stop(self) -> None:
        """Ask ``run`` to return soon. The function finishes its current record (or batch), and the
        transaction is committed, or aborted after 15 s. Returns at once.

        You may call it from a signal handler, from any thread, from the function, before ``run``,
        and more than once. After ``run`` has returned, call ``stop`` or leave the block to leave
        the group and disconnect. Raises nothing.
        """
        self._is_stop_requested = True
        if self._driver is not None:
            self._driver.stop_soon(int(_STOP_TIMEOUT_MS * _PROCESSING_SHARE))

    async def stop(self, *, timeout_ms: int | None = None) -> None:
        """Let the function finish the record (or batch) that it has, commit, let ``run`` return,
        leave the group and disconnect.

        Takes at most ``timeout_ms`` (default 30 s), half of which is for the function and the
        commit: what is not whole by then is aborted, and comes again. Runs to its end even if the
        caller is cancelled; calling it again waits for the end. Before ``start`` it forbids that.
        Raises ``LocalProtocolError`` when the function calls it, which it would wait for: call it
        in another task.
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
        """The processor's health: that of its consumer, with the producer's waits, such as a
        missing topic, added to ``problems``. May be called before ``start``, after ``stop`` and in
        any thread. Raises nothing."""
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
        """Before the consumer leaves: what it has read is not in a transaction any more then."""
        await self._producer.stop(timeout_ms=self._left_ms() // 2)

    async def _stop_consumer(self) -> None:
        await self._consumer.stop(timeout_ms=self._left_ms())


def _checked_consumer(consumer: Any) -> Any:
    if not isinstance(consumer, Consumer):
        raise ConfigError(f"consumer is a Consumer that is not started, not {shown(consumer)}")
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
        raise ConfigError(f"producer is a Producer that is not started, not {shown(producer)}")
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
    raise ConfigError(f"{name} is True or False, not {shown(value)}")

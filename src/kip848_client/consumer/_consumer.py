"""``Consumer``: the class that users hold.

Names of methods and settings are aiokafka's. What differs, because the protocol does: assignments
change partition by partition (listeners get what is new and what goes), ``pattern`` is matched by
the broker, and sessions and heartbeats are set on the broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from re import Pattern
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack, overload

from kip848_client.config import ConsumerConfig, ConsumerSettings
from kip848_client.consumer._arguments import checked_leave
from kip848_client.consumer._engine import Engine
from kip848_client.consumer._group_calls import GroupCalls
from kip848_client.consumer._listener import RebalanceListener, checked_listener
from kip848_client.consumer._parts import Network, connections, decoding_of
from kip848_client.consumer._patterns import checked_pattern
from kip848_client.consumer._poller import Caller, calling_task
from kip848_client.consumer._records import OffsetAndMetadata, OffsetForTransaction
from kip848_client.consumer._wishes import with_epochs
from kip848_client.core.fetch import EARLIEST, LATEST, Paused, Resumed
from kip848_client.core.member import LeaveMode
from kip848_client.core.offsets import CommittableOffset
from kip848_client.core.shown import repr_at_any_time
from kip848_client.core.types import GroupMetadata, TopicPartition
from kip848_client.errors import (
    ConfigError,
    ConsumerClosed,
    LocalProtocolError,
    NotAssigned,
)
from kip848_client.records import Decoding, Record, RecordBatchView
from kip848_client.runtime.arguments import (
    checked_commit,
    checked_count,
    checked_offset,
    checked_partitions,
    checked_timeout_ms,
    checked_topics,
)

__all__ = ["Consumer"]

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")

_STOP_TIMEOUT_MS: Final = 30_000

CommitOffset = int | tuple[int, str] | OffsetAndMetadata


class Consumer(GroupCalls[K, V]):
    """Reads records of a Kafka cluster, as a member of a group (KIP-848) or alone.

    ::

        async with Consumer("orders", bootstrap_servers="...", group_id="billing") as consumer:
            async for record in consumer:
                ...

    Topics given here are subscribed to at ``start``. Settings are listed and explained in
    ``kip848_client.config.ConsumerConfig``; a wrong one raises ``ConfigError``. Deserializers get
    the bytes of a key or value, or ``None``, and are plain or ``async def``; if one raises, the
    call for records raises ``RecordUnreadable``, and does so again until you ``seek`` past the
    record. docs/how-to/deserialize.md says what one costs that is awaited.

    Use it in one event loop. Several tasks may ask for records: a call for records tells the
    consumer that the task which makes it is done with what it got before. An error that you catch
    between ``async for`` and ``async with`` is success for the consumer: the record in hand is
    committed. docs/reference/what-is-done.md has the rules.

    Beside what a method names it may raise ``ConfigError`` for an argument that cannot be meant,
    ``ConsumerClosed`` when it needs a consumer that runs, ``LocalProtocolError`` in another event
    loop, and the error that ended the consumer (``stop`` it then, and make a new one). One that
    asks brokers raises ``BrokerError`` when they refuse, ``TransportError`` when they cannot be
    reached: ``RequestTimedOut`` after ``default_api_timeout_ms``.
    """

    @overload
    def __init__(
        self: Consumer[bytes | None, bytes | None],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: None = None,
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[bytes | None, V2],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: Callable[[Any], Awaitable[V2]],
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[bytes | None, V2],
        *topics: str,
        key_deserializer: None = None,
        value_deserializer: Callable[[Any], V2],
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K2, bytes | None],
        *topics: str,
        key_deserializer: Callable[[Any], Awaitable[K2]],
        value_deserializer: None = None,
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K2, V2],
        *topics: str,
        key_deserializer: Callable[[Any], Awaitable[K2]],
        value_deserializer: Callable[[Any], Awaitable[V2]],
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K2, V2],
        *topics: str,
        key_deserializer: Callable[[Any], Awaitable[K2]],
        value_deserializer: Callable[[Any], V2],
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K2, bytes | None],
        *topics: str,
        key_deserializer: Callable[[Any], K2],
        value_deserializer: None = None,
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K2, V2],
        *topics: str,
        key_deserializer: Callable[[Any], K2],
        value_deserializer: Callable[[Any], Awaitable[V2]],
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[K2, V2],
        *topics: str,
        key_deserializer: Callable[[Any], K2],
        value_deserializer: Callable[[Any], V2],
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    def __init__(
        self,
        *topics: str,
        key_deserializer: Callable[[Any], Any] | None = None,
        value_deserializer: Callable[[Any], Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(ConsumerConfig.of(settings))
        self._decoding = decoding_of(self._config, key_deserializer, value_deserializer)
        self._network: Network = connections
        self._take: Callable[[], Record[K, V] | None] = _nothing
        self._listener: RebalanceListener | None = None
        self._topics: frozenset[str] = frozenset()
        self._pattern: str | None = None
        if topics:
            self.subscribe(topics)

    @repr_at_any_time
    def __repr__(self) -> str:
        return f"<Consumer group={self._config.group_id!r} {self._runtime}>"

    @property
    def decoding(self) -> Decoding:
        """What keys and values are made by. Frozen."""
        return self._decoding

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

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, and begin to join the group or to fetch what was assigned.

        It does not wait for the group: partitions arrive while you ask for records (or await
        ``wait_assigned``). Raises ``BootstrapFailed`` when no broker answers,
        ``ProtocolUnsupported`` for a broker without KIP-848, ``BrokerError`` when our credentials
        are refused; make a new consumer then. ``LocalProtocolError`` for a second ``start``,
        ``ConsumerClosed`` after ``stop``.
        """
        self._runtime.begin()
        engine: Engine[K, V] = Engine(
            self._runtime,
            self._config,
            self._decoding,
            lambda: self._listener,
            self._network,
            self._events,
        )
        self._engine = engine
        self._take = engine.poller.take
        await self._runtime.open(lambda: engine.open(self._topics), self.stop)
        if self._manual is not None:
            engine.assign(self._manual)
        elif self._topics or self._pattern is not None:
            engine.subscribe(self._topics, self._pattern)

    def stop(
        self, *, leave: LeaveMode = LeaveMode.DEFAULT, timeout_ms: int | None = None
    ) -> Coroutine[Any, Any, None]:
        """Hand nothing out any more, let the application finish what it has, commit that (with
        auto-commit), leave the group, disconnect.

        A task that got records is waited for until it asks for more (it is told that the consumer
        is closed then) or has returned; what it had is done. So is what the task has that calls
        this. What is still being processed when the time is over is not committed, and comes again.

        ``leave`` is KIP-1092's option: by default a static member keeps its partitions for its
        return, a dynamic one gives them up. Runs to its end even if the caller is cancelled, and
        takes at most ``timeout_ms`` (default: the smaller of 30 s and the request timeout), of
        which a quarter, or 2 s, is kept for the commit and the leave.

        Calling it again waits for the first call, hastens it if its time is shorter, and repeats
        what has failed. Before ``start`` it forbids that. Raises ``CallbackError`` when a listener
        failed during it, ``LocalProtocolError`` when it is called by a listener or in another event
        loop, ``ConfigError`` for what is no time; what brokers do not answer is only logged.
        """
        return self._stop(leave, timeout_ms, calling_task(), done=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A record whose processing raised is not done: it is not committed and comes again. An
        # error that was caught before it got here is none.
        await self._stop(LeaveMode.DEFAULT, None, calling_task(), done=error is None)

    async def _stop(
        self, leave: LeaveMode, timeout_ms: int | None, caller: Caller, *, done: bool
    ) -> None:
        limit_ms: float = min(_STOP_TIMEOUT_MS, self._config.request_timeout_ms)
        if timeout_ms is not None:
            limit_ms = checked_timeout_ms(timeout_ms)
        mode = checked_leave(leave)
        engine = self._engine
        if self._runtime.stop_first() or engine is None:
            self._events.close()
            return
        group_driver = engine.group_driver
        if group_driver is not None and group_driver.in_listener:
            raise LocalProtocolError(
                "stop() would wait for the listener that calls it; stop from another task"
            )
        before = 0 if group_driver is None else len(group_driver.callback_failures)
        await engine.stop(caller, mode=mode, timeout_ms=limit_ms, done=done).finish()
        if group_driver is not None and len(group_driver.callback_failures) > before:
            raise group_driver.callback_failures[before]

    # -- what to consume -------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Be a member of the group for these topics; replaces the former subscription.

        ``pattern`` is an RE2 expression that the broker matches against whole topic names, now and
        as topics come and go; ``topics`` and ``pattern`` together mean the union. Before ``start``
        it takes effect there, after it at once. A topic that does not exist (yet) is legal: it is
        consumed as soon as it does. ``listener`` replaces the former one, also when it is ``None``.

        Raises ``ConfigError`` without a ``group_id``, too, and ``LocalProtocolError`` when
        partitions were assigned by hand (``unsubscribe`` first).
        """
        self.check_home()
        names = checked_topics(topics)
        text = checked_pattern(pattern)
        if not names and text is None:
            raise ConfigError("subscribe() needs topics or a pattern")
        if self._manual is not None:
            raise LocalProtocolError("partitions were assigned by hand; unsubscribe() first")
        if self._config.group_id is None:
            raise ConfigError("subscribe() needs a group_id; without one, use assign()")
        checked = None if listener is None else checked_listener(listener)
        engine = self._run() if self._runtime.was_started or self._runtime.was_stopped else None
        self._listener, self._topics, self._pattern = checked, names, text
        if engine is not None:
            engine.subscribe(names, text)

    def subscription(self) -> frozenset[str]:
        """The topic names subscribed to (not those that a pattern matches)."""
        return self._topics

    def unsubscribe(self) -> None:
        """Leave the group, in the background, or drop the manual assignment.

        With auto-commit, what is done is committed first: what the task has got that calls this,
        and whatever other tasks come back from (a member waits for them, for at most
        ``default_api_timeout_ms``). Without it, commit before. Nothing is handed out any more from
        now on, and subscribing again is legal at once. Does not raise what ended the membership.
        """
        if self._runtime.was_started or self._runtime.was_stopped:
            self._look().unsubscribe()
        self._topics, self._pattern, self._manual = frozenset(), None, None

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Consume exactly these partitions, without a membership; replaces the former ones.

        With a ``group_id`` positions start from the group's committed offsets and can be
        committed, provided that the group has no members. Raises ``LocalProtocolError`` when
        subscribed (``unsubscribe`` first).
        """
        self.check_home()
        if self._topics or self._pattern is not None:
            raise LocalProtocolError("the consumer is subscribed; unsubscribe() first")
        manual = checked_partitions(partitions)
        if self._runtime.was_started or self._runtime.was_stopped:
            self._run().assign(manual)
        self._manual = manual

    # -- records ---------------------------------------------------------------------------------

    def getone(self, *partitions: tuple[str, int]) -> Coroutine[Any, Any, Record[K, V]]:
        """The next record (of ``partitions``, if given), waiting for it without limit.

        The task that calls this is done with what it got before. Raises once each what a broker
        refused (a topic, ...), ``TopicGone`` and the ``CallbackError`` of a listener: call again to
        go on. Raises again and again until you ``seek``: ``RecordUnreadable``, and
        ``NoOffsetForPartition`` where neither a committed offset nor ``auto_offset_reset`` says
        where to begin (``OffsetOutOfRange``, ``LogTruncated``: where to go on). ``NotAssigned`` for
        ``partitions`` that are not ours.
        """
        return self._getone(partitions, self._came_back())

    async def _getone(
        self, partitions: Collection[tuple[str, int]], caller: Caller
    ) -> Record[K, V]:
        poller = self._run().poller
        return await poller.one(checked_partitions(partitions) if partitions else (), caller)

    def getmany(
        self,
        *partitions: tuple[str, int],
        timeout_ms: int = 0,
        max_records: int | None = None,
    ) -> Coroutine[Any, Any, dict[TopicPartition, list[Record[K, V]]]]:
        """The records that are there, by partition; waits up to ``timeout_ms`` for the first.

        At most ``max_records`` in all (default: the setting ``max_poll_records``). The task that
        calls this is done with what it got before. Raises as ``getone``, except that a call that
        waits while the consumer is closed returns nothing.
        """
        return self._getmany(partitions, timeout_ms, max_records, self._came_back())

    async def _getmany(
        self,
        partitions: Collection[tuple[str, int]],
        timeout_ms: int,
        max_records: int | None,
        caller: Caller,
    ) -> dict[TopicPartition, list[Record[K, V]]]:
        poller = self._run().poller
        only, timeout_s, limit = self._limits(partitions, timeout_ms, max_records)
        return await poller.many(only, timeout_s, limit, caller)

    def getbatches(
        self,
        *partitions: tuple[str, int],
        timeout_ms: int = 0,
        max_records: int | None = None,
    ) -> Coroutine[Any, Any, dict[TopicPartition, RecordBatchView[K, V]]]:
        """As ``getmany``, without an object a record: a ``RecordBatchView`` by partition, which
        gives columns, an Arrow batch (``to_arrow``), or records when they are asked for.

        All records of a view are handed out: a commit covers them. Raises as ``getmany``, but that
        deserializers are called, and may raise, only in the view's ``records()``.
        """
        return self._getbatches(partitions, timeout_ms, max_records, self._came_back())

    async def _getbatches(
        self,
        partitions: Collection[tuple[str, int]],
        timeout_ms: int,
        max_records: int | None,
        caller: Caller,
    ) -> dict[TopicPartition, RecordBatchView[K, V]]:
        poller = self._run().poller
        only, timeout_s, limit = self._limits(partitions, timeout_ms, max_records)
        return await poller.batches(only, timeout_s, limit, caller)

    def _limits(
        self, partitions: Collection[tuple[str, int]], timeout_ms: int, max_records: int | None
    ) -> tuple[frozenset[TopicPartition], float, int | None]:
        """What a call for many records is limited to: partitions, seconds, records."""
        timeout_s = checked_timeout_ms(timeout_ms) / 1000
        limit = self._config.max_poll_records
        if max_records is not None:
            limit = checked_count(max_records, "max_records")
        return frozenset(checked_partitions(partitions)), timeout_s, limit

    def __aiter__(self) -> Self:
        self._run()
        return self

    async def __anext__(self) -> Record[K, V]:
        record = self._take()
        if record is not None:
            return record
        try:
            return await self._run().poller.next()
        except ConsumerClosed:
            raise StopAsyncIteration from None

    # -- positions -------------------------------------------------------------------------------

    def seek(self, partition: tuple[str, int], offset: int) -> None:
        """Hand out the record at ``offset`` next; one that is not there (any more) leads to
        ``auto_offset_reset``. Raises ``NotAssigned``."""
        self._run().positions.seek(self._assigned(partition), checked_offset(offset))

    async def seek_to_beginning(self, *partitions: tuple[str, int]) -> bool:
        """Continue at the first offset there is, in these or all assigned partitions.

        A call that raises or is cancelled changes nothing. Raises ``NotAssigned``, also when no
        partition is assigned (yet: see ``wait_assigned``).
        """
        await self._run().positions.seek_to(self._chosen(partitions), EARLIEST)
        return True

    async def seek_to_end(self, *partitions: tuple[str, int]) -> bool:
        """Continue after the last record there is, in these or all assigned partitions. Raises as
        ``seek_to_beginning``."""
        await self._run().positions.seek_to(self._chosen(partitions), LATEST)
        return True

    async def seek_to_committed(
        self, *partitions: tuple[str, int]
    ) -> dict[TopicPartition, int | None]:
        """Continue at the committed offsets, and return them; partitions without one (``None``)
        stay where they are. Raises as ``seek_to_beginning`` and ``committed``."""
        engine = self._run()
        stored = await engine.positions.seek_to_committed(
            self._chosen(partitions), engine.committed
        )
        return {tp: None if found is None else found.offset for tp, found in stored.items()}

    async def position(self, partition: tuple[str, int]) -> int:
        """The offset of the next record to be handed out, waiting until it is known. Raises
        ``NotAssigned``, also when the partition is taken away meanwhile, and
        ``NoOffsetForPartition``."""
        engine = self._run()
        return await engine.positions.wait_for(self._assigned(partition))

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Hand out no records of these partitions until ``resume``; they stay assigned, provided
        that you go on asking for records. Raises ``NotAssigned``."""
        fetching = self._run().fetching
        fetching.post(Paused(tuple(self._assigned(each) for each in partitions)))

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Undo ``pause``. Raises ``NotAssigned``."""
        fetching = self._run().fetching
        fetching.post(Resumed(tuple(self._assigned(each) for each in partitions)))

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self._look().core.paused

    # -- offsets ---------------------------------------------------------------------------------

    async def commit(
        self, offsets: Mapping[Any, CommitOffset] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Commit ``offsets`` (each the offset of the *next* record, or that and a text), by default
        the position after everything handed out, whichever of your tasks has it. Returns what was
        stored: ``{}`` when there is nothing to commit.

        Retries what a retry can cure, STALE_MEMBER_EPOCH included, for at most
        ``default_api_timeout_ms``. Raises ``CommitFailed`` when something was not stored, with its
        partitions and offsets, above all when the group has taken a partition since its records
        were handed out (``max_poll_interval_ms``, a fence, a rebalance): they come again, to its
        new owner. The rest is stored then. Raises ``NotAssigned`` for a partition that never was
        ours, and when nothing is subscribed to or assigned; ``LocalProtocolError`` without group.
        """
        engine = self._look()
        if offsets is not None:
            return await engine.commit(self._checked_offsets(engine, offsets))
        if not self._consuming and engine.config.group_id is not None:
            raise NotAssigned(
                "there is nothing to commit: subscribe() or assign() first, or say what to commit"
            )
        return await engine.commit(None)

    # -- transactions -------------------------------------------------------------------------

    def offsets_for_transaction(
        self, offsets: Mapping[Any, CommitOffset] | None = None
    ) -> tuple[GroupMetadata, Mapping[TopicPartition, OffsetForTransaction]]:
        """What a transactional producer is to commit for this consumer, and in whose name: one
        snapshot of both. ``Producer.send_offsets_to_transaction`` takes it from here.

        ``offsets`` as for ``commit``. Raises ``CommitFailed`` where a partition is not ours (any
        more): brokers look at the member only. ``LocalProtocolError`` without a ``group_id``, and
        with ``enable_auto_commit``, which would commit beside the transaction.
        """
        engine = self._run()
        if engine.wishes is None:
            raise LocalProtocolError("without a group_id there are no offsets to commit")
        if self._config.enable_auto_commit:
            raise LocalProtocolError(
                "this consumer commits by itself, beside the transaction; make it with "
                "enable_auto_commit=False"
            )
        given = None if offsets is None else with_epochs(engine.core, checked_commit(offsets))
        found = engine.wishes.for_transaction(given)
        topic_id = engine.core.topic_id
        return self.group_metadata(), {
            tp: OffsetForTransaction(*each, topic_id(tp)) for tp, each in found.items()
        }

    # -- inside ----------------------------------------------------------------------------------

    def _came_back(self) -> Caller:
        """The task that makes a call for records: it is done with what it has. It need not be the
        task in which the call then runs."""
        caller = calling_task()
        if caller is not None and self._engine is not None:
            self._engine.poller.came_back(caller)
        return caller

    @property
    def _consuming(self) -> bool:
        return bool(self._topics or self._pattern is not None or self._manual is not None)

    def _checked_offsets(
        self, engine: Engine[K, V], offsets: Mapping[Any, CommitOffset]
    ) -> dict[TopicPartition, CommittableOffset]:
        checked = checked_commit(offsets)
        for tp in checked:
            if self._consuming and not engine.tracker.was_ours(tp):
                self._assigned(tp)
        return with_epochs(engine.core, checked)


def _nothing() -> None:
    """What there is to take before the start."""

"""``Consumer``: the user's class.

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
from kip848_client.consumer._factories import Network, connections, decoding_of
from kip848_client.consumer._group_calls import GroupCalls
from kip848_client.consumer._listener import RebalanceListener, checked_listener
from kip848_client.consumer._offset_types import OffsetAndMetadata, OffsetForTransaction
from kip848_client.consumer._patterns import checked_pattern
from kip848_client.consumer._poller import Caller, calling_task
from kip848_client.consumer._user_commits import with_epochs
from kip848_client.core.fetch import EARLIEST, LATEST, Paused, Resumed
from kip848_client.core.member import LeaveMode
from kip848_client.core.offsets import CommittableOffset
from kip848_client.core.short import repr_at_any_time
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
    """Read records of a Kafka cluster, as a member of a group (KIP-848) or alone.

    ::

        async with Consumer("orders", bootstrap_servers="...", group_id="billing") as consumer:
            async for record in consumer:
                ...

    ``start`` subscribes to the topics given here. Use a consumer in one event loop. Several tasks
    may ask for records. A task that calls for records reports that it is done with those it got
    before. If you catch an error between ``async for`` and ``async with``, the consumer sees a
    success: the record in hand is committed. docs/reference/what-is-done.md has the rules.

    Every method that does something may also raise these errors:

    - ``ConfigError``: an argument has a wrong type or value.
    - ``ConsumerNotStarted``, ``ConsumerClosed``: the method needs a consumer that runs.
    - ``LocalProtocolError``: the call comes from another event loop, thread or process.
    - The error that ended the consumer. Call ``stop`` then, and create a new consumer.

    A method that sends requests to brokers may also raise ``BrokerError`` when a broker refuses,
    ``TransportError`` when no broker can be reached, and ``RequestTimedOut`` (a ``TransportError``)
    after ``default_api_timeout_ms``.

    Args:
        *topics: Names of topics to subscribe to. They need a ``group_id``.
        key_deserializer: Called with the bytes of a key, or ``None``. Plain or ``async def``;
            docs/how-to/deserialize.md says what awaiting it costs. Default: keys are bytes. If it
            raises, the call for records raises ``RecordUnreadable``, and does so again until you
            ``seek`` past the record.
        value_deserializer: The same for values.
        **settings: The fields of ``kip848_client.config.ConsumerConfig``, which explains each.

    Raises:
        ConfigError: A setting is unknown or wrong, a name of a topic is not legal, or topics are
            given without a ``group_id``.
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
        """The deserializers of keys and values. Frozen."""
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
        """The cluster id from its brokers. ``None`` before ``start``."""
        return None if self._engine is None else self._engine.topics.cluster_id

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, and begin to join the group or to fetch assigned partitions.

        Does not wait for the group. Partitions arrive while you ask for records; ``wait_assigned``
        waits for them. If it raises, everything it had opened is closed: create a new consumer.

        Raises:
            BootstrapFailed: No broker answers.
            ProtocolUnsupported: With a ``group_id``: the broker does not have KIP-848 (it came with
                Kafka 4.0), or not the client-side assignors that the settings ask for.
            BrokerError: The brokers refuse our credentials or the look-up of metadata.
            LocalProtocolError: ``start`` was called before.
            ConsumerClosed: ``stop`` was called before or while it ran.
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
        """Finish the delivered records, commit them, leave the group and disconnect.

        Delivers nothing from the moment of the call. Waits until each task that holds records asks
        for more (it gets ``ConsumerClosed``) or returns; then its records are done. So are those of
        the task that calls ``stop``. With ``enable_auto_commit``, what is done is committed.
        Records still being processed at the deadline are not committed, and are read again.

        Once begun, it runs to its end even if the caller is cancelled. A second call waits for the
        first, shortens its time if its own is shorter, and repeats the steps that failed. A call
        before ``start`` forbids ``start``. Failed requests to brokers are only logged.

        Args:
            leave: What the coordinator learns (KIP-1092). By default a static member keeps its
                partitions for its return, and a dynamic member gives them up.
            timeout_ms: The time for all of it, in milliseconds. 2 s of it, or a quarter if that is
                less, is reserved for the commit and the leave. Default: 30 s or
                ``request_timeout_ms``, the smaller.

        Returns:
            A coroutine; await it.

        Raises:
            CallbackError: A method of the listener failed during the call.
            LocalProtocolError: A method of the listener calls it, or another event loop does.
            ConfigError: An argument is of the wrong type.
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
        # A record whose processing raised is not done: it is not committed and is delivered again.
        # An error that was caught before it got here does not count.
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

    # -- subscription and assignment -------------------------------------------------------------

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Join the group for these topics; replaces the former subscription.

        Takes effect in ``start``, or at once if the consumer runs. Topics and ``pattern`` together
        subscribe to the union. A topic need not exist yet: it is consumed as soon as it does.

        Args:
            topics: Names of topics.
            pattern: A regular expression in RE2 syntax, as a text or compiled by ``re``. The broker
                matches it against whole names, now and whenever topics appear or go.
            listener: Called when partitions come and go. It replaces the former one; ``None``
                removes that.

        Raises:
            ConfigError: There are neither topics nor a pattern, a name or the pattern is not legal,
                the listener lacks a method, or there is no ``group_id``.
            LocalProtocolError: Partitions were assigned manually; call ``unsubscribe`` first.
            ConsumerClosed: The consumer was stopped.
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
        """Get the names of the topics subscribed to.

        Returns:
            The names given to ``subscribe`` or the constructor, without those that the pattern
            matches. Raises nothing.
        """
        return self._topics

    def unsubscribe(self) -> None:
        """Leave the group in the background, or drop the manual assignment.

        Delivers nothing from the moment of the call. With ``enable_auto_commit``, what is done is
        committed first: the records of the calling task, and those that other tasks report as done
        by asking for more (a member waits for them at most ``default_api_timeout_ms``). Without it,
        commit before this call. You may subscribe again at once.

        Raises:
            ConsumerClosed: The consumer was stopped. What ended the membership is not raised here.
            LocalProtocolError: The call comes from another event loop, thread or process.
        """
        if self._runtime.was_started or self._runtime.was_stopped:
            self._look().unsubscribe()
        self._topics, self._pattern, self._manual = frozenset(), None, None

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Consume exactly these partitions, without a membership.

        They replace those of an earlier call.

        With a ``group_id``, positions begin at the group's committed offsets and can be committed,
        as long as the group has no members.

        Args:
            partitions: Tuples of topic and partition. A partition that does not exist yet is
                consumed as soon as it does.

        Raises:
            LocalProtocolError: The consumer is subscribed; call ``unsubscribe`` first.
            ConfigError: ``partitions`` is not an iterable of such tuples.
            ConsumerClosed: The consumer was stopped.
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
        """Wait for the next record, without a limit of time.

        The task that makes the call is done with the records it got before.

        Args:
            *partitions: Take records of these only. Default: all that are assigned.

        Returns:
            A coroutine; awaited, it gives the record.

        Raises:
            RecordUnreadable: The deserializer failed, or the bytes are damaged. Raised again until
                you ``seek`` past the record.
            NoOffsetForPartition: Neither a committed offset nor ``auto_offset_reset`` says where to
                begin. Raised again until you ``seek``, as the next two are.
            OffsetOutOfRange: The position is not in the log, and ``auto_offset_reset`` does not say
                where to continue.
            LogTruncated: The leader's log diverged from what was read (KIP-320).
            TopicGone: A topic was deleted. Raised once: call again to continue.
            CallbackError: The listener failed. Raised once.
            BrokerError: A broker refused something (access to a topic, for example). Raised once.
            NotAssigned: One of ``partitions`` is not assigned to this consumer.
            ConsumerClosed: The consumer was stopped, also while the call waits.
        """
        return self._getone(partitions, self._mark_done())

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
        """Get the buffered records by partition, waiting for the first of them.

        The task that makes the call is done with the records it got before.

        Args:
            *partitions: Take records of these only. Default: all that are assigned.
            timeout_ms: How long to wait if no record is buffered, in milliseconds. 0 does not wait.
            max_records: At most this many records in all. Default: the setting
                ``max_poll_records``, without a limit unless it is set.

        Returns:
            A coroutine; awaited, it gives lists of records by partition. It is empty after the
            timeout, and when the consumer is stopped while the call waits.

        Raises:
            Kip848Error: As ``getone``. Records before an unreadable one are returned first; the
                next call raises ``RecordUnreadable``.
            ConfigError: ``max_records`` is not a positive integer.
        """
        return self._getmany(partitions, timeout_ms, max_records, self._mark_done())

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
        """Get buffered records as columns: as ``getmany``, without one object per record.

        All records of a view count as delivered, and a commit covers them. Deserializers run only
        when you call the view's ``records()``.

        Args:
            *partitions: Take records of these only. Default: all that are assigned.
            timeout_ms: How long to wait if no record is buffered, in milliseconds. 0 does not wait.
            max_records: At most this many records in all. Default: the setting
                ``max_poll_records``, without a limit unless it is set.

        Returns:
            A coroutine; awaited, it gives a ``RecordBatchView`` by partition, which has columns, an
            Arrow batch (``to_arrow``) or records (``records``).

        Raises:
            Kip848Error: As ``getmany``, without errors of deserializers.
        """
        return self._getbatches(partitions, timeout_ms, max_records, self._mark_done())

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
        """Return the limits of a call for many records: partitions, seconds, records."""
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
        """Move the position: the record at ``offset`` is the next to be delivered.

        If there is no such record, the setting ``auto_offset_reset`` applies.

        Args:
            partition: Topic and partition.
            offset: From 0 to 2**63 - 1.

        Raises:
            NotAssigned: The partition is not assigned to this consumer.
            ConfigError: ``offset`` is not an integer in that range.
        """
        self._run().positions.seek(self._assigned(partition), checked_offset(offset))

    async def seek_to_beginning(self, *partitions: tuple[str, int]) -> bool:
        """Move the positions to the first offset of the log (Kafka's ListOffsets).

        A call that raises or is cancelled changes nothing.

        Args:
            *partitions: Which ones; default: all that are assigned.

        Returns:
            Always ``True``, as aiokafka's method.

        Raises:
            NotAssigned: One of them is not assigned to this consumer, or nothing is assigned yet
                (see ``wait_assigned``).
            RequestTimedOut: The leaders gave no answer within ``default_api_timeout_ms``.
            BrokerError: A leader refused.
        """
        await self._run().positions.seek_to(self._chosen(partitions), EARLIEST)
        return True

    async def seek_to_end(self, *partitions: tuple[str, int]) -> bool:
        """Move the positions behind the last record of the log (Kafka's ListOffsets).

        With ``read_committed`` the end is the last stable offset. A call that raises or is
        cancelled changes nothing.

        Args:
            *partitions: Which ones; default: all that are assigned.

        Returns:
            Always ``True``, as aiokafka's method.

        Raises:
            NotAssigned: As ``seek_to_beginning``.
            RequestTimedOut: The leaders gave no answer within ``default_api_timeout_ms``.
            BrokerError: A leader refused.
        """
        await self._run().positions.seek_to(self._chosen(partitions), LATEST)
        return True

    async def seek_to_committed(
        self, *partitions: tuple[str, int]
    ) -> dict[TopicPartition, int | None]:
        """Move the positions to the group's committed offsets (Kafka's OffsetFetch).

        A partition without a committed offset keeps its position. A call that raises or is
        cancelled changes nothing.

        Args:
            *partitions: Which ones; default: all that are assigned.

        Returns:
            The committed offset of each partition, ``None`` where there is none.

        Raises:
            NotAssigned: As ``seek_to_beginning``.
            LocalProtocolError: There is no ``group_id``.
            RequestTimedOut: The coordinator gave no answer within ``default_api_timeout_ms``.
            BrokerError: The coordinator refused.
        """
        engine = self._run()
        stored = await engine.positions.seek_to_committed(
            self._chosen(partitions), engine.committed
        )
        return {tp: None if found is None else found.offset for tp, found in stored.items()}

    async def position(self, partition: tuple[str, int]) -> int:
        """Get the offset of the next record to be delivered, waiting until it is known.

        Args:
            partition: Topic and partition.

        Returns:
            The offset.

        Raises:
            NotAssigned: The partition is not assigned to this consumer, or is revoked meanwhile.
            NoOffsetForPartition: Neither a committed offset nor ``auto_offset_reset`` says where to
                begin. Other errors that stop the partition are raised the same way.
            ConsumerClosed: The consumer was stopped, also while the call waits.
        """
        engine = self._run()
        return await engine.positions.wait_for(self._assigned(partition))

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Deliver no records of these partitions until ``resume``.

        They stay assigned, provided that you continue to ask for records.

        Args:
            *partitions: Which ones. Without any, nothing happens.

        Raises:
            NotAssigned: One of them is not assigned to this consumer; then none is paused.
        """
        fetching = self._run().fetching
        fetching.post(Paused(tuple(self._assigned(each) for each in partitions)))

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Deliver records of paused partitions again.

        Args:
            *partitions: Which ones. Without any, nothing happens.

        Raises:
            NotAssigned: One of them is not assigned to this consumer; then none is resumed.
        """
        fetching = self._run().fetching
        fetching.post(Resumed(tuple(self._assigned(each) for each in partitions)))

    def paused(self) -> frozenset[TopicPartition]:
        """Get the partitions that are paused.

        Returns:
            The partitions.

        Raises:
            ConsumerNotStarted: ``start`` was not called.
            ConsumerClosed: The consumer was stopped.
        """
        return self._look().core.paused

    # -- offsets ---------------------------------------------------------------------------------

    async def commit(
        self, offsets: Mapping[Any, CommitOffset] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Commit offsets to the group (Kafka's OffsetCommit).

        Retries what a retry can cure, STALE_MEMBER_EPOCH included, for at most
        ``default_api_timeout_ms``.

        Args:
            offsets: By partition: the offset of the *next* record to read, or a tuple of that and a
                text of at most 32,767 bytes in UTF-8, or an ``OffsetAndMetadata``. Default: the
                position after everything delivered, to any task of this consumer.

        Returns:
            What was stored. Empty when there is nothing to commit.

        Raises:
            CommitFailed: Some offsets were not stored; it has their partitions and offsets, and the
                others are stored. Mostly the group has taken a partition since its records were
                delivered (``max_poll_interval_ms``, a fence, a rebalance). Its new owner reads
                those records again.
            NotAssigned: A partition in ``offsets`` was never ours, or ``offsets`` is ``None`` and
                nothing is subscribed to or assigned.
            LocalProtocolError: There is no ``group_id``.
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
        """Take what a transactional producer commits for this consumer: one snapshot.

        ``Producer.send_offsets_to_transaction`` calls this; call it yourself only to pass both
        values on.

        Args:
            offsets: As for ``commit``.

        Returns:
            The identity of this member, and by partition the offset, the leader epoch, the text and
            the topic id. Take a new snapshot for each transaction.

        Raises:
            CommitFailed: A partition is not ours, or not ours any more. (Brokers check only the
                member.)
            LocalProtocolError: There is no ``group_id``, or ``enable_auto_commit`` is on, which
                would commit outside the transaction.
        """
        engine = self._run()
        if engine.user_commits is None:
            raise LocalProtocolError("without a group_id there are no offsets to commit")
        if self._config.enable_auto_commit:
            raise LocalProtocolError(
                "this consumer commits by itself, beside the transaction; make it with "
                "enable_auto_commit=False"
            )
        given = None if offsets is None else with_epochs(engine.core, checked_commit(offsets))
        found = engine.user_commits.for_transaction(given)
        topic_id = engine.core.topic_id
        return self.group_metadata(), {
            tp: OffsetForTransaction(*each, topic_id(tp)) for tp, each in found.items()
        }

    # -- inside ----------------------------------------------------------------------------------

    def _mark_done(self) -> Caller:
        """Mark the records of the calling task as done; returns that task. The call itself may then
        run in another task."""
        caller = calling_task()
        if caller is not None and self._engine is not None:
            self._engine.poller.mark_done(caller)
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
    """The fast path before the start: no record."""

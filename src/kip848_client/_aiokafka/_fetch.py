"""The way of a record from aiokafka's fetcher to the application.

``FetchPath`` owns the fetcher and the ``LiveAssignment`` that it works on, hands records out one
by one or in batches, and knows which of them the application is still busy with.

What the application is busy with is noted in ``hand_out``, which belongs to the task that asks; who
that is and when it comes back is for the caller to say. ``report`` brings an ``OffsetTracker`` up
to date when they are asked for.

Nothing here awaits between looking at a partition and handing its records out, so a partition
that was held or released in between two awaits can not leak a record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Generic, TypeVar

from aiokafka.consumer.fetcher import Fetcher, FetchError, FetchResult
from aiokafka.consumer.subscription_state import Subscription, SubscriptionState
from aiokafka.errors import OffsetOutOfRangeError, RecordTooLargeError
from aiokafka.structs import TopicPartition as TheirTopicPartition

from kip848_client._aiokafka._assignment import LiveAssignment
from kip848_client._aiokafka._client import FetchClient
from kip848_client._aiokafka._errors import translated
from kip848_client._aiokafka._unreadable import (
    Damaged,
    Unreadable,
    damaged,
    not_deserialized,
    wind_back,
)
from kip848_client._types import TopicPartition
from kip848_client.errors import Kip848Error, RecordUnreadable, not_assigned
from kip848_client.offsets import HandOuts, OffsetTracker

__all__ = ["FetchPath", "RawRecord"]

R = TypeVar("R")
_RESTS_BEFORE_DAMAGED_BYTES_ARE_FETCHED: Final = 10
"""Of ``retry_backoff_ms`` each: such a fetch may bring a whole megabyte."""

RawRecord = Any
"""A record as aiokafka's decoder gives it: offset, timestamp, timestamp_type, key, value, headers,
checksum."""

RecordBuilder = Callable[[TheirTopicPartition, RawRecord], R | Unreadable]


class _RecordFetcher(Fetcher):  # type: ignore[misc]  # aiokafka has no types
    """aiokafka's fetcher, making our records instead of its own, and leaving resets to us."""

    def __init__(
        self,
        client: FetchClient,
        subscriptions: SubscriptionState,
        build: RecordBuilder[Any],
        on_out_of_range: Callable[[TopicPartition, int], bool],
        **options: Any,
    ) -> None:
        self._build = build
        self._on_out_of_range = on_out_of_range
        self.on_too_large: Callable[[Any, int, Exception], object] = _ignore
        super().__init__(client, subscriptions, auto_offset_reset="none", **options)

    async def _proc_fetch_request(self, assignment: Any, node_id: Any, request: Any) -> bool:
        woke: bool = await super()._proc_fetch_request(assignment, node_id, request)
        if not woke:
            return False
        # No await since the results were stored: no other task has looked at them yet.
        for topic, partitions in request.topics:
            for partition, offset, _ in partitions:
                self._adapt(TopicPartition(topic, partition), offset)
        return True

    def _adapt(self, tp: TopicPartition, offset: int) -> None:
        entry = self._records.get(tp)
        if type(entry) is FetchResult:
            records = entry._partition_records
            if records is not None:
                records._consumer_record = self._build
        elif type(entry) is FetchError:
            out_of_range = isinstance(entry._error, OffsetOutOfRangeError)
            if out_of_range and self._on_out_of_range(tp, offset):
                self._records.pop(tp, None)
            elif isinstance(entry._error, RecordTooLargeError):
                self.on_too_large(tp, offset, entry._error)


class FetchPath(Generic[R]):
    """Records of the assigned partitions. Create it inside a running loop; ``close`` it.

    ``build`` makes a record. ``on_out_of_range`` gets a partition and the offset that the broker
    does not have any more, and returns whether it will set another position.
    """

    def __init__(
        self,
        client: FetchClient,
        build: RecordBuilder[R],
        on_out_of_range: Callable[[TopicPartition, int], bool],
        **fetch_options: Any,
    ) -> None:
        self._client = client
        self._rest_s: float = client._retry_backoff
        self._loop = asyncio.get_running_loop()
        self._fetcher: _RecordFetcher | None = None
        self._build = build
        self.live = LiveAssignment(self._on_live_changed)
        subscription = Subscription(())
        subscription._assignment = self.live
        subscription._reassignment_in_progress = False
        state = SubscriptionState()
        state._subscription = subscription
        self._fetcher = _RecordFetcher(client, state, build, on_out_of_range, **fetch_options)
        self._fetcher.on_too_large = self._damage
        self._buffers = self._fetcher._records
        client.on_refused = self._rest
        self._resting: dict[TopicPartition, asyncio.TimerHandle] = {}
        self.hand_outs = HandOuts()
        self.hand_out = self.hand_outs.of(None)
        self._touched: dict[TopicPartition, None] = {}

    @property
    def _core(self) -> _RecordFetcher:
        assert self._fetcher is not None
        return self._fetcher

    # -- handing out ---------------------------------------------------------------------------

    def take_one(self, only: Collection[tuple[str, int]] = (), came_back: bool = False) -> R | None:
        """The next record that is there, or ``None``. Whoever takes it is done with what it has if
        it ``came_back``; else the record is one more that it holds.

        Raises ``RecordUnreadable``, and ``Kip848Error`` for what the broker refused.
        """
        hand_out = self.hand_out
        last, hand_out.tp = hand_out.tp, None
        if came_back:
            if hand_out.more:
                hand_out.more.clear()
        elif last is not None:
            hand_out.add(last, hand_out.before)
        buffers = self._buffers
        states = self.live._tp_state
        while buffers:
            for tp, entry in buffers.items():
                if only and tp not in only:
                    continue
                state = states.get(tp)
                if state is None:
                    break  # not live any more: drop the buffer below
                if type(entry) is not FetchResult:
                    self._raise_entry(tp, entry, state)
                    break
                before: Any = state._position
                try:
                    record: R | Unreadable | None = _next_record(entry, state)
                except Exception as err:  # noqa: BLE001 - whatever reading damaged bytes raises
                    failure = self._damage(tp, _next_offset(entry), err)
                    raise failure from failure.__cause__
                if record is None:
                    self._touched[tp] = None
                    break
                if isinstance(record, Unreadable):
                    raise self._stop_at(tp, entry, record)
                if tp is not last:  # what is open stays among the touched
                    self._touched[tp] = None
                hand_out.tp, hand_out.before = tp, before
                return record
            else:
                return None
            self._drop(tp)
        return None

    def take_many(
        self, only: Collection[tuple[str, int]] = (), records_max: int | None = None
    ) -> dict[TopicPartition, list[R]]:
        """All records that are there, at most ``records_max``, by partition. As ``take_one``; what
        comes before a record that cannot be read is handed out, and the next call raises."""
        taken: dict[TopicPartition, list[R]] = {}
        left = records_max
        buffers = self._core._records
        for tp, entry in list(buffers.items()):
            if only and tp not in only:
                continue
            state = self.live._tp_state.get(tp)
            if state is not None and type(entry) is not FetchResult:
                if taken:
                    break  # the records first, the error with the next call
                self._raise_entry(tp, entry, state)
                state = None
            if state is None or not entry.has_more():
                self._drop(tp)
                continue
            before: Any = state._position
            records, failure = self._drained(tp, entry, left)
            ours = TopicPartition(tp[0], tp[1])
            self._touched[ours] = None
            if not entry.has_more():
                self._drop(tp)
            if records:
                taken[ours] = records
                self.hand_out.add(ours, before)
                if left is not None:
                    left -= len(records)
            if failure is not None:
                if not taken:
                    raise failure
                break  # the records first, the error with the next call
            if left is not None and left <= 0:
                break
        return taken

    def waiter(self) -> asyncio.Future[None]:
        """A future that ends when records may be there, or at ``wake``."""
        future: asyncio.Future[None] = self._core._create_fetch_waiter()
        return future

    def wake(self) -> None:
        """Let everyone who waits for records look again."""
        for future in list(self._core._fetch_waiters):
            if not future.done():
                future.set_result(None)

    async def ended(self) -> BaseException:
        """Why fetching ended: a bug, here or in aiokafka. Returns only then."""
        task: asyncio.Task[None] = self._core.error_future
        await asyncio.wait([task])
        if task.cancelled():
            return asyncio.CancelledError()
        return task.exception() or Kip848Error("aiokafka's fetching task ended")

    # -- what the application is busy with -----------------------------------------------------

    def report(self, tracker: OffsetTracker) -> None:
        """Bring ``tracker`` up to date: what is done, and what is delivered and still open."""
        open_before = self.hand_outs.open()
        delivered: list[tuple[TopicPartition, int]] = []
        for tp in self._touched:
            position = self.position(tp)
            if position is None:
                continue
            tracker.delivered(tp, open_before.get(tp, position))
            if tp in open_before:
                delivered.append((tp, position))
        tracker.confirm()
        for tp, position in delivered:
            tracker.delivered(tp, position)
        self._touched = dict.fromkeys(open_before)

    # -- what is assigned ----------------------------------------------------------------------

    def assign(
        self, assignment: Iterable[TopicPartition], fresh: Collection[TopicPartition]
    ) -> None:
        """See ``LiveAssignment.assign``."""
        kept = set(assignment)
        for tp in self.live.assigned:
            if tp not in kept or tp in fresh:
                self._forget_hand_out(tp)
        self.live.assign(kept, fresh)
        self.wake()  # who waits for a partition that is gone shall hear of it

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """Forget these partitions and everything about them."""
        for tp in partitions:
            self._forget_hand_out(tp)
        self.live.release(partitions)
        self.wake()

    def require_assigned(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Raise ``NotAssigned`` unless all of them are assigned."""
        for topic, partition in partitions:
            self._state(TopicPartition(topic, partition))

    # -- positions -----------------------------------------------------------------------------

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next record for the application."""
        state = self.live.state_of(tp)
        return None if state is None else state._position

    def set_position(self, tp: TopicPartition, offset: int) -> None:
        """Continue at ``offset``; buffered records of the partition are dropped."""
        self._forget_hand_out(tp)
        self._core._records.pop(tp, None)
        self.live.set_position(tp, offset)
        self._wake_fetcher()

    def clear_position(self, tp: TopicPartition) -> None:
        """Fetch nothing of a partition until it has a position again."""
        self._forget_hand_out(tp)
        self.live.clear_position(tp)

    def pause(self, tp: TopicPartition) -> None:
        """Hand nothing of the partition out until ``resume``."""
        self._state(tp).pause()

    def resume(self, tp: TopicPartition) -> None:
        """Undo ``pause``."""
        self._state(tp).resume()
        self._wake_fetcher()

    def paused(self) -> frozenset[TopicPartition]:
        """What is paused."""
        return frozenset(tp for tp in self.live.assigned if self._state(tp).paused)

    def highwater(self, tp: TopicPartition) -> int | None:
        """The end of the partition at its last fetch."""
        found: int | None = self._state(tp).highwater
        return found

    def last_stable_offset(self, tp: TopicPartition) -> int | None:
        """The last stable offset at its last fetch."""
        found: int | None = self._state(tp).lso
        return found

    def last_poll_timestamp(self, tp: TopicPartition) -> int | None:
        """When it was last fetched, in ms since 1970."""
        found: int | None = self._state(tp).timestamp
        return found

    async def close(self) -> None:
        """End fetching; waiters wake up."""
        for handle in self._resting.values():
            handle.cancel()
        fetcher = self._core
        fetcher._closed = True
        # First the task that would start new fetches, then all fetches at once: aiokafka's close
        # awaits them one by one, and trips over one that was cancelled between two attempts.
        fetcher._fetch_task.cancel()
        await asyncio.gather(fetcher._fetch_task, return_exceptions=True)
        tasks = list(fetcher._pending_tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.wake()

    # -- inside --------------------------------------------------------------------------------

    def _state(self, tp: TopicPartition) -> Any:
        state = self.live.state_of(tp)
        if state is None:
            raise not_assigned(tp[0], tp[1])
        return state

    def _raise_entry(self, tp: TheirTopicPartition, entry: FetchError, state: Any) -> None:
        """Raise what stands in a buffer instead of records. Returns if it is to be dropped."""
        if isinstance(entry, Damaged):
            if state.paused or self._loop.time() >= entry.fetch_again_at_s:
                return
            self._core._records.move_to_end(tp)
            raise entry._error.with_traceback(None)
        self._drop(tp)
        self._rest(TopicPartition(*tp))  # an application that asks on shall not make a storm
        error = entry._error
        if isinstance(error, Kip848Error):
            raise error
        raise translated(error, f"Fetch of {tp.topic}-{tp.partition}") from error

    def _drained(
        self, tp: TheirTopicPartition, entry: FetchResult, limit: int | None
    ) -> tuple[list[Any], RecordUnreadable | None]:
        """At most ``limit`` records of a buffer, and what ended it early, if something did. The
        position is after the records. (aiokafka's ``getall`` would lose what it had read.)"""
        if not entry.check_assignment(tp):
            return [], None
        records: list[Any] = []
        try:
            for record in entry._partition_records or ():
                if isinstance(record, Unreadable):
                    return records, self._stop_at(tp, entry, record)
                records.append(record)
                if limit is not None and len(records) >= limit:
                    entry._update_position()
                    return records, None
        except Exception as err:  # noqa: BLE001 - whatever reading damaged bytes raises
            return records, self._damage(tp, _next_offset(entry), err)
        entry._update_position()
        entry._partition_records = None
        return records, None

    def _stop_at(
        self, tp: TheirTopicPartition, entry: FetchResult, record: Unreadable
    ) -> RecordUnreadable:
        """A deserializer raised: the record stays the next one of its partition."""
        wind_back(entry, tp, record.raw, self._build)
        self._stopped(tp)
        return not_deserialized(tp, record.raw.offset, record.error)

    def _damage(self, tp: TheirTopicPartition, offset: int, cause: Exception) -> RecordUnreadable:
        """Bytes from ``offset`` on are no records."""
        error = damaged(tp, offset, cause)
        again_at_s = self._loop.time() + self._rest_s * _RESTS_BEFORE_DAMAGED_BYTES_ARE_FETCHED
        self._core._records[tp] = Damaged(error, again_at_s)
        self.live.state_value(tp).consumed_to(offset)
        self._stopped(tp)
        return error

    def _stopped(self, tp: TheirTopicPartition) -> None:
        self._touched[TopicPartition(*tp)] = None
        self._core._records.move_to_end(tp)  # the others' records before the next attempt

    def _drop(self, tp: TheirTopicPartition) -> None:
        """Forget what is buffered of a partition; it is fetched again from its position."""
        del self._core._records[tp]
        self._wake_fetcher()

    def _forget_hand_out(self, tp: TopicPartition) -> None:
        self._touched.pop(tp, None)
        self.hand_outs.drop(tp)

    def _on_live_changed(self, ceased: Collection[tuple[str, int]]) -> None:
        if self._fetcher is None:
            return  # being built
        for tp in ceased:
            self._fetcher._records.pop(tp, None)
        self._wake_fetcher()

    def _wake_fetcher(self) -> None:
        self._core._notify(self._core._wait_consume_future)

    def _rest(self, tp: TopicPartition) -> None:
        """The broker refused a fetch of this partition: leave it out for a while."""
        if tp in self._resting:
            return
        self.live.rest(tp, resting=True)
        self._resting[tp] = self._loop.call_later(self._rest_s, self._rested, tp)

    def _rested(self, tp: TopicPartition) -> None:
        del self._resting[tp]
        self.live.rest(tp, resting=False)


def _next_record(entry: FetchResult, state: Any) -> Any:
    """What aiokafka's ``FetchResult.getone`` does, for who has looked at the state of the partition
    already: that one looks it up twice more, for each record."""
    records: Any = entry._partition_records
    if records is None or state._paused or state._position != records.next_fetch_offset:
        return None
    record: Any = next(records, None)
    state._position = records.next_fetch_offset  # also when only markers were left
    return record


def _next_offset(entry: FetchResult) -> int:
    records: Any = entry._partition_records
    offset: int = records.next_fetch_offset
    return offset


def _ignore(_tp: object, _offset: int, _cause: Exception) -> None:
    """Until a fetch path is there."""

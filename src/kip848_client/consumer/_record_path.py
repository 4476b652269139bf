"""The path of a record from the fetch core's buffer to the application.

``RecordPath`` delivers records one by one, in lists or as views, and tracks which of them the
application still holds, in ``_held`` per task; the caller passes the task and reports when it asks
again. ``report`` updates an ``OffsetTracker`` on request.

Nothing here awaits between checking a partition and delivering its records, so a partition that was
held or revoked between two awaits cannot leak a record.

The fast way
------------
Iteration takes records directly from ``current``, the iterator of the batch being read, and leaves
the last one in ``newest``. Positions are recorded later, by ``settle``, before they are read.
``current`` is empty whenever there is something else to do: at the end of a batch, after a change
of what may be delivered, after any other way of taking records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kip848_client.consumer._unpacking import UnpackingThread
from kip848_client.core.fetch import (
    BufferRead,
    Cursor,
    ErrorDelivered,
    Event,
    FetchCore,
    Positioned,
    Slice,
    Undecodable,
)
from kip848_client.core.offsets import CommittableOffset, InFlight, OffsetTracker
from kip848_client.core.types import TopicPartition
from kip848_client.errors import BatchUnreadable, Kip848Error, RecordUnreadable, not_assigned
from kip848_client.records import (
    STOPS,
    AheadReader,
    Decoding,
    Gathered,
    NotMade,
    NotUnpacked,
    Record,
    RecordBatchView,
    SliceReader,
)

__all__ = ["RecordPath"]

K = TypeVar("K")
V = TypeVar("V")

_NOTHING: Final[Iterator[Any]] = iter(())

Reader = SliceReader | AheadReader
Only = Collection[TopicPartition]
"""Partitions that a call is limited to; empty for all."""


class _Reading(NamedTuple):
    """A slice being read. The core may give it another cursor."""

    slice: Slice
    cursor: Cursor
    reader: Reader


class _Read(NamedTuple):
    """Number of records read from a slice, and where reading started."""

    reading: _Reading
    before: CommittableOffset
    records: int

    def undo(self) -> None:
        """Put the records back, unless the position was moved meanwhile."""
        slice_, cursor, reader = self.reading
        if cursor is slice_.cursor:
            reader.go_back(self.before.offset, self.before.leader_epoch)


class RecordPath(Generic[K, V]):
    """Records of the assigned partitions. ``post`` passes an event to the core; ``moved`` is called
    when a position changed other than by delivery, ``handed_out`` with each slice that was
    delivered to its end."""

    def __init__(
        self,
        core: FetchCore,
        post: Callable[[Event], None],
        tracker: OffsetTracker,
        decoding: Decoding,
        moved: Callable[[], None],
        handed_out: Callable[[Slice], None] | None = None,
    ) -> None:
        self._handed_out = handed_out
        self._core = core
        self._post = post
        self._tracker = tracker
        self.decoding: Final = decoding
        self._reader_of: type[Reader] = AheadReader if decoding.is_async else SliceReader
        self._moved = moved
        self._readings: dict[TopicPartition, _Reading] = {}
        self._waiters: set[asyncio.Future[None]] = set()
        self._unpacking = UnpackingThread(self.wake)
        self._in_flight = InFlight()
        self._held = self._in_flight.of(None)
        self._touched: dict[TopicPartition, None] = {}
        self._reading: _Reading | None = None
        """The slice that ``current`` reads, if it is not empty."""
        self.current: Iterator[Record[K, V]] = _NOTHING
        """The fast path; see the module."""
        self.newest: Record[K, V] | None = None
        """The last record taken by the fast path, until ``settle``."""

    # -- handing out -------------------------------------------------------------------------

    def serve(self, holder: object) -> None:
        """Deliver to this task from now on; it is done with the records of the fast path."""
        self.stop_fast_way()
        self._held = self._in_flight.of(holder)

    def take_one(self, only: Only = ()) -> Record[K, V] | None:
        """The next available record, or ``None``. Raises ``RecordUnreadable``, and ``NotMade`` if
        async deserializers must run first."""
        self.stop_fast_way()
        core = self._core
        later: set[TopicPartition] = set()
        while (slice_ := core.next_slice(only)) is not None:
            tp, cursor = slice_.tp, slice_.cursor
            self._touched[tp] = None
            reading = self._reading_of(slice_)
            before = CommittableOffset(cursor.consumed, cursor.consumed_epoch)
            changes = core.changes
            try:
                record: Record[K, V] | None = reading.reader.one()
            except NotUnpacked as err:
                self._unpacking.begin(err.work)
                core.turn(tp)
                later.add(tp)
                if all(each.tp in later for each in core.slices(only)):
                    return None
                continue
            except STOPS as err:
                self._damaged(slice_, err)
                if cursor.readable:
                    return None  # the event was dropped: the consumer has ended
                continue
            except RecordUnreadable:
                core.turn(tp)  # records of other partitions before the next attempt
                raise
            if record is None:
                self._finish(slice_)
                self._post(BufferRead())
                continue
            if core.changes == changes:
                self._reading = reading  # otherwise a deserializer has paused it, sought, ...
            self._open(slice_, before)
            return record
        return None

    def begin_fast_way(self) -> None:
        """Begin at the record just delivered: it is the only one its holder has, and is done when
        the holder asks for the next."""
        if self._reading is not None:
            self.current = self._reading.reader.current

    def fast_way_failed(self) -> None:
        """Leave the fast path after an unreadable record: the slow path raises the reason."""
        if self._reading is not None:
            self._reading.reader.resume()
        self.stop_fast_way()

    def stop_fast_way(self) -> None:
        """Record the position; the next record is taken by the slow path."""
        self.settle()
        self.current, self._reading = _NOTHING, None

    def settle(self) -> None:
        """Record the position of the records taken by the fast path."""
        newest, reading = self.newest, self._reading
        self.newest = None
        if newest is None or reading is None:
            return  # a deserializer ended the fast path: the previous record is open instead
        # not the first record of its batch, so the previous one has the batch's epoch
        before = CommittableOffset(newest.offset, reading.cursor.consumed_epoch)
        self._held.clear()
        self._held.add(reading.slice.tp, before)
        self._touched[reading.slice.tp] = None

    def take_many(
        self, only: Only = (), records_max: int | None = None
    ) -> dict[TopicPartition, list[Record[K, V]]]:
        """Available records, at most ``records_max``, by partition. Records before an unreadable
        one are delivered; the next call raises ``RecordUnreadable``. Raises ``NotMade`` if
        everything available needs async deserializers first."""

        def take(reader: Reader, _slice: Slice, left: int | None) -> list[Record[K, V]]:
            return reader.take(left)

        return self._take(take, only, records_max)

    def take_batches(
        self, only: Only = (), records_max: int | None = None
    ) -> dict[TopicPartition, RecordBatchView[K, V]]:
        """As ``take_many``, without an object per record."""

        def take(reader: Reader, slice_: Slice, left: int | None) -> RecordBatchView[K, V]:
            gathered = Gathered() if left is None else Gathered(left)
            reader.fill(gathered)
            return RecordBatchView(slice_.tp, gathered, self.decoding)

        return self._take(take, only, records_max)

    def _take(
        self, take: Callable[[Reader, Slice, int | None], Any], only: Only, left: int | None
    ) -> dict[TopicPartition, Any]:
        """Take the first slice of each partition; the following ones if that yields nothing."""
        self.stop_fast_way()
        while slices := self._core.slices(only):
            read: list[_Read] = []
            try:
                taken, finished = self._take_firsts(take, slices, left, read)
            except (NotMade, RecordUnreadable):
                raise
            except BaseException:  # Ctrl-C, out of memory: the records are lost, so undo
                for each in read:
                    each.undo()
                raise
            if taken or not finished:
                return taken
        return {}

    def _take_firsts(
        self,
        take: Callable[[Reader, Slice, int | None], Any],
        slices: Iterable[Slice],
        left: int | None,
        read: list[_Read],
    ) -> tuple[dict[TopicPartition, Any], bool]:
        """Take records of these slices; returns whether one is at its end. ``read`` gets each that
        was read."""
        taken: dict[TopicPartition, Any] = {}
        finished = False
        unmade: list[AheadReader] = []
        for slice_ in slices:
            if not slice_.cursor.readable:
                continue  # because an earlier slice was damaged
            before = CommittableOffset(slice_.cursor.consumed, slice_.cursor.consumed_epoch)
            reading = self._reading_of(slice_)
            try:
                records = self._take_of(take, reading, left)
            except NotMade as err:
                unmade += err.readers
                continue
            except RecordUnreadable:
                if taken:
                    continue  # the records first, the error with the next call
                self._finish_reading(self._book(read) or finished)
                raise
            if records is None:
                finished = finished or not slice_.cursor.readable
                continue
            read.append(_Read(reading, before, len(records)))
            if len(records):
                taken[slice_.tp] = records
                if left is not None:
                    left -= len(records)
                    if left <= 0:
                        break
        finished = self._finish_reading(self._book(read) or finished)
        if unmade and not taken:
            raise NotMade(unmade)
        return taken, finished

    def _take_of(
        self, take: Callable[[Reader, Slice, int | None], Any], reading: _Reading, left: int | None
    ) -> Any:
        """The view of a slice; ``None`` if it is damaged or has to be decompressed first."""
        slice_ = reading.slice
        self._touched[slice_.tp] = None
        try:
            return take(reading.reader, slice_, left)
        except NotUnpacked as err:
            self._unpacking.begin(err.work)
            return None
        except STOPS as err:
            self._damaged(slice_, err)
            return None
        except RecordUnreadable:
            self._core.turn(slice_.tp)
            raise

    def _book(self, read: Iterable[_Read]) -> bool:
        """Record these as delivered; returns whether a slice is at its end."""
        finished = False
        for reading, before, records in read:
            slice_ = reading.slice
            if records:
                self._open(slice_, before)
            if reading.reader.done:
                self._finish(slice_)
                finished = True
        return finished

    def _open(self, slice_: Slice, before: CommittableOffset) -> None:
        """Add a delivered slice to the holder, unless a deserializer has moved the position."""
        if slice_.cursor.generation == self._core.generation(slice_.tp):
            self._held.add(slice_.tp, before)

    def _finish(self, slice_: Slice) -> None:
        self._readings.pop(slice_.tp, None)
        if self._handed_out is not None:
            self._handed_out(slice_)
        self._core.finish(slice_)

    def _finish_reading(self, finished: bool) -> bool:
        if finished:
            self._post(BufferRead())
        return finished

    def raise_pending_error(self, only: Only = ()) -> None:
        """Raise the error of a stopped partition whose records were all delivered, if any."""
        trouble = self._core.pending_error(only)
        if trouble is not None:
            tp, error = trouble
            self._post(ErrorDelivered(tp))
            raise error.with_traceback(None)

    def require_assigned(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Raise ``NotAssigned`` unless all of them are assigned."""
        for topic, partition in partitions:
            if not self._core.generation(TopicPartition(topic, partition)):
                raise not_assigned(topic, partition)

    # -- waiting for records -----------------------------------------------------------------

    def waiter(self) -> asyncio.Future[None]:
        """A future that ends when records may be available, or at ``wake``."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(future)
        future.add_done_callback(self._waiters.discard)
        return future

    def wake(self) -> None:
        """Let all calls waiting for records check again."""
        for future in list(self._waiters):
            if not future.done():
                future.set_result(None)

    # -- notifications of the core -----------------------------------------------------------

    def positioned(self, told: Positioned) -> None:
        tp, offset = told.partition, told.offset
        self.forget((tp,))
        committed = offset if told.committed else None
        self._tracker.seek(tp, offset, told.leader_epoch, committed=committed)
        self._moved()

    def readable(self) -> None:
        self.wake()
        self._moved()  # or there is an error

    def changed(self) -> None:
        self.stop_fast_way()
        for tp, reading in list(self._readings.items()):
            if reading.cursor.generation != self._core.generation(tp):
                del self._readings[tp]

    # -- records in flight -------------------------------------------------------------------

    @property
    def in_flight(self) -> InFlight:
        """The records held by tasks."""
        self.settle()
        return self._in_flight

    def report(self) -> None:
        """Update the tracker: what is done, and what is delivered and still open."""
        open_before = self.in_flight.open()
        delivered: list[tuple[TopicPartition, int, int]] = []
        for tp in self._touched:
            position = self._core.position(tp)
            if position is None:
                continue
            epoch = self._core.position_epoch(tp)
            before = open_before.get(tp)
            if before is None:
                self._tracker.delivered(tp, position, epoch)
            else:
                self._tracker.delivered(tp, before.offset, before.leader_epoch)
                delivered.append((tp, position, epoch))
        self._tracker.confirm()
        for each in delivered:
            self._tracker.delivered(*each)
        self._touched = dict.fromkeys(open_before)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget delivered records of these: the partitions are gone, or were moved."""
        for tp in partitions:
            self.in_flight.drop(tp)
            self._touched.pop(tp, None)
            if self._reading is not None and self._reading.slice.tp == tp:
                self.current, self._reading = _NOTHING, None

    # -- inside ------------------------------------------------------------------------------

    def _reading_of(self, slice_: Slice) -> _Reading:
        reading = self._readings.get(slice_.tp)
        if reading is None or reading.slice is not slice_ or reading.cursor is not slice_.cursor:
            reading = _Reading(slice_, slice_.cursor, self._reader_of(slice_, self.decoding))
            self._readings[slice_.tp] = reading
        return reading

    def _damaged(self, slice_: Slice, error: Kip848Error) -> None:
        """Report bytes that cannot be decoded from the cursor on; the core fetches them again, or
        stops."""
        self._readings.pop(slice_.tp, None)
        cursor = slice_.cursor
        is_final = isinstance(error, BatchUnreadable)
        self._post(Undecodable(slice_.tp, cursor.generation, cursor.consumed, error, is_final))

"""The hand-out, as an application sees it: slices are read record by record, a poll takes some, and
the next one goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random
from typing import Protocol

from kip848_client.core.fetch import BatchRef, BufferRead, Event, FetchCore, Slice, Undecodable
from kip848_client.core.types import TopicPartition
from kip848_client.errors import RecordUnreadable
from mock_coordinator.core.logs.record_batch import checksum_is_right, read_header, records_of

__all__ = ["Observer", "RecordReader"]


class Observer(Protocol):
    """Who gets the records."""

    def record(self, taken: Slice, offset: int, value: bytes) -> None:
        """One is handed out. The core may be given events meanwhile, by which the rest of the slice
        can become void."""
        ...

    def finished(self, taken: Slice) -> None:
        """All of a slice was read, what it hides included."""
        ...


class RecordReader:
    """Reads what a core holds."""

    def __init__(
        self, core: FetchCore, feed: Callable[[Event], None], observer: Observer, rng: Random
    ) -> None:
        self._core = core
        self._feed = feed
        self._observer = observer
        self._rng = rng
        self.damaged = 0
        """How many slices had a wrong checksum."""

    def poll(self, records_max: int, only: Collection[TopicPartition] = ()) -> int:
        """Read up to that many records; returns how many there were."""
        left = records_max
        finished = False
        if self._rng.random() < 0.3:
            left, finished = self._read_each(left, only)
        else:
            while left > 0 and (taken := self._core.next_slice(only)) is not None:
                left, whole = self._read(taken, left)
                finished = finished or whole
        if finished:
            self._feed(BufferRead())
        return records_max - left

    def _read_each(self, left: int, only: Collection[TopicPartition]) -> tuple[int, bool]:
        """The first slice of each partition, as ``getmany`` does."""
        core, finished = self._core, False
        for taken in core.slices(only):
            changes = core.changes
            if left > 0:
                left, whole = self._read(taken, left)
                finished = finished or whole
            if core.changes != changes:
                break
        return left, finished

    def _read(self, taken: Slice, left: int) -> tuple[int, bool]:
        """Returns how many records there is room for after that, and whether all was read."""
        for batch in taken.batches:
            if batch.next_offset <= taken.cursor.consumed:
                continue
            left, goes_on = self._read_batch(taken, batch, left)
            if not goes_on:
                return left, False
        self._core.finish(taken)
        self._observer.finished(taken)
        return left, True

    def _read_batch(self, taken: Slice, batch: BatchRef, left: int) -> tuple[int, bool]:
        core, cursor = self._core, taken.cursor
        data = taken.raw[batch.start : batch.end]
        header = read_header(data)
        if not checksum_is_right(header, data):
            self._damaged(taken, max(batch.base_offset, cursor.consumed))
            return left, False
        if batch.skip:  # what says so is in the header, which had to be checked first
            return left, True
        for record in records_of(header, data) or ():
            offset = batch.base_offset + record.offset_delta
            if offset < cursor.consumed:
                continue
            if left == 0:
                core.turn(taken.tp)
                return left, False
            changes = core.changes
            cursor.consumed, cursor.consumed_epoch = offset + 1, batch.leader_epoch
            left -= 1
            self._observer.record(taken, offset, record.value or b"")
            if core.changes != changes:
                return left, False
        return left, True

    def _damaged(self, taken: Slice, offset: int) -> None:
        tp = taken.tp
        self.damaged += 1
        error = RecordUnreadable(
            "the checksum is wrong", topic=tp.topic, partition=tp.partition, offset=offset
        )
        self._feed(Undecodable(tp, taken.cursor.generation, offset, error))

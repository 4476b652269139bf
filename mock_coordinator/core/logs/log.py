"""The record log of each partition: raw batches in memory, addressed by offset.

There is one replica, so a batch is committed when it is appended: the high watermark is the end of
the log. The last stable offset is the start of the oldest open transaction, or else the high
watermark; readers select one by isolation level, and learn which records below it belong to aborted
transactions. ``Logs`` finds the log of a partition by topic id, so that a topic that was deleted
and created again starts empty. It also collects the partitions with new records, for the core,
which wakes the parked fetches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from kip848_client.core.types import TopicId, TopicIdPartition
from mock_coordinator.core.logs.aborted_transactions import (
    AbortedTransaction,
    AbortedTransactions,
    OffsetIndex,
)
from mock_coordinator.core.logs.control_records import end_transaction_marker, read_marker
from mock_coordinator.core.logs.producer_state import ProducerStates, ProducerWatch
from mock_coordinator.core.logs.record_batch import (
    NO_PRODUCER_ID,
    BatchError,
    BatchHeader,
    read_header,
    records_of,
    with_base_offset,
)
from mock_coordinator.core.topics.catalog import Topic

__all__ = ["Logs", "PartitionLog", "StoredBatch", "TimestampedOffset"]


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch in a log. ``data`` has its final base offset and leader epoch."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    data: bytes


@dataclass(frozen=True, slots=True)
class TimestampedOffset:
    """What a search by time finds."""

    timestamp: int
    offset: int


class PartitionLog:
    """The batches of one partition, oldest first. ``watch`` is called when there are producers."""

    def __init__(self, watch: ProducerWatch | None = None) -> None:
        self.batches: list[StoredBatch] = []
        self._watch = watch or ProducerWatch()
        self.producers = ProducerStates(self._watch)
        self.log_start_offset = 0
        self.leader_epoch = 0
        self._epochs: list[tuple[int, int]] = [(0, 0)]
        """Each leader epoch that wrote something, and the last one, with where it began."""
        self._last_offsets: list[int] = []
        self._positions: list[int] = []
        self._size_bytes = 0
        self._aborted = AbortedTransactions()
        self._index = OffsetIndex()
        self._end = 0

    @property
    def high_watermark(self) -> int:
        """Everything below it may be read."""
        return self._end

    @property
    def last_stable_offset(self) -> int:
        """Everything below it is decided; what read_committed consumers may read."""
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self._end
        if unstable < self.log_start_offset:
            return self.batches[0].base_offset if self.batches else self._end
        return unstable

    def readable_end(self, isolation_level: int) -> int:
        """Where a reader of this isolation level (0 uncommitted, 1 committed) has to stop."""
        return self.last_stable_offset if isolation_level == 1 else self.high_watermark

    def append(self, data: bytes, records: int, max_timestamp: int) -> int:
        """Add a checked batch of that many ``records``; returns its base offset."""
        base = self._end
        stored = with_base_offset(data, base, self.leader_epoch)
        self._add(base, records, max_timestamp, stored)
        return base

    def restore(self, data: bytes) -> None:
        """Add a batch as it was stored before, at its offset and with what it says of producers and
        transactions; a log is read from a disk in this way, batch after batch.

        Raises ``BatchError`` for one that ends before the log does.
        """
        header = read_header(data)
        if header.base_offset < self._end:
            raise BatchError(f"a batch at {header.base_offset} in a log that ends at {self._end}")
        if header.leader_epoch > self.leader_epoch:
            self._end = header.base_offset
            self.begin_epoch(header.leader_epoch)
        self._add(header.base_offset, header.last_offset_delta + 1, header.max_timestamp, data)
        if header.is_control:
            self._restore_marker(header, data)
        elif header.producer_id != NO_PRODUCER_ID:
            self.producers.appended(header, header.base_offset, header.max_timestamp)

    def _restore_marker(self, header: BatchHeader, data: bytes) -> None:
        for record in records_of(header, data) or ():
            committed, epoch = read_marker(record.key or b"", record.value or b"")
            producer = (header.producer_id, header.producer_epoch)
            first = self.producers.ended(header.max_timestamp, *producer, epoch)
            if first is not None and not committed:
                stable = self.last_stable_offset
                self._aborted.add(
                    AbortedTransaction(header.producer_id, first, header.base_offset, stable)
                )

    def replace(self, batches: Sequence[StoredBatch]) -> None:
        """Compaction: these batches are what is left, in order, each at its old offset. The end of
        the log stays where it is, and so does what is known of producers."""
        self.batches = []
        self._last_offsets, self._positions = [], []
        self._index, self._size_bytes = OffsetIndex(), 0
        end = self._end
        for batch in batches:
            count = batch.last_offset - batch.base_offset + 1
            self._add(batch.base_offset, count, batch.max_timestamp, batch.data)
        self._end = end

    def forget_aborted_before(self, offset: int) -> None:
        """No reader will meet records of transactions that were aborted below an offset any
        more."""
        self._aborted.forget_before(offset)

    def restore_all(self, batches: Sequence[bytes], start: int) -> None:
        """Read an empty log back, which begins at an offset. Raises as ``restore``."""
        for data in batches:
            self.restore(data)
        self._end = max(self._end, start)
        self.delete_before(start)

    def since(self, offset: int) -> tuple[bytes, ...]:
        """The batches that begin at an offset or after it."""
        index = bisect_left(self._last_offsets, offset)
        return tuple(b.data for b in self.batches[index:] if b.base_offset >= offset)

    def truncate(self, offset: int) -> None:
        """Forget the batches from an offset on, with what they said of producers, and the leader
        epochs that began there."""
        kept = [batch.data for batch in self.batches if batch.last_offset < offset]
        epochs = self._epochs
        self.replace(())
        self.producers = ProducerStates(self._watch)
        self._aborted = AbortedTransactions()
        # the first batch may begin before the log does
        self._end = min([self.log_start_offset, *(read_header(data).base_offset for data in kept)])
        self._epochs = [(self.leader_epoch, self._end)]
        for data in kept:
            self.restore(data)
        self._end = max(self._end, self.log_start_offset)
        left = [(epoch, start) for epoch, start in epochs if start < self._end]
        if not left or left[-1][0] != self.leader_epoch:
            left.append((self.leader_epoch, self._end))
        self._epochs = left

    def _add(self, base: int, records: int, max_timestamp: int, stored: bytes) -> None:
        self._end = base + records
        self.batches.append(StoredBatch(base, self._end - 1, max_timestamp, stored))
        self._last_offsets.append(self._end - 1)
        self._positions.append(self._size_bytes)
        self._index.appended(self._size_bytes, len(stored), self._end - 1)
        self._size_bytes += len(stored)

    def end_transaction(
        self,
        now_ms: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        committed: bool,
    ) -> int:
        """Add the marker that ends a producer's transaction, open here or not; returns its offset.

        The caller has asked ``producers.marker_refusal``.
        """
        marker = end_transaction_marker(
            now_ms, producer_id, producer_epoch, coordinator_epoch, committed=committed
        )
        offset = self.append(marker, 1, now_ms)
        first = self.producers.ended(now_ms, producer_id, producer_epoch, coordinator_epoch)
        if first is not None and not committed:
            self._aborted.add(
                AbortedTransaction(producer_id, first, offset, self.last_stable_offset)
            )
        return offset

    def aborted_transactions(self, offset: int, read_bytes: int) -> tuple[AbortedTransaction, ...]:
        """What a reader of ``read_bytes`` from ``offset`` on has to leave out, and maybe more."""
        index = bisect_left(self._last_offsets, offset)
        if index == len(self._positions):
            return ()
        end = self._index.offset_from(self._positions[index] + read_bytes)
        return self._aborted.between(offset, self._end if end is None else end)

    def read(
        self, offset: int, max_bytes: int, *, isolation_level: int = 0, at_least_one: bool = False
    ) -> bytes:
        """Batches from the one that holds ``offset`` on, cut at ``max_bytes`` as a disk read is.

        The cut may leave a part of a batch at the end, which clients ignore, but never a part of
        the first one. With ``at_least_one`` that comes whole even when it is larger.
        """
        end = self.readable_end(isolation_level)
        index = bisect_left(self._last_offsets, offset)
        found: list[bytes] = []
        room = max_bytes
        while index < len(self.batches) and self.batches[index].base_offset < end:
            data = self.batches[index].data
            if at_least_one and not found:
                room = max(room, len(data))
            if room <= 0 or (not found and room < len(data)):
                break
            found.append(data[:room])
            room -= len(data)
            index += 1
        return b"".join(found)

    def begin_epoch(self, epoch: int) -> None:
        """Another leader takes over: what comes from now on is of its epoch. An epoch in which
        nothing was written is forgotten."""
        self.leader_epoch = epoch
        kept = [(known, start) for known, start in self._epochs if start < self._end]
        self._epochs = [*kept, (epoch, self._end)]

    def delete_before(self, offset: int) -> None:
        """Let the log begin at an offset that is not above the high watermark (KIP-107). Batches
        that end below it are gone; of the one that holds it, clients skip the head."""
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        begun = [epoch for epoch, start in self._epochs if start <= offset]
        later = [(epoch, start) for epoch, start in self._epochs if start > offset]
        self._epochs = [*((epoch, offset) for epoch in begun[-1:]), *later]
        gone = bisect_left(self._last_offsets, offset)
        for entries in (self.batches, self._last_offsets, self._positions):
            del entries[:gone]

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """``(epoch, end offset)`` of a leader epoch, or of the one before it when nothing was
        written in it (KIP-320); ``(-1, -1)`` when it is not known yet."""
        if epoch == self.leader_epoch:
            return epoch, self._end
        if not 0 <= epoch < self.leader_epoch:
            return -1, -1
        later = next(start for known, start in self._epochs if known > epoch)
        earlier = [known for known, _ in self._epochs if known <= epoch]
        return (earlier[-1] if earlier else epoch), later

    def first_at_or_after(self, timestamp: int) -> TimestampedOffset | None:
        """The first record with at least this timestamp."""
        for batch in self.batches:
            if batch.max_timestamp >= timestamp:
                found = _first_in(batch, timestamp, self.log_start_offset)
                if found is not None:
                    return found
        return None

    def latest_timestamp(self) -> TimestampedOffset | None:
        """The record with the largest timestamp, the first of them when there are several."""
        if not self.batches:
            return None
        newest = self.batches[0]
        for batch in self.batches:
            if batch.max_timestamp > newest.max_timestamp:
                newest = batch
        return _first_in(newest, newest.max_timestamp)


def _first_in(batch: StoredBatch, timestamp: int, lowest: int = 0) -> TimestampedOffset | None:
    header = read_header(batch.data)
    if header.is_log_append_time:
        return TimestampedOffset(header.max_timestamp, max(batch.base_offset, lowest))
    try:
        records = records_of(header, batch.data)
        if records is None:  # it unpacks to too much: the batch is as precise as it gets
            return TimestampedOffset(batch.max_timestamp, max(batch.base_offset, lowest))
        for record in records:
            found = header.base_timestamp + record.timestamp_delta
            offset = batch.base_offset + record.offset_delta
            if found >= timestamp and offset >= lowest:
                return TimestampedOffset(found, offset)
    except BatchError:  # it was accepted unopened, and another codec version cannot read it
        return TimestampedOffset(batch.max_timestamp, max(batch.base_offset, lowest))
    return None


class Logs:
    """The logs of all partitions, made when they are first asked for."""

    def __init__(self) -> None:
        self._watch = ProducerWatch()
        self._logs: dict[TopicIdPartition, PartitionLog] = {}
        self._internal: dict[tuple[str, int], PartitionLog] = {}
        self._grown: dict[TopicIdPartition, None] = {}
        self._unsaved: dict[TopicIdPartition, None] = {}
        self._saved_to: dict[TopicIdPartition, int] | None = None

    def of(self, topic: Topic, partition: int) -> PartitionLog | None:
        """The log of a partition, ``None`` when the topic has no such partition."""
        if not 0 <= partition < topic.partitions:
            return None
        key = (topic.topic_id, partition)
        log = self._logs.get(key)
        if log is None:
            log = self._internal.pop((topic.name, partition), None) or PartitionLog(self._watch)
            self._logs[key] = log
        return log

    def of_internal(self, topic: Topic | None, name: str, partition: int) -> PartitionLog:
        """The log of a partition of an internal topic, which may not exist yet: a coordinator that
        is asked directly writes before any client has looked for one."""
        log = None if topic is None else self.of(topic, partition)
        if log is None:
            log = self._internal.setdefault((name, partition), PartitionLog(self._watch))
        return log

    @property
    def have_producers(self) -> bool:
        """Whether any partition knows any producer; it may be that the last one was forgotten with
        a topic."""
        return self._watch.any

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget the producers, in all partitions, that were silent for so long."""
        self._watch.any = False
        for log in (*self._logs.values(), *self._internal.values()):
            log.producers.expire(now_ms, expiration_ms)
            self._watch.any = self._watch.any or len(log.producers) > 0

    def note_growth(self, topic: Topic, partition: int) -> None:
        """Records were appended."""
        self._grown[topic.topic_id, partition] = None
        if self._saved_to is not None:
            self._unsaved[topic.topic_id, partition] = None

    def take_grown(self) -> tuple[TopicIdPartition, ...]:
        """The partitions that got records since the last call."""
        if not self._grown:
            return ()
        grown = tuple(self._grown)
        self._grown = {}
        return grown

    def keep_unsaved(self) -> None:
        """From now on ``take_unsaved`` returns new batches; existing ones count as saved."""
        self._saved_to = {key: log.high_watermark for key, log in self._logs.items()}

    def take_unsaved(self) -> tuple[tuple[TopicId, int, tuple[bytes, ...]], ...]:
        """What was appended since the last call, by partition; nothing before ``keep_unsaved``."""
        if not self._unsaved or self._saved_to is None:
            return ()
        found: list[tuple[TopicId, int, tuple[bytes, ...]]] = []
        for key in self._unsaved:
            log = self._logs.get(key)
            if log is not None:
                found.append((*key, log.since(self._saved_to.get(key, 0))))
                self._saved_to[key] = log.high_watermark
        self._unsaved = {}
        return tuple(found)

    def known(self, topic_id: TopicId, partition: int) -> PartitionLog | None:
        """The log of a partition, if it was ever used."""
        return self._logs.get((topic_id, partition))

    def all(self) -> tuple[tuple[TopicIdPartition, PartitionLog], ...]:
        """All logs of topics that exist."""
        return tuple(self._logs.items())

    def drop_topic(self, topic_id: TopicId, partitions: int) -> None:
        """Forget the logs of a deleted topic."""
        for partition in range(partitions):
            self._logs.pop((topic_id, partition), None)
            if self._saved_to is not None:
                self._saved_to.pop((topic_id, partition), None)

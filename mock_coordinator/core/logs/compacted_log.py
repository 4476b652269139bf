"""The log of a coordinator: one partition of an internal topic, compacted as it grows.

Theory of operation
===================

A coordinator's decisions are written as batches, which ``Fetch`` reads like any other, and a new
coordinator starts from them alone. Batches of a transaction belong to their producer, and its end
is a marker, exactly as in the log of a data partition.

The log is compacted when it has grown by as many records as it had, and at least by
``_GROWTH_MIN``: of each key the last record stays, at its offset. So its size follows the current
state, independent of how often that changed, and each record is read twice on average. A tombstone
stays for one more round, for readers that are behind. Nothing is changed from the first open
transaction on. Below it, records of ended transactions are rewritten as if there had been no
transaction, which gives the same state: a record counts from where it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mock_coordinator.core.logs.batch_writer import thinned_batch
from mock_coordinator.core.logs.control_records import read_marker
from mock_coordinator.core.logs.log import Logs, PartitionLog, StoredBatch
from mock_coordinator.core.logs.record_batch import (
    BatchHeader,
    RecordFields,
    read_header,
    records_of,
)
from mock_coordinator.core.topics.catalog import Catalog

__all__ = ["CompactedLog"]

_GROWTH_MIN: Final = 1024


class CompactedLog:
    """A partition of an internal topic. ``compacts`` False keeps every record, for tests
    that truncate the log."""

    def __init__(self, catalog: Catalog, logs: Logs, topic_name: str, partition: int) -> None:
        self._catalog: Final = catalog
        self._logs: Final = logs
        self._topic_name: Final = topic_name
        self._partition: Final = partition
        self.compacts = True
        self._grown_by = 0
        self._kept = 0
        self._compacted_to = 0

    @property
    def log(self) -> PartitionLog:
        """The log; it exists even before the topic does."""
        topic = self._catalog.topic(self._topic_name)
        return self._logs.of_internal(topic, self._topic_name, self._partition)

    def has_grown(self, by: int) -> None:
        """The log has grown ``by`` records: readers may be woken, and compaction may be due."""
        topic = self._catalog.topic(self._topic_name)
        if topic is not None:
            self._logs.note_growth(topic, self._partition)
        self._grown_by += by
        if self.compacts and self._grown_by >= max(_GROWTH_MIN, self._kept):
            self.compact()

    def truncate(self, offset: int) -> None:
        """Cut the log at the beginning of a decision, as a crash does whose disk was behind. Not
        for a log that was compacted."""
        self.log.truncate(offset)

    # --- Compaction -------------------------------------------------------------------------------

    def compact(self) -> None:
        """Leave the last record of every key, below the first open transaction."""
        log = self.log
        batches = log.batches
        stable = log.last_stable_offset
        # the last batch stays whole: readers find the end of the log by it
        clean = [b for b in batches[:-1] if b.base_offset < stable]
        if not clean:
            self._grown_by = 0
            return
        rest = batches[len(clean) :]
        settled = list(_settled(clean, rest))
        last: dict[bytes, int] = {}
        for header, records in settled:
            for record in records:
                last[record.key or b""] = header.base_offset + record.offset_delta
        for batch in rest:  # what replaces a record may be in the part that stays as it is
            header = read_header(batch.data)
            if not header.is_transactional:
                for record in records_of(header, batch.data) or ():
                    last[record.key or b""] = header.base_offset + record.offset_delta
        kept: list[StoredBatch] = []
        count = 0
        for header, records in settled:
            left = [r for r in records if self._stays(header, r, last)]
            count += len(left)
            if left:
                data = thinned_batch(header, left)
                end = header.base_offset + header.last_offset_delta
                kept.append(StoredBatch(header.base_offset, end, header.max_timestamp, data))
        log.replace([*kept, *rest])
        log.forget_aborted_before(rest[0].base_offset if rest else log.high_watermark)
        self._kept, self._grown_by = count, 0
        self._compacted_to = batches[-1].base_offset if batches else 0

    def _stays(self, header: BatchHeader, record: RecordFields, last: dict[bytes, int]) -> bool:
        offset = header.base_offset + record.offset_delta
        if last[record.key or b""] != offset:
            return False
        return record.value is not None or offset >= self._compacted_to


def _settled(
    clean: Sequence[StoredBatch], rest: Sequence[StoredBatch]
) -> Iterator[tuple[BatchHeader, list[RecordFields]]]:
    """The batches that count: those of no transaction, and of committed ones; no markers."""
    outcomes: dict[int, bool] = {}
    open_batches: dict[int, list[int]] = {}
    for batch in (*clean, *rest):
        header = read_header(batch.data)
        if header.is_control:
            for record in records_of(header, batch.data) or ():
                committed, _ = read_marker(record.key or b"", record.value or b"")
                for base in open_batches.pop(header.producer_id, []):
                    outcomes[base] = committed
        elif header.is_transactional:
            open_batches.setdefault(header.producer_id, []).append(batch.base_offset)
    for batch in clean:
        header = read_header(batch.data)
        counts = outcomes.get(batch.base_offset, False) if header.is_transactional else True
        if counts and not header.is_control:
            yield header, list(records_of(header, batch.data) or ())

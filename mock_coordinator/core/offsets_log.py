"""The journal of a group coordinator as a log: one partition of ``__consumer_offsets``.

Theory of operation
===================

Each decision of the coordinator is one batch, which is read by ``Fetch`` like any other, and is all
that a coordinator knows that takes over. Offsets of a transaction are in batches of their producer,
and its end is a marker, exactly as in the log of a data partition.

The log is compacted as soon as it has grown by as many records as it had, and at least by
``_GROWTH_MIN``: of every key the last record stays, at its offset. So its size follows what the
groups are now, however many heartbeats and commits there were, and each record is looked at twice
on average. A tombstone stays for one more round, for readers that are behind. Nothing is touched
from the first open transaction on; what is decided below it is rewritten as if there had been no
transaction, which gives the same state: a committed offset counts from where it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from mock_coordinator.core.batch_writer import NewRecord, encode_batch, thinned_batch
from mock_coordinator.core.catalog import Catalog
from mock_coordinator.core.control_records import read_marker
from mock_coordinator.core.groups.journal import BatchTooLargeError
from mock_coordinator.core.groups.record_format import (
    RecordFormatError,
    decode_record,
    encode_record,
)
from mock_coordinator.core.groups.records import OffsetCommit, StateRecord, TransactionEnd
from mock_coordinator.core.log import Logs, PartitionLog, StoredBatch
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.record_batch import BatchHeader, RecordFields, read_header, records_of
from mock_coordinator.core.topic_names import OFFSETS_TOPIC

__all__ = ["OffsetsLog"]

_TRANSACTIONAL: Final = 0x10
_COORDINATOR_EPOCH: Final = 0
_GROWTH_MIN: Final = 1024

Listener = Callable[[int, Sequence[StateRecord]], None]
"""(partition, the records of one decision)"""


class OffsetsLog:
    """A ``Journal`` in the log of a partition of ``__consumer_offsets``.

    ``listener`` is told what is appended, in order; it must not change anything. ``compacts`` False
    keeps every record, for whoever wants to cut the log.
    """

    def __init__(self, profile: Profile, catalog: Catalog, logs: Logs, partition: int) -> None:
        self._profile: Final = profile
        self._catalog: Final = catalog
        self._logs: Final = logs
        self._partition: Final = partition
        self.listener: Listener | None = None
        self.compacts = True
        self._grown_by = 0
        self._kept = 0
        self._compacted_to = 0

    @property
    def log(self) -> PartitionLog:
        """The log; it exists even before the topic does."""
        topic = self._catalog.topic(OFFSETS_TOPIC)
        return self._logs.of_internal(topic, OFFSETS_TOPIC, self._partition)

    @property
    def records(self) -> list[StateRecord]:
        """Everything in the log, decoded. Raises ``RecordFormatError`` for what cannot be read."""
        return [record for batch in self.log.batches for record in _decoded(batch)]

    def append(
        self, now_ms: int, records: Sequence[StateRecord], max_bytes: int | None = None
    ) -> None:
        """Write one decision: one batch, or one for each producer and transaction's end in it.

        Raises ``BatchTooLargeError`` for a first batch of more than ``max_bytes``.
        """
        log = self.log
        for (producer, is_end), run in groupby(records, _run_of):
            if is_end:
                self._append_ends(log, now_ms, run)
            else:
                self._append_batch(log, now_ms, producer, list(run), max_bytes)
                max_bytes = None  # once begun, a decision is written to its end
        topic = self._catalog.topic(OFFSETS_TOPIC)
        if topic is not None:
            self._logs.note_growth(topic, self._partition)
        if self.listener is not None:
            self.listener(self._partition, records)
        self._grown_by += len(records)
        if self.compacts and self._grown_by >= max(_GROWTH_MIN, self._kept):
            self.compact()

    def _append_ends(self, log: PartitionLog, now_ms: int, ends: Iterable[StateRecord]) -> None:
        for end in ends:
            if isinstance(end, TransactionEnd):
                log.end_transaction(
                    now_ms,
                    end.producer_id,
                    end.producer_epoch,
                    _COORDINATOR_EPOCH,
                    committed=end.committed,
                )

    def _append_batch(
        self,
        log: PartitionLog,
        now_ms: int,
        producer: tuple[int, int] | None,
        run: Sequence[StateRecord],
        max_bytes: int | None,
    ) -> None:
        entries: list[NewRecord] = []
        for record in run:
            key, value = encode_record(self._profile, record)
            entries.append(NewRecord(value, key))
        if producer is None:
            data = encode_batch(entries, now_ms, base_sequence=0)
            _check_size(data, max_bytes)
            log.append(data, len(entries), now_ms)
            return
        data = encode_batch(
            entries,
            now_ms,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=0,
            attributes=_TRANSACTIONAL,
        )
        _check_size(data, max_bytes)
        base = log.append(data, len(entries), now_ms)
        log.producers.appended(now_ms, read_header(data), base, now_ms)

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
        self._kept, self._grown_by = count, 0
        self._compacted_to = batches[-1].base_offset if batches else 0

    def _stays(self, header: BatchHeader, record: RecordFields, last: dict[bytes, int]) -> bool:
        offset = header.base_offset + record.offset_delta
        if last[record.key or b""] != offset:
            return False
        return record.value is not None or offset >= self._compacted_to


def _check_size(data: bytes, max_bytes: int | None) -> None:
    if max_bytes is not None and len(data) > max_bytes:
        raise BatchTooLargeError(f"a batch of {len(data)} bytes, {max_bytes} are allowed")


def _run_of(record: StateRecord) -> tuple[tuple[int, int] | None, bool]:
    """Records of one producer go into one batch; the end of a transaction is one of its own."""
    if isinstance(record, TransactionEnd):
        return None, True
    return (record.producer if isinstance(record, OffsetCommit) else None), False


def _decoded(batch: StoredBatch) -> Iterator[StateRecord]:
    header = read_header(batch.data)
    for record in records_of(header, batch.data) or ():
        if header.is_control:
            committed, _ = read_marker(record.key or b"", record.value or b"")
            yield TransactionEnd("", header.producer_id, header.producer_epoch, committed)
            continue
        if record.key is None:
            raise RecordFormatError(f"a record without a key at offset {batch.base_offset}")
        decoded = decode_record(record.key, record.value)
        if header.is_transactional and isinstance(decoded, OffsetCommit):
            decoded = replace(decoded, producer=(header.producer_id, header.producer_epoch))
        if decoded is not None:
            yield decoded


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

"""The journal of a group coordinator as a log: one partition of ``__consumer_offsets``.

Theory of operation
===================

Each decision of the coordinator is one batch. Offsets of a transaction are in batches of their
producer, and its end is a marker. ``compacted_log`` keeps the log small: its size follows the
current state of the groups, independent of the number of heartbeats and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from kip848_client.core.outside import from_outside
from mock_coordinator.core.groups.record_format import (
    RecordFormatError,
    decode_record,
    encode_record,
)
from mock_coordinator.core.groups.records.journal import BatchTooLargeError
from mock_coordinator.core.groups.records.state_records import (
    OffsetCommit,
    StateRecord,
    TransactionEnd,
)
from mock_coordinator.core.logs.batch_writer import NewRecord, encode_batch
from mock_coordinator.core.logs.compacted_log import CompactedLog
from mock_coordinator.core.logs.control_records import read_marker
from mock_coordinator.core.logs.log import Logs, PartitionLog, StoredBatch
from mock_coordinator.core.logs.record_batch import read_header, records_of
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.topics.catalog import Catalog
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC

__all__ = ["OffsetsLog"]

_TRANSACTIONAL: Final = 0x10

Listener = Callable[[int, Sequence[StateRecord]], None]
"""(partition, the records of one decision)"""


class OffsetsLog(CompactedLog):
    """A ``Journal`` in the log of a partition of ``__consumer_offsets``."""

    def __init__(self, profile: Profile, catalog: Catalog, logs: Logs, partition: int) -> None:
        super().__init__(catalog, logs, OFFSETS_TOPIC, partition)
        self._profile: Final = profile
        self._listener: Listener | None = None

    def watched_by(self, listener: Listener) -> None:
        """``listener`` gets what is appended from now on, in order; it must not change anything."""
        self._listener = from_outside(listener)

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
        if self._listener is not None:
            self._listener(self._partition, records)
        self.has_grown(len(records))

    def _append_ends(self, log: PartitionLog, now_ms: int, ends: Iterable[StateRecord]) -> None:
        for end in ends:
            if isinstance(end, TransactionEnd):
                log.end_transaction(
                    now_ms,
                    end.producer_id,
                    end.producer_epoch,
                    end.coordinator_epoch,
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
        size = 0
        for record in run:
            key, value = encode_record(self._profile, record)
            entries.append(NewRecord(value, key))
            size += len(key) + len(value or b"")
            _check_size(size, max_bytes)  # the rest need not be written to know that it is too much
        if producer is None:
            data = encode_batch(entries, now_ms, base_sequence=0)
            _check_size(len(data), max_bytes)
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
        _check_size(len(data), max_bytes)
        base = log.append(data, len(entries), now_ms)
        log.producers.appended(read_header(data), base, now_ms)


def _check_size(size: int, max_bytes: int | None) -> None:
    if max_bytes is not None and size > max_bytes:
        raise BatchTooLargeError(f"a batch of at least {size} bytes, {max_bytes} are allowed")


def _run_of(record: StateRecord) -> tuple[tuple[int, int] | None, bool]:
    """Records of one producer go into one batch; the end of a transaction is one of its own."""
    if isinstance(record, TransactionEnd):
        return None, True
    return (record.producer if isinstance(record, OffsetCommit) else None), False


def _decoded(batch: StoredBatch) -> Iterator[StateRecord]:
    header = read_header(batch.data)
    for record in records_of(header, batch.data) or ():
        if header.is_control:
            committed, epoch = read_marker(record.key or b"", record.value or b"")
            yield TransactionEnd("", header.producer_id, header.producer_epoch, committed, epoch)
            continue
        if record.key is None:
            raise RecordFormatError(f"a record without a key at offset {batch.base_offset}")
        decoded = decode_record(record.key, record.value)
        if header.is_transactional and isinstance(decoded, OffsetCommit):
            decoded = replace(decoded, producer=(header.producer_id, header.producer_epoch))
        if decoded is not None:
            yield decoded

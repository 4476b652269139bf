"""The journal of transaction coordinators as a log: the partitions of ``__transaction_state``.

A transactional id belongs to a partition, by its hash, and the leader of that partition coordinates
it. Each change of an id is a batch with one record; ids that expire together are one batch of
tombstones. Only the newest record of an id counts (``CompactedLog``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mock_coordinator.core.groups.record_format import RecordFormatError
from mock_coordinator.core.groups.service.splitting import partition_for
from mock_coordinator.core.logs.batch_writer import NewRecord, encode_batch
from mock_coordinator.core.logs.compacted_log import CompactedLog
from mock_coordinator.core.logs.log import Logs, StoredBatch
from mock_coordinator.core.logs.record_batch import read_header, records_of
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.topics.catalog import Catalog
from mock_coordinator.core.topics.topic_names import TRANSACTIONS_TOPIC
from mock_coordinator.core.transaction_coordinator.record_format import (
    decode_transaction,
    encode_transaction,
)
from mock_coordinator.core.transaction_coordinator.records import TransactionLog

__all__ = ["TransactionLogs", "TransactionsLog"]


class TransactionsLog(CompactedLog):
    """A partition of ``__transaction_state``."""

    def __init__(self, profile: Profile, catalog: Catalog, logs: Logs, partition: int) -> None:
        super().__init__(catalog, logs, TRANSACTIONS_TOPIC, partition)
        self._profile: Final = profile

    @property
    def records(self) -> list[TransactionLog]:
        """Everything in the log, decoded. Raises ``RecordFormatError`` for what cannot be read."""
        return [record for batch in self.log.batches for record in _decoded(batch)]

    def append(self, now_ms: int, records: Sequence[TransactionLog]) -> None:
        """Write one batch; there is at least one record."""
        entries = [_entry(self._profile, record) for record in records]
        self.log.append(encode_batch(entries, now_ms), len(entries), now_ms)
        self.has_grown(len(records))


class TransactionLogs:
    """All partitions, as many as ``partitions`` says."""

    def __init__(self, profile: Profile, catalog: Catalog, logs: Logs, partitions: int) -> None:
        self._profile: Final = profile
        self._catalog: Final = catalog
        self._logs: Final = logs
        self._journals: Final[dict[int, TransactionsLog]] = {}
        self.partitions: Final = partitions

    def partition_of(self, transactional_id: str) -> int:
        """The partition that a transactional id belongs to."""
        return partition_for(transactional_id, self.partitions)

    def of(self, partition: int) -> TransactionsLog:
        """The journal of a partition, the same one at each call."""
        journal = self._journals.get(partition)
        if journal is None:
            journal = TransactionsLog(self._profile, self._catalog, self._logs, partition)
            self._journals[partition] = journal
        return journal

    @property
    def records(self) -> list[TransactionLog]:
        """What the logs hold, partition after partition."""
        return [r for partition in range(self.partitions) for r in self.of(partition).records]

    def append(self, now_ms: int, *records: TransactionLog) -> None:
        """Write records, those of each partition as one batch."""
        places: dict[int, list[TransactionLog]] = {}
        for record in records:
            places.setdefault(self.partition_of(record.transactional_id), []).append(record)
        for partition, together in places.items():
            self.of(partition).append(now_ms, together)


def _entry(profile: Profile, record: TransactionLog) -> NewRecord:
    key, value = encode_transaction(profile, record)
    return NewRecord(value, key)


def _decoded(batch: StoredBatch) -> Iterator[TransactionLog]:
    header = read_header(batch.data)
    for record in records_of(header, batch.data) or ():
        if record.key is None:
            raise RecordFormatError(f"a record without a key at offset {batch.base_offset}")
        decoded = decode_transaction(record.key, record.value)
        if decoded is not None:
            yield decoded

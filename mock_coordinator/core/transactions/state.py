"""All transactional ids of a coordinator, and the one function that changes them."""

from __future__ import annotations

from dataclasses import dataclass

from mock_coordinator.core.transactions.records import (
    NO_PRODUCER_EPOCH,
    TransactionLog,
    TransactionMetadata,
)

__all__ = ["TransactionEntry", "TransactionsState"]


@dataclass(slots=True)
class TransactionEntry:
    """A transactional id: what the log says, and the epoch before the current one.

    The latter tells a repeated InitProducerId, whose first answer was lost, from a fenced producer.
    It is in no record, so such a retry fails after a restart, as in Kafka.
    """

    value: TransactionMetadata
    last_producer_epoch: int = NO_PRODUCER_EPOCH


class TransactionsState:
    """Transactional id -> entry, in order of creation."""

    def __init__(self) -> None:
        self.entries: dict[str, TransactionEntry] = {}

    def apply(self, record: TransactionLog, last_producer_epoch: int = NO_PRODUCER_EPOCH) -> None:
        """Change the state as the record says; a tombstone of something unknown is ignored."""
        if record.value is None:
            self.entries.pop(record.transactional_id, None)
            return
        entry = self.entries.get(record.transactional_id)
        if entry is None:
            self.entries[record.transactional_id] = TransactionEntry(
                record.value, last_producer_epoch
            )
        else:
            entry.value, entry.last_producer_epoch = record.value, last_producer_epoch

"""Where the records of a transaction coordinator go, and what it takes over from.

In a broker these are the logs of ``__transaction_state`` (``core.logs.transactions_log``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mock_coordinator.core.transaction_coordinator.records import TransactionLog

__all__ = ["PartitionJournal", "TransactionJournal"]


class PartitionJournal(Protocol):
    """One partition: an append-only sequence of records, compacted or not."""

    @property
    def records(self) -> Sequence[TransactionLog]:
        """What replaying would read, oldest first. It has to be decoded: do not ask often."""
        ...


class TransactionJournal(Protocol):
    """All partitions."""

    @property
    def partitions(self) -> int:
        """How many there are."""
        ...

    def partition_of(self, transactional_id: str) -> int:
        """The partition that a transactional id belongs to."""
        ...

    def of(self, partition: int) -> PartitionJournal:
        """One of them."""
        ...

    def append(self, now_ms: int, *records: TransactionLog) -> None:
        """Write records, those of each partition as one batch."""
        ...

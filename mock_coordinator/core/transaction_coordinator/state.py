"""All loaded transactional ids, and the one function that changes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from mock_coordinator.core.transaction_coordinator.records import (
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
    """Transactional id -> entry, by partition of ``__transaction_state``: in each of them in order
    of creation."""

    def __init__(self, partition_of: Callable[[str], int]) -> None:
        self._partition_of: Final = partition_of
        self._partitions: Final[dict[int, dict[str, TransactionEntry]]] = {}

    def get(self, transactional_id: str) -> TransactionEntry | None:
        """One id, ``None`` when it is not known here."""
        partition = self._partitions.get(self._partition_of(transactional_id))
        return None if partition is None else partition.get(transactional_id)

    def of_partition(self, partition: int) -> tuple[str, ...]:
        """The ids of a partition."""
        return tuple(self._partitions.get(partition, ()))

    def __iter__(self) -> Iterator[tuple[str, TransactionEntry]]:
        for partition in sorted(self._partitions):
            yield from self._partitions[partition].items()

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    def apply(self, record: TransactionLog, last_producer_epoch: int = NO_PRODUCER_EPOCH) -> None:
        """Change the state as the record says; a tombstone of something unknown is ignored."""
        name = record.transactional_id
        partition = self._partitions.setdefault(self._partition_of(name), {})
        entry = partition.get(name)
        if record.value is None:
            partition.pop(name, None)
        elif entry is None:
            partition[name] = TransactionEntry(record.value, last_producer_epoch)
        else:
            entry.value, entry.last_producer_epoch = record.value, last_producer_epoch

    def unload(self, partition: int) -> None:
        """Forget the ids of a partition, which another node coordinates from now on."""
        self._partitions.pop(partition, None)

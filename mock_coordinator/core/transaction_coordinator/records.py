"""Changes of transactions as data: the records of ``__transaction_state``.

A handler of the transaction coordinator returns one of these records, and applying it is the
change. After a fail-over the new coordinator applies the last record of every transactional id;
nothing else is needed, so the log may be compacted at any time. State that no record has is lost in
a crash: the producer epoch before the last (``TransactionEntry.last_producer_epoch``).

The types mirror Kafka's ``TransactionLogKey`` and ``TransactionLogValue``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

__all__ = [
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "ClientVersion",
    "TransactionLog",
    "TransactionMetadata",
    "TransactionState",
    "TxnPartition",
]

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1

TxnPartition = tuple[str, int]
"""Topic name and partition: transactions name topics, whatever the client does."""


class TransactionState(IntEnum):
    """The state of a transactional id, with its number in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        """``CompleteCommit`` and so on: the name that DescribeTransactions shows."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_complete(self) -> bool:
        """The last transaction has ended in every partition."""
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

    @property
    def is_prepared(self) -> bool:
        """The outcome is decided, and markers are still to be written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class ClientVersion(IntEnum):
    """The ``transaction.version`` that a client's last request spoke."""

    V0 = 0
    """Partitions are added by request, and the epoch stays when a transaction ends."""
    V2 = 2
    """Producing adds partitions, and every end of a transaction raises the epoch (KIP-890)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """One transactional id.

    ``producer_id`` and ``producer_epoch`` are those that requests must carry. When the end of a
    transaction uses up the last epoch, ``next_producer_id`` is the id that takes over once the
    markers are written. ``start_ms`` is -1 before the first transaction.
    """

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: tuple[TxnPartition, ...] = ()
    last_update_ms: int
    start_ms: int = -1
    client_version: ClientVersion = ClientVersion.V0


@dataclass(frozen=True, slots=True)
class TransactionLog:
    """The state of a transactional id from now on; ``value=None`` is a tombstone."""

    transactional_id: str
    value: TransactionMetadata | None

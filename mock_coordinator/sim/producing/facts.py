"""What the users of producers did and learned, and what became of it in the logs: the facts that
checkers compare. Each record has a value of its own, and each transaction offsets of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from kip848_client.core.types import TopicPartition

__all__ = ["Facts", "Record", "RecordStatus", "Told", "Transaction"]


class Told(Enum):
    """What the user learned about a record or a transaction."""

    NOTHING = auto()
    DONE = auto()
    """The record is in the log; the transaction is committed."""
    FAILED = auto()
    """It is not."""
    IN_DOUBT = auto()


class RecordStatus(Enum):
    """What the log says of a record."""

    UNWRITTEN = auto()
    PLAIN = auto()
    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()


@dataclass(slots=True, eq=False)
class Transaction:
    """One, as its user knows it."""

    owner: str
    """The process."""
    transactional_id: str
    number: int
    records: list[Record] = field(default_factory=list["Record"])
    group: str = ""
    offsets: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    offsets_seen: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """Those that a reader of committed offsets saw."""
    offsets_told: Told = Told.NOTHING
    is_commit_asked: bool = False
    refused: str = ""
    """Why it must not be committed."""
    told: Told = Told.NOTHING

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.owner}"


@dataclass(slots=True, eq=False)
class Record:
    """One, as its user knows it, and where it is."""

    value: bytes
    owner: str
    tp: TopicPartition
    index: int
    """In the order in which this process appended to the partition."""
    transaction: Transaction | None
    told: Told = Told.NOTHING
    offset: int | None = None
    status: RecordStatus = RecordStatus.UNWRITTEN

    def __str__(self) -> str:
        return f"{self.value.decode()} in {self.tp.topic}-{self.tp.partition}"


@dataclass(slots=True)
class Facts:
    """All of a world."""

    records: dict[bytes, Record] = field(default_factory=dict[bytes, Record])
    transactions: list[Transaction] = field(default_factory=list[Transaction])
    by_offset: dict[int, Transaction] = field(default_factory=dict[int, Transaction])
    """Which transaction commits this offset."""

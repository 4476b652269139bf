"""What the producer core asks of its driver. All of it is I/O or tells somebody something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kip848_client.core.produce._model import (
    CoordinatorKind,
    Group,
    OffsetToCommit,
    Place,
    ProducerId,
    SealedBatch,
    TransactionVersion,
)
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = [
    "AddOffsets",
    "AddPartitions",
    "BatchDone",
    "BatchFailed",
    "BatchSplit",
    "Command",
    "CommitOffsets",
    "DescribeTransaction",
    "Done",
    "EndTransaction",
    "Failed",
    "FindCoordinator",
    "InitProducerId",
    "Notice",
    "RoomMade",
    "SendProduce",
]


@dataclass(frozen=True, slots=True)
class Command:
    """Base of everything that a step may ask for."""


@dataclass(frozen=True, slots=True)
class SendProduce(Command):
    """Send a Produce to ``node``. Requests to a node go out in the order in which they are asked
    for, on one connection. Answer: ``ProduceAnswered`` or ``ProduceLost``."""

    produce: int
    node: int
    acks: int
    transactional_id: str | None
    version: TransactionVersion
    """V2 of a transaction needs Produce v12 or newer; V1 must not use it."""
    batches: tuple[SealedBatch, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class BatchDone(Command):
    """The records of this batch are in the log, or sent with acks=0."""

    batch: int
    place: Place


@dataclass(frozen=True, slots=True)
class BatchFailed(Command):
    """The records of this batch are not in the log, or nobody knows: the error says so.
    ``culprits``: by row, records that are to blame; the others went down with them."""

    batch: int
    error: Kip848Error
    culprits: Mapping[int, Kip848Error]
    topic: str = ""
    records: int = 0


@dataclass(frozen=True, slots=True)
class BatchSplit(Command):
    """A broker finds this batch too large: its records are in these from now on, in order, and what
    becomes of them is said of these. ``parts``: (batch, records)."""

    batch: int
    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RoomMade(Command):
    """There is memory again: let those who wait for it try."""


@dataclass(frozen=True, slots=True)
class Done(Command):
    """What was asked for with this ticket is done."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Failed(Command):
    """It is not."""

    ticket: int
    error: Kip848Error


@dataclass(frozen=True, slots=True)
class InitProducerId(Command):
    """Ask ``node`` (``None``: any broker) for a producer id: a first one (``NOBODY``), or another
    epoch of our own (KIP-360). Answer: ``ProducerIdAnswered`` or ``TxnLost``."""

    number: int
    node: int | None
    transactional_id: str | None
    transaction_timeout_ms: int
    producer: ProducerId


@dataclass(frozen=True, slots=True)
class FindCoordinator(Command):
    """Look a coordinator up. Answer: ``CoordinatorFound`` or ``CoordinatorNotFound``."""

    number: int
    kind: CoordinatorKind
    key: str


@dataclass(frozen=True, slots=True)
class AddPartitions(Command):
    """Transactions V1: AddPartitionsToTxn v3, at the transaction coordinator ``node``."""

    number: int
    node: int
    transactional_id: str
    producer: ProducerId
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AddOffsets(Command):
    """Transactions V1: AddOffsetsToTxn, at the transaction coordinator ``node``."""

    number: int
    node: int
    transactional_id: str
    producer: ProducerId
    group_id: str


@dataclass(frozen=True, slots=True)
class CommitOffsets(Command):
    """TxnOffsetCommit at the group's coordinator ``node``: v3 or v4 for V1, v5 or newer for V2."""

    number: int
    node: int
    transactional_id: str
    producer: ProducerId
    version: TransactionVersion
    group: Group
    offsets: Mapping[TopicPartition, OffsetToCommit]


@dataclass(frozen=True, slots=True)
class EndTransaction(Command):
    """EndTxn at the transaction coordinator ``node``: v5 for V2, below for V1."""

    number: int
    node: int
    transactional_id: str
    producer: ProducerId
    version: TransactionVersion
    commit: bool


@dataclass(frozen=True, slots=True)
class DescribeTransaction(Command):
    """DescribeTransactions of one at its coordinator ``node``. Answer: ``TransactionDescribed`` or
    ``TransactionNotDescribed``."""

    number: int
    node: int
    transactional_id: str


@dataclass(frozen=True, slots=True)
class Notice(Command):
    """Log this: something that the user may want to know and that nothing is raised for.
    ``warning`` or else info."""

    text: str
    warning: bool

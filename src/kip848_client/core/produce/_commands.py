"""Commands of the producer core to its driver: I/O, and results for the application."""

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
    """Base of all commands."""


@dataclass(frozen=True, slots=True)
class SendProduce(Command):
    """Send a Produce to ``node``. Requests to a node are sent in the order of their commands, on
    one connection. Answer: ``ProduceAnswered`` or ``ProduceLost``."""

    produce: int
    node: int
    acks: int
    transactional_id: str | None
    version: TransactionVersion
    """A V2 transaction needs Produce v12 or newer; V1 must not use it."""
    batches: tuple[SealedBatch, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class BatchDone(Command):
    """The records of this batch are in the log, or were sent with acks=0."""

    batch: int
    place: Place


@dataclass(frozen=True, slots=True)
class BatchFailed(Command):
    """The records of this batch are not in the log, or this is unknown; the error says which.
    ``culprits``: the records that caused it, by row; the others failed with them."""

    batch: int
    error: Kip848Error
    culprits: Mapping[int, Kip848Error]
    topic: str = ""
    records: int = 0


@dataclass(frozen=True, slots=True)
class BatchSplit(Command):
    """A broker finds this batch too large. Its records are now in these parts, in order, and
    results are reported for the parts. ``parts``: (batch, records)."""

    batch: int
    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RoomMade(Command):
    """Memory is free again: the callers that wait for it may retry."""


@dataclass(frozen=True, slots=True)
class Done(Command):
    """The request with this ticket has succeeded."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Failed(Command):
    """The request with this ticket has failed."""

    ticket: int
    error: Kip848Error


@dataclass(frozen=True, slots=True)
class InitProducerId(Command):
    """Ask ``node`` (``None``: any broker) for a producer id, either a first one (``producer`` is
    (-1, -1)) or the next epoch of this one (KIP-360). Answer: ``ProducerIdAnswered`` or
    ``TxnLost``."""

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
    """AddPartitionsToTxn v3 (transactions V1) to the transaction coordinator ``node``."""

    number: int
    node: int
    transactional_id: str
    producer: ProducerId
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AddOffsets(Command):
    """AddOffsetsToTxn (transactions V1) to the transaction coordinator ``node``."""

    number: int
    node: int
    transactional_id: str
    producer: ProducerId
    group_id: str


@dataclass(frozen=True, slots=True)
class CommitOffsets(Command):
    """TxnOffsetCommit to the group coordinator ``node``: v3 or v4 for V1, v5 or newer for V2."""

    number: int
    node: int
    transactional_id: str
    producer: ProducerId
    version: TransactionVersion
    group: Group
    offsets: Mapping[TopicPartition, OffsetToCommit]


@dataclass(frozen=True, slots=True)
class EndTransaction(Command):
    """EndTxn to the transaction coordinator ``node``: v5 for V2, older for V1."""

    number: int
    node: int
    transactional_id: str
    producer: ProducerId
    version: TransactionVersion
    commit: bool


@dataclass(frozen=True, slots=True)
class DescribeTransaction(Command):
    """DescribeTransactions for one transactional id, to its coordinator ``node``. Answer:
    ``TransactionDescribed`` or ``TransactionNotDescribed``."""

    number: int
    node: int
    transactional_id: str


@dataclass(frozen=True, slots=True)
class Notice(Command):
    """Log something the user may want to know and that raises no error, at warning or else info
    level."""

    text: str
    warning: bool

"""What can happen to the producer core.

All are in the past tense. Those that answer a command carry its number; a number that is not open
any more is ignored and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kip848_client.core.produce._model import Group, OffsetToCommit, Produced, ProducerId
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = [
    "AbortRequested",
    "Appended",
    "BeginRequested",
    "CloseRequested",
    "CommitRequested",
    "CoordinatorFound",
    "CoordinatorNotFound",
    "EndsSoon",
    "Event",
    "FlushRequested",
    "OffsetsAdded",
    "ProduceAnswered",
    "ProduceLost",
    "ProducerIdAnswered",
    "Refused",
    "StartRequested",
    "TimerFired",
    "TopicWanted",
    "TransactionDescribed",
    "TransactionNotDescribed",
    "TransactionVersionLearnt",
    "TxnAnswered",
    "TxnLost",
    "WaitEnded",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Base of everything that a step takes."""


# -- what the application does -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartRequested(Event):
    """With a transactional id: become the one producer that has it. ``Done`` or ``Failed`` with the
    ticket tells the end."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class TopicWanted(Event):
    """How many partitions a topic has is wanted. ``Done`` or ``Failed`` tells the end. ``anew``:
    what is known of it may be old, so brokers are asked."""

    ticket: int
    topic: str
    deadline_ms: int
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Appended(Event):
    """A record was appended, and the core said that it wants a step."""


@dataclass(frozen=True, slots=True)
class FlushRequested(Event):
    """Send what waits, without lingering. ``Done`` when all of it has succeeded or failed."""

    ticket: int


@dataclass(frozen=True, slots=True)
class WaitEnded(Event):
    """Whoever asked with this ticket has given up. What was asked for goes on."""

    ticket: int


@dataclass(frozen=True, slots=True)
class CloseRequested(Event):
    """Take nothing more. What waits is sent until the deadline; an open transaction is aborted.
    ``Done`` when nothing is left. Of several the nearest deadline counts."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class EndsSoon(Event):
    """The application is about to stop: do not wait for topics that do not exist. Records for such
    a topic fail with the brokers' error once brokers have returned it for a second."""


@dataclass(frozen=True, slots=True)
class BeginRequested(Event):
    """Begin a transaction. ``Done``, or ``Failed`` at once where the state does not allow it."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class OffsetsAdded(Event):
    """Commit these offsets of a group with the transaction. ``Done`` when the coordinator of the
    group has taken them; ``Failed`` makes the transaction abortable."""

    ticket: int
    group: Group
    offsets: Mapping[TopicPartition, OffsetToCommit]


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """The driver has refused the application something that was to be part of the transaction: a
    record that is too large, offsets of a partition that is not the consumer's. Without
    transactions it says nothing."""

    error: Kip848Error


@dataclass(frozen=True, slots=True)
class CommitRequested(Event):
    """Send what waits, and commit. ``Failed`` with the transaction's first error, and nothing was
    committed; or with ``CommitInDoubt``: ask again, it is the same commit."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class AbortRequested(Event):
    """Drop what waits, and abort."""

    ticket: int
    deadline_ms: int


# -- what brokers say ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProduceAnswered(Event):
    """Answer to ``SendProduce``. With acks=0 it is empty, and says that the request was sent."""

    produce: int
    partitions: Mapping[TopicPartition, Produced]
    throttle_time_ms: int = 0
    """For so long the broker takes nothing more, because a quota is used up."""


@dataclass(frozen=True, slots=True)
class ProduceLost(Event):
    """No answer to ``SendProduce``. ``maybe_sent``: the broker may have the records. ``fatal``:
    trying again does not help (a refused login, a version that is missing)."""

    produce: int
    why: str
    maybe_sent: bool
    fatal: Kip848Error | None = None


@dataclass(frozen=True, slots=True)
class ProducerIdAnswered(Event):
    """Answer to ``InitProducerId``."""

    number: int
    error_code: int
    producer: ProducerId
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CoordinatorFound(Event):
    """Answer to ``FindCoordinator``; the driver knows the node's address."""

    number: int
    node: int


@dataclass(frozen=True, slots=True)
class CoordinatorNotFound(Event):
    """Answer to ``FindCoordinator``: a code, or no answer at all (``error_code`` 0)."""

    number: int
    error_code: int
    why: str
    fatal: Kip848Error | None = None


@dataclass(frozen=True, slots=True)
class TxnAnswered(Event):
    """Answer to ``AddPartitions``, ``AddOffsets``, ``CommitOffsets`` or ``EndTransaction``: by
    partition where the request had some, else one code. ``producer``: the next one, as EndTxn v5
    answers it."""

    number: int
    error_code: int = 0
    partitions: Mapping[TopicPartition, int] | None = None
    producer: ProducerId | None = None


@dataclass(frozen=True, slots=True)
class TxnLost(Event):
    """No answer to one of these, or to ``InitProducerId``."""

    number: int
    why: str
    maybe_sent: bool
    fatal: Kip848Error | None = None


@dataclass(frozen=True, slots=True)
class TransactionDescribed(Event):
    """Answer to ``DescribeTransaction``: the state that the coordinator has it in, by Kafka's
    name."""

    number: int
    error_code: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionNotDescribed(Event):
    """There is none; ``for_good``: there will never be one."""

    number: int
    for_good: bool


@dataclass(frozen=True, slots=True)
class TransactionVersionLearnt(Event):
    """The finalized level of ``transaction.version``, as a broker tells when a connection opens.
    It counts from the next transaction on."""

    level: int


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """``deadline_ms`` has come."""

"""Events of the producer core.

All names are in the past tense. Events that answer a command carry its number; an event whose
number is no longer open is ignored and counted.
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
    """Base of all events."""


# -- requests of the application -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartRequested(Event):
    """With a transactional id: take it over as its only producer. Ends with ``Done`` or ``Failed``
    for the ticket."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class TopicWanted(Event):
    """Learn how many partitions a topic has. Ends with ``Done`` or ``Failed``."""

    ticket: int
    topic: str
    deadline_ms: int
    refresh: bool = False
    """The cached number may be old, so ask the brokers."""


@dataclass(frozen=True, slots=True)
class Appended(Event):
    """A record was appended, and the core asked for a step."""


@dataclass(frozen=True, slots=True)
class FlushRequested(Event):
    """Send queued records without lingering. ``Done`` when all of them have succeeded or failed."""

    ticket: int


@dataclass(frozen=True, slots=True)
class WaitEnded(Event):
    """The caller with this ticket has given up. The request itself continues."""

    ticket: int


@dataclass(frozen=True, slots=True)
class CloseRequested(Event):
    """Accept nothing more. Queued records are sent until the deadline; an open transaction is
    aborted. ``Done`` when nothing is left. If several are posted, the nearest deadline counts."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class EndsSoon(Event):
    """The application is about to stop: do not wait for topics that do not exist. Records for such
    a topic fail with the brokers' error once brokers have returned it for a second."""


@dataclass(frozen=True, slots=True)
class BeginRequested(Event):
    """Begin a transaction. ``Done``, or ``Failed`` at once if the state does not allow it."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class OffsetsAdded(Event):
    """Commit these offsets of a group with the transaction. ``Done`` when the group coordinator has
    accepted them; ``Failed`` makes the transaction abortable."""

    ticket: int
    group: Group
    offsets: Mapping[TopicPartition, OffsetToCommit]


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """The driver refused something that was to be part of the transaction: a record that is too
    large, or offsets of a partition the consumer does not own. Has no effect without
    transactions."""

    error: Kip848Error


@dataclass(frozen=True, slots=True)
class CommitRequested(Event):
    """Send queued records and commit. ``Failed`` with the transaction's first error means nothing
    was committed; with ``CommitInDoubt``, request it again, which continues the same commit."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class AbortRequested(Event):
    """Drop queued records and abort."""

    ticket: int
    deadline_ms: int


# -- broker answers ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProduceAnswered(Event):
    """Answer to ``SendProduce``. With acks=0 it is empty and means that the request was sent."""

    produce: int
    partitions: Mapping[TopicPartition, Produced]
    throttle_time_ms: int = 0
    """How long the broker accepts nothing more, because a quota is used up."""


@dataclass(frozen=True, slots=True)
class ProduceLost(Event):
    """No answer to ``SendProduce``. ``maybe_sent``: the broker may have the records. ``fatal``:
    retrying does not help (failed authentication, unsupported version)."""

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
    """Answer to ``FindCoordinator``: an error code, or no answer at all (``error_code`` 0)."""

    number: int
    error_code: int
    why: str
    fatal: Kip848Error | None = None


@dataclass(frozen=True, slots=True)
class TxnAnswered(Event):
    """Answer to ``AddPartitions``, ``AddOffsets``, ``CommitOffsets`` or ``EndTransaction``: one
    code per partition if the request had partitions, else a single code. ``producer``: the next
    producer id and epoch, as returned by EndTxn v5."""

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
    """Answer to ``DescribeTransaction``: the state of the transaction at the coordinator, by
    Kafka's name."""

    number: int
    error_code: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionNotDescribed(Event):
    """No answer to ``DescribeTransaction``. ``for_good``: there never will be one."""

    number: int
    for_good: bool


@dataclass(frozen=True, slots=True)
class TransactionVersionLearnt(Event):
    """The finalized level of ``transaction.version``, reported by a broker when a connection opens.
    It applies from the next transaction on."""

    level: int


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """``deadline_ms`` is reached."""

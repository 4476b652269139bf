"""The group core's own events, besides those of member and committer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kip848_client.core.client_assignors import AssignorFailed, PreparedGroup
from kip848_client.core.member import Event
from kip848_client.core.offsets import CommitEvent
from kip848_client.core.types import TopicPartition
from kip848_client.errors import BrokerError, Kip848Error

__all__ = [
    "ApplicationDone",
    "AssignmentComputed",
    "AssignmentImpossible",
    "AssignmentInstalled",
    "AssignmentLost",
    "AssignmentPrepared",
    "CommittedAnswered",
    "CommittedAsked",
    "CommittedImpossible",
    "CommittedLost",
    "CommittedRow",
    "Detached",
    "FlushAsked",
    "GroupEvent",
    "Input",
    "ListenerReplaced",
    "ListenerReturned",
]


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """Base class of the group core's own events."""


Input = Event | CommitEvent | GroupEvent
"""All events that a step accepts."""


class CommittedRow(NamedTuple):
    """OffsetFetch's answer for one partition; offset -1 means that nothing is stored."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class ListenerReturned(GroupEvent):
    """Answer to ``CallListener`` and ``CallAssignors``; ``failed``: it raised, or did not return in
    time."""

    number: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ApplicationDone(GroupEvent):
    """Answer to ``AwaitApplication``."""

    number: int


@dataclass(frozen=True, slots=True)
class CommittedAsked(GroupEvent):
    """A caller looks up committed offsets. Answer: ``CommittedFound`` or ``CommittedFailed`` with
    the same ticket, a number that is not in use."""

    ticket: int
    partitions: tuple[TopicPartition, ...]
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class CommittedAnswered(GroupEvent):
    """Answer to ``FetchCommitted``: the error code of the group, and one row per partition."""

    attempt: int
    error_code: int
    rows: Mapping[TopicPartition, CommittedRow]


@dataclass(frozen=True, slots=True)
class CommittedLost(GroupEvent):
    """Answer to ``FetchCommitted``: no reply; a retry may help."""

    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class CommittedImpossible(GroupEvent):
    """Answer to ``FetchCommitted``: no retry can help."""

    attempt: int
    error: Kip848Error


@dataclass(frozen=True, slots=True)
class FlushAsked(GroupEvent):
    """Commit what is confirmed, as before a revocation, for a consumer with a manual assignment
    that closes. Answer: ``FlushDone`` with the same ticket."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Detached(GroupEvent):
    """The application assigns manually from now on: the assignment is not the group's, and the
    group leaves it alone until there is a subscription again. The listener still gets the calls of
    the leave."""


@dataclass(frozen=True, slots=True)
class ListenerReplaced(GroupEvent):
    """There is a new listener that needs to learn the current assignment: it is called with no new
    partitions, again with the next poll if that fails. Before the group has assigned anything, and
    after leaving, the event does nothing: the listener is called later anyway."""


@dataclass(frozen=True, slots=True)
class AssignmentPrepared(GroupEvent):
    """Answer to ``PrepareAssignment``: the group, or the refusal."""

    number: int
    group: PreparedGroup | None = None
    refusal: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class AssignmentComputed(GroupEvent):
    """Answer to ``ComputeAssignment``: the assignor's return value, of any type, or its failure.
    What it raised is the ``__cause__`` of the failure."""

    number: int
    returned: object = None
    failure: AssignorFailed | None = None


@dataclass(frozen=True, slots=True)
class AssignmentInstalled(GroupEvent):
    """Answer to ``InstallAssignment``: it is now the target of the group, or was refused."""

    number: int
    refusal: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class AssignmentLost(GroupEvent):
    """Answer to ``PrepareAssignment`` and ``InstallAssignment``: no reply; a retry may help."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class AssignmentImpossible(GroupEvent):
    """Answer to ``PrepareAssignment`` and ``InstallAssignment``: no retry can help."""

    number: int
    error: Kip848Error

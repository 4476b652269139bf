"""What can happen to the group core, beyond the events of member and committer."""

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
    """Base of the events that are the group core's own."""


Input = Event | CommitEvent | GroupEvent
"""Whatever a step takes."""


class CommittedRow(NamedTuple):
    """What OffsetFetch answers for one partition; offset -1 means that nothing is stored."""

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
    """Someone wants to know what is stored. Answer: ``CommittedFound`` or ``CommittedFailed`` with
    the same ticket, a number that is not in use."""

    ticket: int
    partitions: tuple[TopicPartition, ...]
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class CommittedAnswered(GroupEvent):
    """Answer to ``FetchCommitted``: the error code of the group, and what is said per partition."""

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
    """Commit what is confirmed, as before a revocation, for a consumer that assigns by hand and
    closes. Answer: ``FlushDone`` with the same ticket."""

    ticket: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Detached(GroupEvent):
    """The application assigns by hand from now on: what is assigned is not the group's, and is left
    alone until there is a subscription again. The listener still hears the end."""


@dataclass(frozen=True, slots=True)
class ListenerReplaced(GroupEvent):
    """There is another listener, which wants to hear of what is assigned already: it is told that
    nothing is new, again with the next poll if it fails. Before the group has assigned anything,
    and after it was left, the event does nothing: the listener hears of it then."""


@dataclass(frozen=True, slots=True)
class AssignmentPrepared(GroupEvent):
    """Answer to ``PrepareAssignment``: the group, or why it was refused."""

    number: int
    group: PreparedGroup | None = None
    refusal: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class AssignmentComputed(GroupEvent):
    """Answer to ``ComputeAssignment``: what the assignor returned, whatever that is, or how it
    failed. What it raised is the ``__cause__`` of the failure."""

    number: int
    returned: object = None
    failure: AssignorFailed | None = None


@dataclass(frozen=True, slots=True)
class AssignmentInstalled(GroupEvent):
    """Answer to ``InstallAssignment``: it is the target of the group now, or why it was refused."""

    number: int
    refusal: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class AssignmentLost(GroupEvent):
    """Answer to ``PrepareAssignment`` and ``InstallAssignment``: there is none, asking again may
    help."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class AssignmentImpossible(GroupEvent):
    """Answer to ``PrepareAssignment`` and ``InstallAssignment``: asking again cannot help."""

    number: int
    error: Kip848Error

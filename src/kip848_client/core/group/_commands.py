"""The group core's own commands, besides those it passes on from member and committer.

All of these are I/O, or change what the application sees. None leaves a decision to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kip848_client.core.client_assignors import CheckedAssignment, PreparedGroup
from kip848_client.core.member import AssignedPartition, AssignorNews, Command
from kip848_client.core.offsets import CommitCommand, CommittableOffset
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = [
    "AbandonComputation",
    "AssignPartitions",
    "AssignorCommand",
    "AutomaticCommitFailed",
    "AutomaticCommitsRecovered",
    "AwaitApplication",
    "CallAssignors",
    "CallListener",
    "CommittedFailed",
    "CommittedFound",
    "ComputeAssignment",
    "FetchCommitted",
    "FlushDone",
    "ForgetPartitions",
    "GroupCommand",
    "InstallAssignment",
    "ListenerMethod",
    "Output",
    "PollWanted",
    "PrepareAssignment",
    "StartFetching",
]


class ListenerMethod(Enum):
    """The methods of the user's rebalance listener."""

    ASSIGNED = "on_partitions_assigned"
    REVOKED = "on_partitions_revoked"
    LOST = "on_partitions_lost"


@dataclass(frozen=True, slots=True)
class GroupCommand:
    """Base class of the group core's own commands."""


Output = Command | CommitCommand | GroupCommand
"""All commands that a step may return."""


@dataclass(frozen=True, slots=True)
class CallListener(GroupCommand):
    """Call the listener. Answer: ``ListenerReturned`` with the same number, even if there is no
    listener. At most one call is open."""

    number: int
    method: ListenerMethod
    partitions: tuple[AssignedPartition, ...]


@dataclass(frozen=True, slots=True)
class AwaitApplication(GroupCommand):
    """Wait until the application is done with the records it holds of these partitions, that is,
    until it asks for more. Answer: ``ApplicationDone`` with the same number, at once if it holds
    none. A wait that the core has given up may be answered or not."""

    number: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AssignPartitions(GroupCommand):
    """``assignment`` is what the user sees as assigned; its ``new`` part starts without a position,
    even if a partition of that name was assigned before (a recreated topic). New partitions are not
    fetched yet."""

    assignment: tuple[AssignedPartition, ...]
    new: tuple[AssignedPartition, ...]


@dataclass(frozen=True, slots=True)
class StartFetching(GroupCommand):
    """The listener has returned for ``assignment``: fetch it, and find missing positions."""

    assignment: tuple[AssignedPartition, ...]


@dataclass(frozen=True, slots=True)
class ForgetPartitions(GroupCommand):
    """These are no longer assigned: forget them and all their state."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PollWanted(GroupCommand):
    """Something waits for the next ``Polled``: deliver one as soon as the application polls."""


@dataclass(frozen=True, slots=True)
class FetchCommitted(GroupCommand):
    """Send OffsetFetch for stable offsets with this member epoch and the member id (``None``: with
    neither). Answer: ``CommittedAnswered``, ``CommittedLost`` or ``CommittedImpossible``."""

    attempt: int
    member_epoch: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class CommittedFound(GroupCommand):
    """A look-up ended: the stored offsets, ``None`` for none. A partition that stayed unknown to
    the broker until the deadline is left out."""

    ticket: int
    found: Mapping[TopicPartition, CommittableOffset | None]


@dataclass(frozen=True, slots=True)
class CommittedFailed(GroupCommand):
    """A look-up failed."""

    ticket: int
    error: Kip848Error


@dataclass(frozen=True, slots=True)
class AutomaticCommitFailed(GroupCommand):
    """An automatic commit (by interval, or before partitions are released) failed for these
    partitions for one reason; log it. Commits by interval that fail alike are reported once a
    minute. ``passing``: the epoch changed during the commit, as in any rebalance, and the next
    commit will succeed."""

    partitions: tuple[TopicPartition, ...]
    error: Kip848Error
    passing: bool


@dataclass(frozen=True, slots=True)
class AutomaticCommitsRecovered(GroupCommand):
    """A commit by interval succeeded after failures; log it. ``failing_ms``: time since the first
    reported failure."""

    failing_ms: int


@dataclass(frozen=True, slots=True)
class FlushDone(GroupCommand):
    """A ``FlushAsked`` has ended, whether or not something was stored."""

    ticket: int


@dataclass(frozen=True, slots=True)
class AssignorCommand(GroupCommand):
    """Base class of the commands about client-side assignors."""


@dataclass(frozen=True, slots=True)
class CallAssignors(AssignorCommand):
    """Call ``on_assignment`` of each client-side assignor with the target in ``news``. Answer:
    ``ListenerReturned`` with the same number; no call of the listener is open meanwhile."""

    number: int
    member_epoch: int
    news: AssignorNews


@dataclass(frozen=True, slots=True)
class PrepareAssignment(AssignorCommand):
    """Request the group's current state from the coordinator, which is looked up if needed. Answer:
    ``AssignmentPrepared``, ``AssignmentLost`` or ``AssignmentImpossible``."""

    number: int
    member_epoch: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class ComputeAssignment(AssignorCommand):
    """Run the assignor named in ``group`` without blocking anything else. Answer:
    ``AssignmentComputed`` after ``timeout_ms`` at the latest. One runs at a time."""

    number: int
    group: PreparedGroup
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class AbandonComputation(AssignorCommand):
    """The result of this ``ComputeAssignment`` is no longer needed: end it if possible. No
    answer."""

    number: int


@dataclass(frozen=True, slots=True)
class InstallAssignment(AssignorCommand):
    """Send the result for a group epoch to the coordinator, which is looked up if needed. Answer:
    ``AssignmentInstalled``, ``AssignmentLost`` or ``AssignmentImpossible``."""

    number: int
    member_epoch: int
    group_epoch: int
    result: CheckedAssignment
    timeout_ms: int

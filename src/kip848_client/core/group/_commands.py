"""What the group core asks of its driver, beyond what it passes on from member and committer.

All of these are I/O, or change what the application sees. None of them leaves a decision to the
driver.
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
    """Base of what the group core asks for on its own."""


Output = Command | CommitCommand | GroupCommand
"""Whatever a step may ask for."""


@dataclass(frozen=True, slots=True)
class CallListener(GroupCommand):
    """Call the listener. Answer: ``ListenerReturned`` with the same number, also when nobody
    listens. At most one call is open."""

    number: int
    method: ListenerMethod
    partitions: tuple[AssignedPartition, ...]


@dataclass(frozen=True, slots=True)
class AwaitApplication(GroupCommand):
    """Wait until the application is done with the records of these partitions that it has in its
    hands: it came back for more. Answer: ``ApplicationDone`` with the same number, at once when it
    has none. A wait that the core has given up may be answered or not."""

    number: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AssignPartitions(GroupCommand):
    """``assignment`` is what the user sees as assigned; ``new`` of it begins without a position,
    even if a partition of that name was there (a topic created again). Nothing of what is new is
    fetched yet."""

    assignment: tuple[AssignedPartition, ...]
    new: tuple[AssignedPartition, ...]


@dataclass(frozen=True, slots=True)
class StartFetching(GroupCommand):
    """The listener is done with ``assignment``: fetch it, and find positions where there are
    none."""

    assignment: tuple[AssignedPartition, ...]


@dataclass(frozen=True, slots=True)
class ForgetPartitions(GroupCommand):
    """These are not assigned any more: forget them and everything about them."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PollWanted(GroupCommand):
    """Something waits for the next ``Polled``: deliver one as soon as the application asks."""


@dataclass(frozen=True, slots=True)
class FetchCommitted(GroupCommand):
    """Send OffsetFetch for stable offsets with this epoch and the member id (``None``: without
    both). Answer: ``CommittedAnswered``, ``CommittedLost`` or ``CommittedImpossible``."""

    attempt: int
    member_epoch: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class CommittedFound(GroupCommand):
    """A look-up ended: what is stored, ``None`` for nothing. A partition that the broker did not
    know until the deadline is left out."""

    ticket: int
    found: Mapping[TopicPartition, CommittableOffset | None]


@dataclass(frozen=True, slots=True)
class CommittedFailed(GroupCommand):
    """A look-up ended without an answer that helps."""

    ticket: int
    error: Kip848Error


@dataclass(frozen=True, slots=True)
class AutomaticCommitFailed(GroupCommand):
    """A commit by interval, or before something was given up, failed for these partitions for one
    reason; log it. Of those by interval that fail alike one a minute is told. ``passing``: the
    epoch moved while it was under way, as in any rebalance, and the next one cures it."""

    partitions: tuple[TopicPartition, ...]
    error: Kip848Error
    passing: bool


@dataclass(frozen=True, slots=True)
class AutomaticCommitsRecovered(GroupCommand):
    """A commit by interval is stored again, after those before it had failed; log it.
    ``failing_ms``: since the first that was told."""

    failing_ms: int


@dataclass(frozen=True, slots=True)
class FlushDone(GroupCommand):
    """A ``FlushAsked`` is over, whether or not something was stored."""

    ticket: int


@dataclass(frozen=True, slots=True)
class AssignorCommand(GroupCommand):
    """Base of what concerns client-side assignors."""


@dataclass(frozen=True, slots=True)
class CallAssignors(AssignorCommand):
    """Call ``on_assignment`` of each client-side assignor with the target in ``news``. Answer:
    ``ListenerReturned`` with the same number; no call of the listener is open meanwhile."""

    number: int
    member_epoch: int
    news: AssignorNews


@dataclass(frozen=True, slots=True)
class PrepareAssignment(AssignorCommand):
    """Ask the coordinator, which is looked up if need be, for the group as it is. Answer:
    ``AssignmentPrepared``, ``AssignmentLost`` or ``AssignmentImpossible``."""

    number: int
    member_epoch: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class ComputeAssignment(AssignorCommand):
    """Run the assignor that ``group`` names, so that nothing else waits for it. Answer:
    ``AssignmentComputed`` after ``timeout_ms`` at the latest. One runs at a time."""

    number: int
    group: PreparedGroup
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class AbandonComputation(AssignorCommand):
    """Nobody waits for the ``ComputeAssignment`` of this number any more: end it if possible. No
    answer."""

    number: int


@dataclass(frozen=True, slots=True)
class InstallAssignment(AssignorCommand):
    """Give the coordinator, which is looked up if need be, the result for a group epoch. Answer:
    ``AssignmentInstalled``, ``AssignmentLost`` or ``AssignmentImpossible``."""

    number: int
    member_epoch: int
    group_epoch: int
    result: CheckedAssignment
    timeout_ms: int

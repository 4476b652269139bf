"""What the group core asks of its driver, beyond what it passes on from member and committer.

All of these are I/O, or change what the application sees. None of them leaves a decision to the
driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kip848_client._types import TopicPartition
from kip848_client.errors import Kip848Error
from kip848_client.member import AssignedPartition, Command
from kip848_client.offsets import CommitCommand, CommittableOffset

__all__ = [
    "AssignPartitions",
    "AutomaticCommitFailed",
    "AwaitApplication",
    "CallListener",
    "CommittedFailed",
    "CommittedFound",
    "FetchCommitted",
    "FlushDone",
    "ForgetPartitions",
    "GroupCommand",
    "ListenerMethod",
    "Output",
    "PollWanted",
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
    reason; log it. ``passing``: the epoch moved while it was under way, as in any rebalance, and
    the next one cures it."""

    partitions: tuple[TopicPartition, ...]
    error: Kip848Error
    passing: bool


@dataclass(frozen=True, slots=True)
class FlushDone(GroupCommand):
    """A ``FlushAsked`` is over, whether or not something was stored."""

    ticket: int

"""What happens to a membership, for whoever follows ``Consumer.events()``."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.member import MemberState
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = [
    "ApplicationStalled",
    "CommitFenced",
    "CoordinatorBack",
    "CoordinatorLost",
    "CoordinatorUnreachable",
    "EventLoopBlocked",
    "EventsMissed",
    "HeartbeatAnswered",
    "HeartbeatLost",
    "HeartbeatRefused",
    "MemberEpochChanged",
    "MemberFailed",
    "MemberFenced",
    "MembershipEvent",
    "PartitionsAssigned",
    "PartitionsLost",
    "PartitionsRevoked",
    "StaleCommit",
    "StateChanged",
]


@dataclass(frozen=True, slots=True)
class MembershipEvent:
    """Base of all of them."""

    time_ms: int
    """When, in ms since 1970."""
    member_epoch: int
    """The member epoch at that moment; 0 out of the group."""


@dataclass(frozen=True, slots=True)
class StateChanged(MembershipEvent):
    """The member went from one state to another (docs/reference/member-states.md)."""

    old: MemberState
    new: MemberState
    cause: str


@dataclass(frozen=True, slots=True)
class MemberEpochChanged(MembershipEvent):
    """The coordinator gave the member another epoch, or it has none any more (0)."""

    old_epoch: int


@dataclass(frozen=True, slots=True)
class PartitionsAssigned(MembershipEvent):
    """These are new; the listener is about to be called. May be none: the assignment was looked at
    and nothing is new in it."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsRevoked(MembershipEvent):
    """These are given up for others; the listener is about to be called. Where it fails they are
    not given up, and this comes again."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsLost(MembershipEvent):
    """These may be another member's already; the listener is about to be called. Or the time to
    leave was over before it could be: then it is not."""

    partitions: tuple[TopicPartition, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class MemberFenced(MembershipEvent):
    """The coordinator does not accept the member any more, with the epoch that it had: it drops its
    partitions as lost and joins again. ``cause`` is the name of the error."""

    cause: str


@dataclass(frozen=True, slots=True)
class MemberFailed(MembershipEvent):
    """The membership is over: every call raises ``error``."""

    error: Kip848Error


@dataclass(frozen=True, slots=True)
class CoordinatorLost(MembershipEvent):
    """The coordinator has moved, or does not answer: it is looked up again."""

    cause: str


@dataclass(frozen=True, slots=True)
class CoordinatorUnreachable(MembershipEvent):
    """No coordinator has answered for so long; comes again every 30 s."""

    silent_ms: int


@dataclass(frozen=True, slots=True)
class CoordinatorBack(MembershipEvent):
    """A coordinator answers again that was reported as unreachable."""

    silent_ms: int


@dataclass(frozen=True, slots=True)
class ApplicationStalled(MembershipEvent):
    """The application has not asked for records for half of ``max_poll_interval_ms``; in
    ``left_ms`` the member leaves its group, which this event says once more with 0."""

    poll_age_ms: int
    left_ms: int


@dataclass(frozen=True, slots=True)
class EventLoopBlocked(MembershipEvent):
    """The event loop ran a timer ``late_ms`` too late, which is so long that a heartbeat was left
    out; ``silent_ms`` is since one was answered (``None``: none ever was)."""

    late_ms: int
    silent_ms: int | None


@dataclass(frozen=True, slots=True)
class StaleCommit(MembershipEvent):
    """The coordinator refused a commit with STALE_MEMBER_EPOCH. A commit of the user's, or before
    partitions are given up, is repeated with the new epoch."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class CommitFenced(MembershipEvent):
    """The coordinator refused a commit because the member is not in its group any more, or because
    another one has its place. ``cause`` is the name of the error. Nothing was stored."""

    partitions: tuple[TopicPartition, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered(MembershipEvent):
    """A heartbeat was answered, with this member epoch, ``latency_ms`` after it was sent. Only in
    streams that ask for heartbeats, as the next two."""

    latency_ms: int


@dataclass(frozen=True, slots=True)
class HeartbeatRefused(MembershipEvent):
    """A heartbeat was answered with an error, whose name is ``cause``."""

    latency_ms: int
    cause: str


@dataclass(frozen=True, slots=True)
class HeartbeatLost(MembershipEvent):
    """A heartbeat was not answered; after ``waited_ms`` it was given up, and why."""

    waited_ms: int
    cause: str


@dataclass(frozen=True, slots=True)
class EventsMissed(MembershipEvent):
    """So many events happened between the one before this and the next one that whoever reads was
    too slow for: only the newest are kept."""

    count: int

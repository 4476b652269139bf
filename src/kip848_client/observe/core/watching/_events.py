"""The events of a membership, for ``Consumer.events()``."""

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
    """Base of all events of ``Consumer.events``."""

    time_ms: int
    """The time in ms since 1970."""
    member_epoch: int
    """The member epoch at that moment; 0 out of the group."""


@dataclass(frozen=True, slots=True)
class StateChanged(MembershipEvent):
    """The member went from one state to another (docs/reference/member-states.md).

    Attributes:
        old: The state before.
        new: The state now.
        cause: Why, in words.
    """

    old: MemberState
    new: MemberState
    cause: str


@dataclass(frozen=True, slots=True)
class MemberEpochChanged(MembershipEvent):
    """The member has another epoch, or none any more (0).

    Attributes:
        old_epoch: The epoch before.
    """

    old_epoch: int


@dataclass(frozen=True, slots=True)
class PartitionsAssigned(MembershipEvent):
    """Partitions are new; the listener is about to be called.

    Attributes:
        partitions: Which ones. None if an assignment has nothing new.
    """

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsRevoked(MembershipEvent):
    """Partitions are released for other members; the listener is about to be called.

    If the listener fails they are not released, and this event comes again.

    Attributes:
        partitions: Which ones.
    """

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class PartitionsLost(MembershipEvent):
    """Partitions may be another member's already; the listener is about to be called.

    Or the time to leave was over before the listener could be called: then it is not.

    Attributes:
        partitions: Which ones.
        cause: Why, in words.
    """

    partitions: tuple[TopicPartition, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class MemberFenced(MembershipEvent):
    """The coordinator no longer accepts the member with its epoch.

    The member drops its partitions as lost, and joins again.

    Attributes:
        cause: The name of the error, such as FENCED_MEMBER_EPOCH.
    """

    cause: str


@dataclass(frozen=True, slots=True)
class MemberFailed(MembershipEvent):
    """The membership is over.

    Attributes:
        error: Every call raises it from now on.
    """

    error: Kip848Error


@dataclass(frozen=True, slots=True)
class CoordinatorLost(MembershipEvent):
    """The coordinator has moved, or does not answer. It is looked up again.

    Attributes:
        cause: Why, in words.
    """

    cause: str


@dataclass(frozen=True, slots=True)
class CoordinatorUnreachable(MembershipEvent):
    """No coordinator answers for ``UNREACHABLE_AFTER_MS``. Repeated after the same time.

    Attributes:
        silent_ms: For how long, in milliseconds.
    """

    silent_ms: int


@dataclass(frozen=True, slots=True)
class CoordinatorBack(MembershipEvent):
    """A coordinator that was reported as unreachable answers again.

    Attributes:
        silent_ms: How long none answered, in milliseconds.
    """

    silent_ms: int


@dataclass(frozen=True, slots=True)
class ApplicationStalled(MembershipEvent):
    """The application has not asked for records for half of ``max_poll_interval_ms``.

    When that time is over the member leaves its group, and this event comes once more.

    Attributes:
        poll_age_ms: Milliseconds since it asked.
        left_ms: Milliseconds until the member leaves; 0 when it leaves.
    """

    poll_age_ms: int
    left_ms: int


@dataclass(frozen=True, slots=True)
class EventLoopBlocked(MembershipEvent):
    """The event loop ran a timer so late that a heartbeat was left out.

    Attributes:
        late_ms: How much too late, in milliseconds.
        silent_ms: Milliseconds since a heartbeat was answered; ``None`` before the first.
    """

    late_ms: int
    silent_ms: int | None


@dataclass(frozen=True, slots=True)
class StaleCommit(MembershipEvent):
    """The coordinator refused a commit with STALE_MEMBER_EPOCH.

    A commit that the application called for, or that comes before partitions are released, is
    repeated with the new epoch.

    Attributes:
        partitions: The partitions in the commit.
    """

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class CommitFenced(MembershipEvent):
    """The coordinator refused a commit, and nothing was stored.

    The member is not in its group any more, or another one has its place.

    Attributes:
        partitions: The partitions in the commit.
        cause: The name of the error, such as UNKNOWN_MEMBER_ID.
    """

    partitions: tuple[TopicPartition, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered(MembershipEvent):
    """A heartbeat was answered without an error.

    Only in streams with ``heartbeats=True``, as ``HeartbeatRefused`` and ``HeartbeatLost``.

    Attributes:
        latency_ms: Milliseconds from the request to the answer.
    """

    latency_ms: int


@dataclass(frozen=True, slots=True)
class HeartbeatRefused(MembershipEvent):
    """A heartbeat was answered with an error.

    Attributes:
        latency_ms: Milliseconds from the request to the answer.
        cause: The name of the error.
    """

    latency_ms: int
    cause: str


@dataclass(frozen=True, slots=True)
class HeartbeatLost(MembershipEvent):
    """A heartbeat was not answered.

    Attributes:
        waited_ms: After how many milliseconds it was given up.
        cause: Why, in words.
    """

    waited_ms: int
    cause: str


@dataclass(frozen=True, slots=True)
class EventsMissed(MembershipEvent):
    """The reader was too slow, and the oldest events were dropped.

    Attributes:
        count: How many were dropped between the event before this one and the next.
    """

    count: int

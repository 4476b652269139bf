"""The data types of a group member: settings, the intent and outcome of a heartbeat, the snapshot.

``HeartbeatIntent`` and ``HeartbeatOutcome`` are the domain side of ConsumerGroupHeartbeat (API 68,
v1). The member never sees a wire message: its driver translates one to the other, so the member can
be run against a simulation that has no bytes at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kip848_client.core.member._limits import (
    LEAVE_PATIENCE_MS,
    REJOIN_BACKOFF_MAX_MS,
    UNREACHABLE_AFTER_MS,
    UNRELEASED_INSTANCE_LIMIT_MS,
)
from kip848_client.core.member._states import MemberState
from kip848_client.core.types import MemberId, TopicId, TopicIdPartition, TopicPartition, Wait
from kip848_client.error_codes import error_name, is_retriable

__all__ = [
    "AssignedPartition",
    "Assignment",
    "AssignorNews",
    "HeartbeatAccepted",
    "HeartbeatIntent",
    "HeartbeatOutcome",
    "HeartbeatRefused",
    "LeaveMode",
    "LossReason",
    "MemberSettings",
    "MemberSnapshot",
    "OfferedAssignor",
    "Severity",
    "group_by_topic",
    "sanitise",
]

Assignment = tuple[tuple[TopicId, tuple[int, ...]], ...]
"""Partitions grouped by topic id, both sorted: the shape of TopicPartitions on the wire."""


class AssignedPartition(NamedTuple):
    """One partition by its identity and by its name.

    The identity is ``(topic_id, partition)``: a recreated topic is another topic (KIP-516), and its
    partitions are revoked and newly assigned.
    """

    topic_id: TopicId
    tp: TopicPartition
    """The partition as users name it."""

    @property
    def partition(self) -> int:
        """The partition number."""
        return self.tp.partition


class LeaveMode(Enum):
    """What a leave means for the coordinator (KIP-1092).

    Kafka's name is ``CloseOptions.GroupMembershipOperation``.
    """

    DEFAULT = "default"
    """A dynamic member leaves (-1); a static one leaves for a while (-2)."""
    LEAVE_GROUP = "leave_group"
    """Leave for good (-1), a static member too."""
    REMAIN_IN_GROUP = "remain_in_group"
    """Static: -2. Dynamic: say nothing and let the session expire."""


class LossReason(Enum):
    """Why there is no answer to a heartbeat."""

    NOT_SENT = "not_sent"
    """It never left this process, e.g. no connection could be opened: the broker that was the
    coordinator may be gone."""
    TIMED_OUT = "timed_out"
    """Sent, no answer within the request timeout: the broker may have acted on it."""
    DISCONNECTED = "disconnected"
    """Sent, then the connection broke: the broker may have acted on it."""


class Severity(Enum):
    """How a reported error concerns the user."""

    NOTICE = "notice"
    """Log it, show it in health; nothing is raised, the member carries on."""
    RAISE = "raise"
    """Raise it once, from the next call that asks for records; the member carries on."""
    FATAL = "fatal"
    """Raise it from every call until the consumer is closed; the member is FATAL."""


@dataclass(frozen=True, slots=True)
class OfferedAssignor:
    """An assignor that this member could run for the group (draft, ClientAssignors)."""

    name: str
    minimum_version: int
    maximum_version: int
    reason: int = 0
    metadata_version: int = 0
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class AssignorNews:
    """The assignor fields in an answer to a member that offers assignors (draft).

    ``target``: with an assignment, the member's complete target; otherwise ``None``. The other
    fields come with the assignment: the assignor's error, and its data for this member.
    """

    should_compute: bool = False
    target: Assignment | None = None
    error: int = 0
    metadata_version: int = 0
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatIntent:
    """Every field of a ConsumerGroupHeartbeat request that the member decides.

    ``None`` means "unchanged" (null on the wire; -1 for ``rebalance_timeout_ms``). ``owned`` is the
    complete set of partitions that the member has or may be given before the answer arrives, never
    a delta; what it leaves out is free for others. An empty tuple means "I own nothing", which
    differs from ``None``.
    """

    member_id: MemberId
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int | None = None
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Assignment | None = None
    client_assignors: tuple[OfferedAssignor, ...] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the broker will answer with the assignment in any case."""
        return (
            self.rebalance_timeout_ms is not None
            and (self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None)
            and self.owned is not None
        )


@dataclass(frozen=True, slots=True)
class HeartbeatAccepted:
    """The broker's answer without an error.

    ``assignment`` is ``None`` for "no change" and ``()`` for "you own nothing". It may be as on the
    wire: unsorted, with repeated topics or partitions; the member cleans it up.
    """

    member_id: MemberId | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Assignment | None = None
    assignors: AssignorNews | None = None

    def is_for(self, member_id: MemberId) -> bool:
        """Whether it can be meant for this member. A stored epoch is sent back: -1 would turn the
        next heartbeat into a leave."""
        return self.member_id in (None, "", member_id) and self.member_epoch > 0


@dataclass(frozen=True, slots=True)
class HeartbeatRefused:
    """The broker's answer with an error: Kafka's code, its name, the broker's message, and whether
    Kafka calls the code retriable (used only for codes without a rule here); ``api`` is the refused
    API.
    """

    code: int
    name: str
    message: str | None = None
    retriable: bool = False
    api: str = "ConsumerGroupHeartbeat"

    @classmethod
    def of(cls, code: int, message: str | None, *, api: str) -> HeartbeatRefused:
        """Build it from a code, with name and retriability from Kafka's table."""
        return cls(code, error_name(code), message, is_retriable(code), api)


HeartbeatOutcome = HeartbeatAccepted | HeartbeatRefused


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """The member's part of the configuration. All times in milliseconds."""

    instance_id: str | None = None
    """``group.instance.id``; makes the member static."""
    rack_id: str | None = None
    """``client.rack``; an empty string counts as unset."""
    server_assignor: str | None = None
    """``group.remote.assignor``; ``None`` leaves the choice to the group."""
    client_assignors: tuple[OfferedAssignor, ...] = ()
    """``group.local.assignors``, in order of preference, until ``AssignorsOffered`` replaces
    them."""
    max_poll_interval_ms: int = 300_000
    """``max.poll.interval.ms``: also sent as the rebalance timeout, and bounds the commit before
    a revocation."""
    auto_commit: bool = True
    """``enable.auto.commit``: whether a reconciliation begins with ``FlushOffsets``."""
    request_timeout_ms: int = 30_000
    """``request.timeout.ms``, handed to the driver with each heartbeat."""
    retry_backoff_ms: int = 100
    """``retry.backoff.ms``: first step of the exponential backoff after a failure."""
    retry_backoff_max_ms: int = 1_000
    """``retry.backoff.max.ms``: its cap."""
    rejoin_backoff_max_ms: int = REJOIN_BACKOFF_MAX_MS
    """Cap of the pause between joins when the coordinator keeps fencing the member."""
    unreachable_after_ms: int = UNREACHABLE_AFTER_MS
    """How long the coordinator may be silent before that is reported, and between repeats."""
    unreleased_instance_limit_ms: int = UNRELEASED_INSTANCE_LIMIT_MS
    """How long a *re*join is retried on UNRELEASED_INSTANCE_ID."""
    session_timeout_ms: int | None = None
    """How long after the last accepted heartbeat others may already own this member's partitions:
    then it drops all of them as lost, and rejoins. ``None``: it continues until the coordinator
    refuses it."""
    extra_heartbeats: bool = True
    """Whether to send heartbeats sooner than the interval for a while after the assignment has
    changed."""
    leave_patience_ms: int = LEAVE_PATIENCE_MS
    """How long a leave looks for an unknown coordinator before it gives up."""


@dataclass(frozen=True, slots=True)
class MemberSnapshot:
    """A frozen copy of a member's state, for tests, traces, the command line and health checks."""

    state: MemberState
    member_id: MemberId
    member_epoch: int
    subscribed_topics: tuple[str, ...]
    subscribed_regex: str | None
    assigned: tuple[AssignedPartition, ...]
    """What the user sees as assigned: changes with StartPartitions and PartitionsReleased."""
    current: Assignment | None
    """What was reconciled last; ``None`` when not in a group."""
    target: Assignment | None
    """What the coordinator last asked for; ``None`` when not in a group."""
    unresolved: tuple[TopicId, ...]
    """Topics of the target whose name is not known yet."""
    coordinator_known: bool
    coordinator_silent_ms: int
    """How long no heartbeat was answered without an error, while one is due; else 0."""
    waits: Mapping[str, Wait]
    """The same as a wait for the coordinator, with the reason."""
    poll_age_ms: int | None
    """How long the application has not polled: 0 while it polls, ``None`` before its first poll."""
    heartbeat_interval_ms: int
    consecutive_failures: int
    consecutive_fences: int
    stale_answers: int
    """Answers that were ignored because their question is no longer open."""
    closed: bool


def group_by_topic(partitions: Iterable[TopicIdPartition]) -> Assignment:
    """Sorted, grouped form of a set of partitions."""
    grouped: dict[TopicId, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        grouped.setdefault(topic_id, []).append(partition)
    return tuple((topic_id, tuple(numbers)) for topic_id, numbers in grouped.items())


def sanitise(assignment: Assignment) -> frozenset[TopicIdPartition]:
    """An assignment as a set: repeated topics merged, repeated and negative partitions dropped.

    A duplicate that looked like a change has rewound live cursors in other clients.
    """
    return frozenset(
        (topic_id, partition)
        for topic_id, partitions in assignment
        for partition in partitions
        if partition >= 0
    )

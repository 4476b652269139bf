"""The events of a member, in the past tense.

Events whose command carried a number (``lookup``, ``attempt``, ``query``, ``plan``) carry it back.
A number that is no longer open is ignored and counted, so a driver may always deliver its answers.
A number that was never issued is a bug of the driver and raises LocalProtocolError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.core.member._model import (
    HeartbeatOutcome,
    LeaveMode,
    LossReason,
    OfferedAssignor,
)
from kip848_client.core.types import TopicId
from kip848_client.errors import Kip848Error

__all__ = [
    "EVENT_TYPES",
    "AssignorsOffered",
    "CoordinatorFound",
    "CoordinatorLookupFailed",
    "CoordinatorLost",
    "Event",
    "HeartbeatAnswered",
    "HeartbeatFailed",
    "HeartbeatLost",
    "HeartbeatWanted",
    "LeaveRequested",
    "OffsetsFlushed",
    "PartitionsReleased",
    "PartitionsStarted",
    "PollEnded",
    "Polled",
    "Subscribed",
    "TimerFired",
    "TopicsResolved",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events. Do not subclass outside of this module."""


@dataclass(frozen=True, slots=True)
class Subscribed(Event):
    """The user's subscription is now exactly this; it replaces the previous one.

    ``pattern`` is a server-side RE2 expression (KIP-848, heartbeat v1). Both may be given: the
    broker subscribes to the union. An empty subscription is legal and joins with an empty list (a
    client-side filter that matches nothing). In a group, a change is sent at once. Out of a group
    the member joins at the next ``Polled``, not at this event (KAFKA-17154).

    Refused with LocalProtocolError when the member is FATAL or closing.
    """

    topics: frozenset[str] = frozenset()
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Polled(Event):
    """The application asked for records.

    It restarts ``max.poll.interval.ms``, makes a subscribed member join, a stale one rejoin and a
    failed callback run again. ``waiting=True``: the application is now suspended inside the call,
    and the interval does not run until ``PollEnded``. If no callback failed and the member has
    joined, the driver may merge polls to about one per second.
    """

    waiting: bool = False


@dataclass(frozen=True, slots=True)
class PollEnded(Event):
    """A ``Polled(waiting=True)`` call returned to the application; the interval starts now."""


@dataclass(frozen=True, slots=True)
class LeaveRequested(Event):
    """The user unsubscribed (``final=False``) or closes the consumer (``final=True``).

    Every request is answered by one ``LeaveCompleted``, at ``deadline_ms`` at the latest (absolute,
    same clock as ``now_ms``); requests made while one is open share its answer. ``flush`` requests
    a commit of everything consumed before the callback. Refused with LocalProtocolError after a
    final leave has completed.
    """

    mode: LeaveMode
    deadline_ms: int
    flush: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True)
class CoordinatorFound(Event):
    """Answer to ``FindCoordinator``: heartbeats can be sent."""

    lookup: int


@dataclass(frozen=True, slots=True)
class CoordinatorLookupFailed(Event):
    """Answer to ``FindCoordinator``: not found. It is retried with a backoff in any case.

    ``error`` is the reason; ``None`` if no broker answered, and ``why`` then describes what
    happened.
    """

    lookup: int
    error: Kip848Error | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class CoordinatorLost(Event):
    """Another request (commit, offset fetch) showed that the coordinator moved or is gone."""

    why: str


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered(Event):
    """Answer to ``SendHeartbeat``: the broker replied, with or without an error code."""

    attempt: int
    outcome: HeartbeatOutcome


@dataclass(frozen=True, slots=True)
class HeartbeatLost(Event):
    """Answer to ``SendHeartbeat``: there is no reply, and a retry may help."""

    attempt: int
    reason: LossReason
    why: str = ""
    """For log messages."""


@dataclass(frozen=True, slots=True)
class HeartbeatFailed(Event):
    """Answer to ``SendHeartbeat``: no retry can help (authentication refused, no such API)."""

    attempt: int
    error: Kip848Error


@dataclass(frozen=True, slots=True)
class HeartbeatWanted(Event):
    """The newest member epoch is needed (a commit got STALE_MEMBER_EPOCH): send a heartbeat
    early."""


@dataclass(frozen=True, slots=True)
class AssignorsOffered(Event):
    """The client-side assignors of this member, or their metadata, have changed. In a group, a
    change is sent at once."""

    assignors: tuple[OfferedAssignor, ...]


@dataclass(frozen=True, slots=True)
class TopicsResolved(Event):
    """Answer to ``ResolveTopics``: the names found, possibly none; the rest is requested again."""

    query: int
    names: Mapping[TopicId, str]


@dataclass(frozen=True, slots=True)
class OffsetsFlushed(Event):
    """Answer to ``FlushOffsets``: committed, failed or given up, no matter which."""

    plan: int


@dataclass(frozen=True, slots=True)
class PartitionsReleased(Event):
    """Answer to ``ReleasePartitions``: the callback returned, or raised (``failed``)."""

    plan: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class PartitionsStarted(Event):
    """Answer to ``StartPartitions``: the callback returned, or raised (``failed``)."""

    plan: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """``deadline_ms`` was reached. Harmless when early, late or superfluous."""


EVENT_TYPES: Final = frozenset(Event.__subclasses__())
"""All of them; anything else is refused."""

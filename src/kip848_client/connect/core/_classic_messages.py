"""What a worker asks of the coordinator of a classic group, and what comes of it.

Each command has a number; the driver answers it with one event of that number, ``Joined``,
``Synced``, ``HeartbeatTaken`` or ``Left`` when it was accepted, else one of the other three.
``WaitingRequest`` are those that wait at the coordinator for the other members: they go out on a
connection of their own, because whatever follows them there waits as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kip848_client.connect.core._commands import WorkerCommand
from kip848_client.connect.core._events import WorkerEvent
from kip848_client.core.empty import EMPTY
from kip848_client.core.member import LossReason
from kip848_client.errors import Kip848Error

__all__ = [
    "ClassicAnswer",
    "ClassicRequest",
    "HeartbeatTaken",
    "Joined",
    "Left",
    "RequestFailed",
    "RequestLost",
    "RequestRefused",
    "SendClassicHeartbeat",
    "SendJoin",
    "SendLeave",
    "SendSync",
    "Synced",
    "WaitingRequest",
]


@dataclass(frozen=True, slots=True)
class ClassicRequest(WorkerCommand):
    """Send one request to the coordinator that is known, once. Answer within ``timeout_ms``."""

    attempt: int
    timeout_ms: int
    member_id: str


@dataclass(frozen=True, slots=True)
class WaitingRequest(ClassicRequest):
    """One that waits at the coordinator."""


@dataclass(frozen=True, slots=True)
class SendJoin(WaitingRequest):
    """JoinGroup: take part in the next round."""

    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """What this worker says, by embedded protocol; the preferred one first."""
    reason: str


@dataclass(frozen=True, slots=True)
class SendSync(WaitingRequest):
    """SyncGroup: give the assignments, if this worker leads, and get one's own."""

    generation: int
    protocol: str
    assignments: Mapping[str, bytes] = EMPTY


@dataclass(frozen=True, slots=True)
class SendClassicHeartbeat(ClassicRequest):
    """Heartbeat: this worker lives; is there a new round?"""

    generation: int


@dataclass(frozen=True, slots=True)
class SendLeave(ClassicRequest):
    """LeaveGroup."""

    reason: str


@dataclass(frozen=True, slots=True)
class ClassicAnswer(WorkerEvent):
    """Base of what comes of a request."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Joined(ClassicAnswer):
    """JoinGroup was answered."""

    generation: int
    member_id: str
    leader: str
    protocol: str
    members: Mapping[str, bytes] = EMPTY
    """What all members say, for the leader only."""


@dataclass(frozen=True, slots=True)
class Synced(ClassicAnswer):
    """SyncGroup was answered."""

    assignment: bytes


@dataclass(frozen=True, slots=True)
class HeartbeatTaken(ClassicAnswer):
    """Heartbeat was answered: nothing new."""


@dataclass(frozen=True, slots=True)
class Left(ClassicAnswer):
    """LeaveGroup was answered: the worker is not in the group any more."""


@dataclass(frozen=True, slots=True)
class RequestRefused(ClassicAnswer):
    """The coordinator answered with an error."""

    api: str
    code: int
    member_id: str = ""
    """With MEMBER_ID_REQUIRED: the id to join with."""


@dataclass(frozen=True, slots=True)
class RequestLost(ClassicAnswer):
    """There is no answer, and a retry may help."""

    reason: LossReason
    why: str = ""
    """For people."""


@dataclass(frozen=True, slots=True)
class RequestFailed(ClassicAnswer):
    """No retry can help (authentication refused, no such API)."""

    error: Kip848Error

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
    """Send one request to the known coordinator, once.

    Attributes:
        attempt: Numbers the request; the answer has the same number.
        timeout_ms: Answer within this many milliseconds.
        member_id: This worker's id; empty before the coordinator has given one.
    """

    attempt: int
    timeout_ms: int
    member_id: str


@dataclass(frozen=True, slots=True)
class WaitingRequest(ClassicRequest):
    """A request that waits at the coordinator for the other members."""


@dataclass(frozen=True, slots=True)
class SendJoin(WaitingRequest):
    """JoinGroup: take part in the next round.

    Attributes:
        session_timeout_ms: How long the coordinator keeps a silent worker.
        rebalance_timeout_ms: How long a round waits for a worker.
        reason: In words, for the coordinator's log (KIP-800).
    """

    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """What this worker says, by embedded protocol; the preferred one first."""
    reason: str


@dataclass(frozen=True, slots=True)
class SendSync(WaitingRequest):
    """SyncGroup: send the assignments, if this worker leads, and get its own.

    Attributes:
        generation: The round.
        protocol: The embedded protocol of the round.
        assignments: Bytes by member id; empty unless this worker leads.
    """

    generation: int
    protocol: str
    assignments: Mapping[str, bytes] = EMPTY


@dataclass(frozen=True, slots=True)
class SendClassicHeartbeat(ClassicRequest):
    """Heartbeat: this worker lives; is there a new round?

    Attributes:
        generation: The round.
    """

    generation: int


@dataclass(frozen=True, slots=True)
class SendLeave(ClassicRequest):
    """LeaveGroup.

    Attributes:
        reason: In words, for the coordinator's log (KIP-800).
    """

    reason: str


@dataclass(frozen=True, slots=True)
class ClassicAnswer(WorkerEvent):
    """Base of what comes of a request.

    Attributes:
        attempt: The number of the request.
    """

    attempt: int


@dataclass(frozen=True, slots=True)
class Joined(ClassicAnswer):
    """JoinGroup was answered.

    Attributes:
        generation: The round.
        member_id: This worker's id.
        leader: The id of the worker that computes the assignment.
        protocol: The embedded protocol that the group has agreed on.
    """

    generation: int
    member_id: str
    leader: str
    protocol: str
    members: Mapping[str, bytes] = EMPTY
    """What all members say, for the leader only."""


@dataclass(frozen=True, slots=True)
class Synced(ClassicAnswer):
    """SyncGroup was answered.

    Attributes:
        assignment: This worker's part, in the embedded protocol.
    """

    assignment: bytes


@dataclass(frozen=True, slots=True)
class HeartbeatTaken(ClassicAnswer):
    """Heartbeat was answered: nothing new."""


@dataclass(frozen=True, slots=True)
class Left(ClassicAnswer):
    """LeaveGroup was answered: the worker is not in the group any more."""


@dataclass(frozen=True, slots=True)
class RequestRefused(ClassicAnswer):
    """The coordinator answered with an error.

    Attributes:
        api: Kafka's name of the request.
        code: The error code.
    """

    api: str
    code: int
    member_id: str = ""
    """With MEMBER_ID_REQUIRED: the id to join with."""


@dataclass(frozen=True, slots=True)
class RequestLost(ClassicAnswer):
    """There is no answer, and a retry may help.

    Attributes:
        reason: How far the request came.
    """

    reason: LossReason
    why: str = ""
    """For people."""


@dataclass(frozen=True, slots=True)
class RequestFailed(ClassicAnswer):
    """No retry can help: authentication refused, no such API.

    Attributes:
        error: Why.
    """

    error: Kip848Error

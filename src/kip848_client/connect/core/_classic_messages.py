"""A worker's requests to the coordinator of a classic group, and their results.

Each command has a number. The driver answers it with one event of that number: ``Joined``,
``Synced``, ``HeartbeatTaken`` or ``Left`` if it was accepted, else one of the other three. The
answer to a ``WaitingRequest`` is held back by the coordinator until the other members have sent
theirs. These requests use a connection of their own, because any request after them on the same
connection would wait as long.
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
        attempt: The number of the request; the answer has the same number.
        timeout_ms: The time limit for the answer, in milliseconds.
        member_id: This worker's id; empty until the coordinator has assigned one.
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
        session_timeout_ms: How long the coordinator keeps a worker without heartbeats.
        rebalance_timeout_ms: How long a round waits for a worker.
        reason: A text for the coordinator's log (KIP-800).
    """

    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """This worker's metadata, by embedded protocol; the preferred one first."""
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
    """Heartbeat: reports that this worker is alive, and asks for a new round.

    Attributes:
        generation: The round.
    """

    generation: int


@dataclass(frozen=True, slots=True)
class SendLeave(ClassicRequest):
    """LeaveGroup.

    Attributes:
        reason: A text for the coordinator's log (KIP-800).
    """

    reason: str


@dataclass(frozen=True, slots=True)
class ClassicAnswer(WorkerEvent):
    """Base of all results of a request.

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
    """The metadata of all members, for the leader only."""


@dataclass(frozen=True, slots=True)
class Synced(ClassicAnswer):
    """SyncGroup was answered.

    Attributes:
        assignment: This worker's assignment, in the embedded protocol.
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
    """No answer arrived, and a retry may help.

    Attributes:
        reason: How far the request got.
    """

    reason: LossReason
    why: str = ""
    """A text for people."""


@dataclass(frozen=True, slots=True)
class RequestFailed(ClassicAnswer):
    """No retry can help: authentication refused, no such API.

    Attributes:
        error: The reason.
    """

    error: Kip848Error

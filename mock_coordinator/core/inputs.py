"""The inputs of ``ClusterCore.step``: what can happen to a broker.

Inputs are facts from outside, named in the past tense. They have no time: the driver passes the
current time separately, so that a test or a simulation controls the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kip848_client.core.wire._fields import Message

__all__ = [
    "LOCAL_CLIENT",
    "ClientInfo",
    "ConnectionLost",
    "CoordinatorMoved",
    "Input",
    "LeaderMoved",
    "NodeStarted",
    "NodeStopped",
    "RequestReceived",
    "TimerFired",
]


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """Who sent a request, as Kafka records it in a group's members.

    ``client_id`` is the header's (``None`` when the client sent null), ``host`` Java's rendering of
    the peer address (``"/127.0.0.1"``), ``principal`` the authenticated name. ``listener`` is the
    listener that the client came through, ``None`` for the plain one.
    """

    client_id: str | None = None
    host: str = "/127.0.0.1"
    principal: str = "User:ANONYMOUS"
    listener: str | None = None


LOCAL_CLIENT: Final = ClientInfo("mock-coordinator")
"""The client that requests of the coordinator's own user interface are attributed to."""


@dataclass(frozen=True, slots=True)
class Input:
    """Base of everything that ``ClusterCore.step`` accepts."""


@dataclass(frozen=True, slots=True)
class RequestReceived(Input):
    """A request was read from a connection.

    ``connection`` is the driver's number for the connection, ``correlation`` the header's
    correlation id; both come back in the reply. ``version`` is the API version of ``request``.
    ``node_id`` is the broker that the connection leads to; ``None`` where there is only one, and
    for the user interface of the whole cluster, which reaches whichever broker it takes.
    ``size_bytes`` is how long its frame was, 0 when it came in none.
    """

    connection: int
    correlation: int
    version: int
    client: ClientInfo
    request: Message
    node_id: int | None = None
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ConnectionLost(Input):
    """A connection is gone: nothing more will be read from it, and nothing can be answered."""

    connection: int


@dataclass(frozen=True, slots=True)
class TimerFired(Input):
    """The time of ``ClusterCore.deadline_ms`` has come. Early or spurious ones are harmless."""


@dataclass(frozen=True, slots=True)
class LeaderMoved(Input):
    """A partition is to be led by another node; one that has no replica gets the old leader's.

    Of a partition of ``__consumer_offsets`` this moves the coordinator of its groups.
    """

    topic: str
    partition: int
    node_id: int


@dataclass(frozen=True, slots=True)
class CoordinatorMoved(Input):
    """The coordinator of a group is to be another node: this one, or the next that runs.

    ``__consumer_offsets`` is created for it when no client has asked for a coordinator yet. Without
    another node the same one is elected again, and reloads its groups. ``transactional``: ``key``
    is not a group but a transactional id, of ``__transaction_state``.
    """

    key: str
    node_id: int | None = None
    transactional: bool = False


@dataclass(frozen=True, slots=True)
class NodeStopped(Input):
    """A broker does not run any more; its connections are gone.

    ``noticed_after_ms`` is how long the others go on believing in it: 0 for one that stops in good
    order, ``broker.session.timeout.ms`` for one that dies. Until then its partitions have no
    leader.
    """

    node_id: int
    noticed_after_ms: int = 0


@dataclass(frozen=True, slots=True)
class NodeStarted(Input):
    """A broker runs again, in sync with the others."""

    node_id: int

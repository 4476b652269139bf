"""The outputs of ``ClusterCore.step``, which the driver performs in order."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.types import TopicId
from kip848_client.core.wire._fields import Message
from mock_coordinator.core.inputs import RequestReceived

__all__ = [
    "CloseConnection",
    "NoReply",
    "Output",
    "Persist",
    "Reply",
    "TornReply",
    "Unanswered",
    "reply_to",
]


@dataclass(frozen=True, slots=True)
class Output:
    """Base of everything that ``ClusterCore.step`` returns."""


@dataclass(frozen=True, slots=True)
class Persist(Output):
    """Record batches were appended and have to be safe before anything else of this step, or of a
    later one, goes out. Only of a broker whose disk is really one (``keep_unsaved``).

    ``appended``: topic id, partition, and the batches with their final offsets, in order.
    """

    appended: tuple[tuple[TopicId, int, tuple[bytes, ...]], ...]


@dataclass(frozen=True, slots=True)
class Reply(Output):
    """Answer a request. ``version`` is the one to encode in, which for ApiVersions may differ from
    the request's (KIP-511). It may come many steps after its request (a parked fetch)."""

    connection: int
    correlation: int
    version: int
    response: Message
    api_key: int


def reply_to(received: RequestReceived, response: Message) -> Reply:
    """The answer to a request, in its version."""
    return Reply(
        received.connection,
        received.correlation,
        received.version,
        response,
        type(received.request).API_KEY,
    )


@dataclass(frozen=True, slots=True)
class NoReply(Output):
    """A request was served and has no answer on the wire (Produce with acks=0); the connection may
    go on with its next request."""

    connection: int
    correlation: int


@dataclass(frozen=True, slots=True)
class Unanswered(Output):
    """A request will never be answered, because Kafka fails on it; its connection waits in vain.
    ``why`` is for the log."""

    connection: int
    correlation: int
    why: str


@dataclass(frozen=True, slots=True)
class TornReply(Output):
    """Write only the first ``after_bytes`` bytes of a reply's frame, then close the connection. No
    broker wants this; a fault does."""

    reply: Reply
    after_bytes: int


@dataclass(frozen=True, slots=True)
class CloseConnection(Output):
    """Close the connection; ``why`` is for the log."""

    connection: int
    why: str

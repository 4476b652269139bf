"""What a fault does to the request it hits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kip848_client.wire._fields import Message

__all__ = [
    "Action",
    "Answer",
    "CorruptBatch",
    "Delay",
    "Disconnect",
    "Drop",
    "Duplicate",
    "Moment",
    "MoveCoordinator",
    "Refuse",
    "Throttle",
]


class Moment(StrEnum):
    """Before the broker sees the request, or after it has done what it says."""

    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Action:
    """Base of all actions."""


@dataclass(frozen=True, slots=True)
class Answer(Action):
    """Answer with this response; the broker does not see the request."""

    response: Message


@dataclass(frozen=True, slots=True)
class Refuse(Action):
    """Answer with an error in every field that the response has for one; the broker does not see
    the request. ``message`` None is Kafka's own text for the code."""

    code: int
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Delay(Action):
    """Hold the request back, or its response, for ``by_ms``."""

    by_ms: int
    moment: Moment = Moment.RESPONSE


@dataclass(frozen=True, slots=True)
class Drop(Action):
    """Lose the request, or its response after it was applied; the connection stays."""

    moment: Moment = Moment.RESPONSE


@dataclass(frozen=True, slots=True)
class Disconnect(Action):
    """Close the connection instead of the request, or of its response. With ``after_bytes`` the
    response is cut off there first: a client sees half a frame."""

    moment: Moment = Moment.RESPONSE
    after_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Throttle(Action):
    """Answer with this ``throttle_time_ms``, and take nothing more from the connection until then,
    as a broker does whose quota is used up (KIP-219)."""

    for_ms: int


@dataclass(frozen=True, slots=True)
class Duplicate(Action):
    """Let the broker see the request twice; the client gets the first response."""


@dataclass(frozen=True, slots=True)
class CorruptBatch(Action):
    """Damage the first record batch of each partition in the response (of Fetch), so that its
    checksum is wrong; only of the topic and the partition that the fault's match names, if any."""


@dataclass(frozen=True, slots=True)
class MoveCoordinator(Action):
    """Before the request is looked at, another broker takes over as coordinator of its group and
    of its transactional id: this one, or the next. With one broker it is one that reloads."""

    node_id: int | None = None

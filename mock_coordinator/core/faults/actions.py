"""Actions: what a fault does to a request, its form in JSON, and which values are valid.

``injector`` performs them. A new action is a class here and a case there.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

from kip848_client.core.wire import api_named, write_response
from kip848_client.core.wire._fields import Message
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError, WireError
from mock_coordinator.core.faults.json_values import (
    Fields,
    json_number,
    json_text,
    message_from_json,
    require_true,
)
from mock_coordinator.core.faults.match import Match

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
    """Before the broker handles the request, or after."""

    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Action:
    """Base class of all actions."""

    json_name: ClassVar[str]
    """The field that selects this action in the JSON form of a fault."""

    @classmethod
    @abstractmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        """Read this action from ``fields``, removing what was read. Raises ``ConfigError``."""

    def problem(self, _: Match, /) -> str | None:
        """Why this can never happen to a request that the argument matches; ``None`` if it can."""
        return None


@dataclass(frozen=True, slots=True)
class Refuse(Action):
    """Answer with an error in every field that the response has for one; the broker does not see
    the request. ``message`` None is Kafka's own text for the code."""

    json_name: ClassVar[str] = "error"

    code: int
    message: str | None = None

    @classmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        value = fields.pop("error")
        message = json_text(fields, "message")
        if isinstance(value, str) and value in ErrorCode.__members__:
            return cls(ErrorCode[value], message)
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(value, message)
        raise ConfigError(f"error = {value!r}: expected the name or the code of a Kafka error")

    def problem(self, _: Match, /) -> str | None:
        return None if -0x8000 <= self.code <= 0x7FFF else f"{self.code} is not an error code"


@dataclass(frozen=True, slots=True)
class Answer(Action):
    """Return this response instead of handling the request."""

    json_name: ClassVar[str] = "answer"

    response: Message

    @classmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        if match.api is None:
            raise ConfigError("answer needs match.api")
        try:
            api = api_named(match.api)
        except KeyError as err:
            raise ConfigError(f"unknown API {match.api!r}") from err
        return cls(message_from_json(api.response, fields.pop("answer"), match.api))

    def problem(self, match: Match, /) -> str | None:
        """Check that all values are valid, and that at least one version of the API has a field for
        each of them."""
        if match.api is None:
            return "an answer needs match.api"
        api = api_named(match.api)
        if not isinstance(self.response, api.response):
            return f"{type(self.response).__name__} is not a response of {api.name}"
        low, high = api.versions
        if match.versions is not None:
            low, high = max(low, match.versions[0]), min(high, match.versions[1])
        problems: list[WireError] = []
        for version in range(high, low - 1, -1):
            try:
                write_response(self.response, api, version, 0)
            except WireError as err:
                problems.append(err)
        wrong = [err for err in problems if err.__cause__ is not None]  # wrong in every version
        if wrong or (problems and len(problems) == high - low + 1):
            return str((wrong or problems)[0])
        return None


@dataclass(frozen=True, slots=True)
class Delay(Action):
    """Delay the request, or its response, by ``by_ms`` milliseconds."""

    json_name: ClassVar[str] = "delay_ms"

    by_ms: int
    moment: Moment = Moment.RESPONSE

    @classmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        by_ms = json_number(fields, "delay_ms", 0) or 0
        return cls(by_ms, _moment(fields.pop("of", "response"), "of"))

    def problem(self, _: Match, /) -> str | None:
        return _negative(self.by_ms)


@dataclass(frozen=True, slots=True)
class Drop(Action):
    """Lose the request, or the response to a request that was handled. The connection stays
    open."""

    json_name: ClassVar[str] = "drop"

    moment: Moment = Moment.RESPONSE

    @classmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        return cls(_moment(fields.pop("drop"), "drop"))


@dataclass(frozen=True, slots=True)
class Disconnect(Action):
    """Close the connection instead of handling the request, or instead of sending its response.
    With ``after_bytes`` that many bytes of the response are sent first."""

    json_name: ClassVar[str] = "disconnect"

    moment: Moment = Moment.RESPONSE
    after_bytes: int | None = None

    @classmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        moment = _moment(fields.pop("disconnect"), "disconnect")
        return cls(moment, json_number(fields, "after_bytes", None))

    def problem(self, _: Match, /) -> str | None:
        if self.moment is Moment.REQUEST and self.after_bytes is not None:
            return "after_bytes needs Moment.RESPONSE"
        return _negative(self.after_bytes or 0)


@dataclass(frozen=True, slots=True)
class Throttle(Action):
    """Answer with this ``throttle_time_ms``, and read nothing from the connection until then, as a
    broker does when a quota is exceeded (KIP-219)."""

    json_name: ClassVar[str] = "throttle_ms"

    for_ms: int

    @classmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        return cls(json_number(fields, "throttle_ms", 0) or 0)

    def problem(self, _: Match, /) -> str | None:
        return _negative(self.for_ms)


@dataclass(frozen=True, slots=True)
class Duplicate(Action):
    """Handle the request twice. The client gets the first response."""

    json_name: ClassVar[str] = "duplicate"

    @classmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        require_true(fields, "duplicate")
        return cls()


@dataclass(frozen=True, slots=True)
class CorruptBatch(Action):
    """Damage the first record batch of each partition of a Fetch response, so that its checksum is
    wrong. If the fault's match has a topic or partition, damage only those."""

    json_name: ClassVar[str] = "corrupt_batch"

    @classmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        require_true(fields, "corrupt_batch")
        return cls()

    def problem(self, match: Match, /) -> str | None:
        if match.api in (None, "Fetch"):
            return None
        return "only the batches of a Fetch can be damaged"


@dataclass(frozen=True, slots=True)
class MoveCoordinator(Action):
    """Before the request is handled, move the coordinator of its group and of its transactional id
    to the broker ``node_id``; ``None`` for the next broker. A single broker reloads instead."""

    json_name: ClassVar[str] = "move_coordinator"

    node_id: int | None = None

    @classmethod
    def from_json(cls, fields: Fields, match: Match) -> Self:
        if fields["move_coordinator"] == "next":
            del fields["move_coordinator"]
            return cls()
        return cls(json_number(fields, "move_coordinator", None))


def _moment(value: object, name: str) -> Moment:
    if value not in ("request", "response"):
        raise ConfigError(f"{name} = {value!r}: expected request or response")
    return Moment(value)


def _negative(amount: int) -> str | None:
    return f"{amount} is negative" if amount < 0 else None

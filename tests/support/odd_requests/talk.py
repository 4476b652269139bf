"""A conversation with one broker, written down so that two brokers' can be compared.

``Talk.ask`` sends one request and notes what came: the response as plain dicts and lists, or that
the broker closed the connection, or that it stays silent. What a broker chooses for itself (ports,
session ids) is replaced by a star.

A request that Kafka may never answer is ``unanswered``: the conversation goes on without it, over
another connection, and ``finish`` looks whether there was an answer after all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kip848_client.core.wire import api_named, request_api
from tests.support.plain_message import message
from tests.support.wire_connection import ConnectionLostError, WireConnection

__all__ = ["CLOSED", "GOES_ON", "SILENT", "Talk", "differences"]

CLOSED: Final = "the connection was closed"
SILENT: Final = "no answer"
GOES_ON: Final = "no answer, and the connection goes on"
"""As it should be after a Produce with acks=0."""

_PATIENCE_S: Final = 30.0
_AT_FIRST_S: Final = 0.3
_IN_ALL_S: Final = 2.0
"""How long an answer may take; one that may never come, until the next request and altogether."""

_STRANGE_ID: Final = b"\7" * 16
_CHOSEN_FIELDS: Final = {"cluster_id", "host", "port", "log_dir", "controller_id", "session_id"}
_SIZES: Final = {"total_bytes", "usable_bytes"}
_CHOSEN_TEXT: Final = re.compile(r"(?<=@)[0-9a-f]{6,8}\b|(?<=the cluster id \")[\w-]{22}")


class _Asked:
    """A request that was sent: what comes of it can be read once."""

    def __init__(
        self, connection: WireConnection, request: Any, version: int, *, shuffled: bool
    ) -> None:
        self.connection: Final = connection
        self._shuffled: Final = shuffled
        self._sent_at: Final = time.monotonic()
        correlation = connection.send(request, version)
        self._goes_on: Final = getattr(request, "acks", -1) == 0
        if self._goes_on:  # no answer is due to this one: the next one's tells
            request, version = message("ApiVersions"), 0
            correlation = connection.send(request, version)
        self._receive: Final = partial(
            connection.receive, request_api(request), version, correlation
        )

    def has_answer(self, within_s: float) -> bool:
        """Whether something has come so long after it was sent."""
        return self.connection.has_answer(max(0, self._sent_at + within_s - time.monotonic()))

    def read(self) -> tuple[Any, Any]:
        """The response, if one is due, and what to note. Raises what ``WireConnection`` raises."""
        answer = self._receive()
        return (None, GOES_ON) if self._goes_on else (answer, _plain(answer, self._shuffled))


class Talk:
    """``connect`` opens a connection to the broker; ``topic_ids`` are its topics' ids by name.

    ``answers`` has what was noted, in order, each under a name that tells the request.
    """

    def __init__(
        self, connect: Callable[[], WireConnection], topic_ids: Mapping[str, bytes]
    ) -> None:
        self._connect: Final = connect
        self._connection = connect()
        self._offered: Final = self._connection.versions()
        self._topic_ids: Final = topic_ids
        self._aside: Final[dict[str, _Asked]] = {}
        self.answers: dict[str, Any] = {}

    def versions(self, api: str, *some: int) -> tuple[int, ...]:
        """Those of an API that the broker has (none, if it lacks the API); of ``some``, if any are
        named."""
        (low, high), ours = self._offered.get(api, (1, 0)), api_named(api).versions
        offered = range(max(low, ours[0]), min(high, ours[1]) + 1)
        return tuple(each for each in offered if not some or each in some)

    def topic(self, name: str, field: str = "name", *, by_id: bool, **parts: Any) -> dict[str, Any]:
        """A request's part about a topic, which is named in ``field`` or by its id."""
        named = {"topic_id": self._topic_ids.get(name, _STRANGE_ID)} if by_id else {field: name}
        return {**named, **parts}

    def ask(
        self,
        what: str,
        api: str,
        version: int,
        /,
        *,
        shuffled: bool = False,
        unanswered: bool = False,
        **fields: Any,
    ) -> Any:
        """Send a request, note the answer as plain data and return the response message; ``None``
        when there is none (yet), and then the next request goes over a new connection.
        ``shuffled``: no order can be relied on in the answer."""
        name = f"{what}: {api} v{version}"
        answer: Any = None
        try:
            asked = _Asked(self._connection, message(api, **fields), version, shuffled=shuffled)
            if asked.has_answer(_AT_FIRST_S if unanswered else _PATIENCE_S):
                answer, noted = asked.read()
                self.note(name, noted)
            else:
                self._aside[self.note(name, SILENT)] = asked
                self._connection = self._connect()
        except (ConnectionLostError, OSError):
            self.note(name, CLOSED)
            self._connection.close()
            self._connection = self._connect()
        return answer

    def finish(self) -> dict[str, Any]:
        """Everything that was noted, once those without an answer have had their time."""
        for key, asked in self._aside.items():
            with contextlib.suppress(ConnectionLostError, OSError):
                if asked.has_answer(_IN_ALL_S):
                    self.answers[key] = CLOSED
                    _, self.answers[key] = asked.read()
        return self.answers

    def quietly(self, api: str, version: int, /, **fields: Any) -> Any:
        """A request whose answer is not noted, because it is only needed to go on."""
        return self._connection.request(message(api, **fields), version)

    def close(self) -> None:
        for each in (self._connection, *(asked.connection for asked in self._aside.values())):
            each.close()

    def note(self, name: str, value: Any) -> str:
        """Write something down, under a name that tells it from everything else; returns it."""
        number, key = 2, name
        while key in self.answers:
            number, key = number + 1, f"{name} #{number}"
        self.answers[key] = value
        return key


def _plain(value: Any, shuffled: bool) -> Any:
    """A message as dicts and lists, in its order unless that is ``shuffled``."""
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
        found = {name: _plain(getattr(value, name), shuffled) for name in fields}
        if str(found.get("name")).startswith("__"):
            found.pop("topic_id", None)
        for name in fields:
            chosen = name in _CHOSEN_FIELDS and found[name] not in (None, "", -1, 0)
            if chosen or name in _SIZES:
                found[name] = "*"
        return found
    if isinstance(value, tuple):
        parts = [_plain(each, shuffled) for each in value]
        return sorted(parts, key=repr) if shuffled else parts
    if isinstance(value, str):
        return _CHOSEN_TEXT.sub("*", value)
    return (
        f"{len(value)} bytes"
        if isinstance(value, bytes) and len(value) > len(_STRANGE_ID)
        else value
    )


def differences(real: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """What was asked and both answers, for every answer that is not equal."""
    found: list[str] = []
    for name in [*real, *(each for each in ours if each not in real)]:
        left, right = real.get(name, "not asked"), ours.get(name, "not asked")
        if left != right:
            found.append(f"{name}\n    real {left}\n    ours {right}")
    return found

"""The connections of one side: a channel is one connection, opened when first used and again after
the other end closed it. A request may hold its channel until its answer comes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from kip848_client.core.wire import Api, request_api
from kip848_client.core.wire.messages.groups import DescribeGroupsRequest
from tests.support.wire_connection import ConnectionLostError, WireConnection

__all__ = ["BARRIER_GROUP", "ChannelConnection", "Channels", "Closed"]

BARRIER_GROUP: Final = "barrier"
_CONTROL_CHANNEL: Final = -1
_POLL_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class Closed:
    """What a side answered that closed the connection instead."""

    answer: str = "connection closed"


class ChannelConnection(WireConnection):
    """A connection whose requests have correlation ids that no other connection's have, and that
    the broker has taken up before it is used: nothing sent on another one overtakes that."""

    _ids: ClassVar = itertools.count(1)

    def send(self, message: Any, version: int) -> int:
        self._correlation = next(self._ids) - 1
        return super().send(message, version)

    def taken_up(self) -> Self:
        """The same, when it is."""
        self.versions()
        return self


@dataclass(frozen=True, slots=True)
class _Waiting:
    api: Api
    version: int
    correlation: int


class Channels:
    """``connect`` opens the connection of a channel, authenticated where that is needed."""

    def __init__(self, connect: Callable[[int], WireConnection]) -> None:
        self._connect = connect
        self._connections: dict[int, WireConnection] = {}
        self._waiting: dict[int, _Waiting] = {}

    @property
    def waiting(self) -> frozenset[int]:
        """Channels whose request is not answered yet."""
        return frozenset(self._waiting)

    def request(self, message: Any, version: int, channel: int = 0) -> Any:
        """Send and wait: the answer, or ``Closed``; ``None`` for a produce without acks."""
        assert channel not in self._waiting, f"channel {channel} still waits for an answer"
        connection = self._open(channel)
        try:
            if getattr(message, "acks", None) == 0:
                connection.send(message, version)
                return None
            return connection.request(message, version)
        except ConnectionLostError:
            return self._lost(channel)

    def send(self, message: Any, version: int, channel: int) -> int:
        """Send without waiting; returns the correlation id, which no other request has."""
        assert channel not in self._waiting, f"channel {channel} still waits for an answer"
        correlation = self._open(channel).send(message, version)
        self._waiting[channel] = _Waiting(request_api(message), version, correlation)
        return correlation

    def has_answer(self, channel: int) -> bool:
        """Whether something has come for a channel's request, if only the end of the connection."""
        return self._connections[channel].has_answer()

    def arrived(self) -> dict[int, Any]:
        """The answers that have come for waiting requests, by channel."""
        found: dict[int, Any] = {}
        for channel, waiting in list(self._waiting.items()):
            connection = self._connections[channel]
            if not connection.has_answer():
                continue
            del self._waiting[channel]
            try:
                found[channel] = connection.receive(
                    waiting.api, waiting.version, waiting.correlation
                )
            except ConnectionLostError:
                found[channel] = self._lost(channel)
        return found

    def arrived_within(self, timeout_s: float, wanted: frozenset[int]) -> dict[int, Any]:
        """As ``arrived``, for up to ``timeout_s`` or until these channels have their answers."""
        found = self.arrived()
        deadline = time.monotonic() + timeout_s
        while not wanted <= found.keys() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            found.update(self.arrived())
        return found

    def barrier(self) -> None:
        """Return when everything sent before has been looked at.

        Two requests, because the first may overtake what another connection sent just before it:
        what was sent before the first is read, at the latest, with the second.
        """
        for _ in range(2):
            request = DescribeGroupsRequest(groups=(BARRIER_GROUP,))
            self.request(request, 0, _CONTROL_CHANNEL)

    def versions(self) -> dict[str, tuple[int, int]]:
        """What the broker offers."""
        return self._open(_CONTROL_CHANNEL).versions()

    def control(self, message: Any, version: int) -> Any:
        """A request that is not part of any sequence."""
        return self.request(message, version, _CONTROL_CHANNEL)

    def abandon(self) -> None:
        """Close the connections that still wait, so that the next sequence may use the channels."""
        for channel in list(self._waiting):
            self._lost(channel)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._waiting.clear()

    def _open(self, channel: int) -> WireConnection:
        connection = self._connections.get(channel)
        if connection is None:
            connection = self._connections[channel] = self._connect(channel)
        return connection

    def _lost(self, channel: int) -> Closed:
        self._waiting.pop(channel, None)
        connection = self._connections.pop(channel, None)
        if connection is not None:
            connection.close()
        return Closed()

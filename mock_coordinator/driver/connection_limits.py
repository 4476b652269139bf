"""How many connections a broker accepts: ``max.connections`` and ``max.connections.per.ip``.

Theory of operation
===================

Both settings count the connections of all listeners of a broker. A connection that exceeds the
limit of its address is refused. One that exceeds the broker's limit waits, accepted and unread,
until another one ends; meanwhile its listener accepts no more, so that further ones wait in the
operating system. The listener for traffic between brokers (here the plain one that every broker
has) does not wait if there are others: the least recently used connection of another listener is
closed for it (KIP-402). Waiting connections get their slots in order of arrival.

In Kafka each network thread closes its own least recently used connection, so there the choice is
less strict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from mock_coordinator.core.settings.broker_config import BrokerConfig

__all__ = ["ConnectionLimits", "Place", "TooManyConnectionsError"]

_LOOK_AGAIN_S: Final = 1
"""How soon a waiting connection notices that the limit was raised."""


class TooManyConnectionsError(Exception):
    """A connection is refused; the message is for the log."""


@dataclass(slots=True, eq=False)
class Place:
    """The slot of one connection. Run the connection in ``scope``: it is cancelled if the slot is
    needed."""

    address: str
    is_protected: bool
    used: int = 0
    is_given_up: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


@dataclass(slots=True, eq=False)
class _Turn:
    """A waiting connection; ``come`` is set when it may check again."""

    come: anyio.Event = field(default_factory=anyio.Event)


class ConnectionLimits:
    """The limits of one broker, for all its listeners. ``config`` returns its current settings."""

    def __init__(self, config: Callable[[], BrokerConfig]) -> None:
        self._config: Final = config
        self._places: Final[dict[Place, None]] = {}
        self._per_address: Final[dict[str, int]] = {}
        self._waiting: Final[deque[_Turn]] = deque()
        self._uses = 0

    async def enter(self, address: str, *, is_protected: bool) -> Place:
        """Wait for a slot for a connection from an address. Release it with ``leave``.

        Raises ``TooManyConnectionsError`` if the address has reached its limit.
        """
        if not is_protected:
            await self._room()
        limit = _limit_of(address, self._config())
        if self._per_address.get(address, 0) >= limit:
            raise TooManyConnectionsError(
                f"{limit} connections from this address already (max.connections.per.ip)"
            )
        place = Place(address, is_protected)
        self._places[place] = None
        self._per_address[address] = self._per_address.get(address, 0) + 1
        self.touch(place)
        self._make_room()
        self._wake_next()
        return place

    def leave(self, place: Place) -> None:
        """The connection has ended. Calling it twice is harmless."""
        if place not in self._places:
            return
        del self._places[place]
        self._per_address[place.address] -= 1
        if not self._per_address[place.address]:
            del self._per_address[place.address]
        self._wake_next()

    def touch(self, place: Place) -> None:
        """The connection was used."""
        self._uses += 1
        place.used = self._uses

    async def _room(self) -> None:
        """Wait for a free slot, after those already waiting."""
        if self._has_room and not self._waiting:
            return
        turn = _Turn()
        self._waiting.append(turn)
        try:
            while not (self._has_room and self._waiting[0] is turn):
                turn.come = anyio.Event()
                with anyio.move_on_after(_LOOK_AGAIN_S):
                    await turn.come.wait()
        finally:
            self._waiting.remove(turn)

    @property
    def _has_room(self) -> bool:
        return len(self._places) < self._config().integer("max.connections")

    def _wake_next(self) -> None:
        if self._waiting and self._has_room:
            self._waiting[0].come.set()

    def _make_room(self) -> None:
        """Give up the least recently used connections of unprotected listeners, until the limit
        holds."""
        staying = [place for place in self._places if not place.is_given_up]
        over = len(staying) - self._config().integer("max.connections")
        if over <= 0:
            return
        open_to_all = [place for place in staying if not place.is_protected]
        for place in sorted(open_to_all, key=lambda each: each.used)[:over]:
            place.is_given_up = True
            place.scope.cancel()


def _limit_of(address: str, config: BrokerConfig) -> int:
    """``max.connections.per.ip``, or its override for the address."""
    for entry in (config.text("max.connections.per.ip.overrides") or "").split(","):
        host, _, limit = entry.strip().rpartition(":")
        if host == address and limit.isdigit():
            return int(limit)
    return config.integer("max.connections.per.ip")

"""How many connections a broker takes: ``max.connections`` and ``max.connections.per.ip``.

Theory of operation
===================

Both count the connections of all listeners of a broker. One that is too many for its address is
refused. One that is too many for the broker waits until another one ends, accepted and unread; its
listener accepts no further one meanwhile, so that the others wait in the operating system. The
listener of brokers among themselves (here the plain one that every broker has) does not wait when
there are others: for its connection the one that was used least recently of another listener is
closed (KIP-402). Connections that wait get their places in the order in which they came.

In Kafka each network thread closes the least recently used one of its own, so that the choice is
not quite as strict there.
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
"""How soon one that waits sees that a limit itself was raised."""


class TooManyConnectionsError(Exception):
    """A connection that is refused; the words are for the log."""


@dataclass(slots=True, eq=False)
class Place:
    """One connection's. Run it in ``scope``: its place may be needed for another one."""

    address: str
    is_protected: bool
    used: int = 0
    is_given_up: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


@dataclass(slots=True, eq=False)
class _Turn:
    """One that waits; ``come`` when it may look again."""

    come: anyio.Event = field(default_factory=anyio.Event)


class ConnectionLimits:
    """Of one broker, for all its listeners. ``config`` gives its settings now."""

    def __init__(self, config: Callable[[], BrokerConfig]) -> None:
        self._config: Final = config
        self._places: Final[dict[Place, None]] = {}
        self._per_address: Final[dict[str, int]] = {}
        self._waiting: Final[deque[_Turn]] = deque()
        self._uses = 0

    async def enter(self, address: str, *, is_protected: bool) -> Place:
        """A place for a connection from an address, as soon as there is one; ``leave`` it.

        Raises ``TooManyConnectionsError`` when the address has as many as it may have.
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
        """Wait until one more may come, behind those who wait already."""
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
        """Give up as many connections of listeners that are not protected as there are too many."""
        staying = [place for place in self._places if not place.is_given_up]
        over = len(staying) - self._config().integer("max.connections")
        if over <= 0:
            return
        open_to_all = [place for place in staying if not place.is_protected]
        for place in sorted(open_to_all, key=lambda each: each.used)[:over]:
            place.is_given_up = True
            place.scope.cancel()


def _limit_of(address: str, config: BrokerConfig) -> int:
    """``max.connections.per.ip``, or what ``max.connections.per.ip.overrides`` says."""
    for entry in (config.text("max.connections.per.ip.overrides") or "").split(","):
        host, _, limit = entry.strip().rpartition(":")
        if host == address and limit.isdigit():
            return int(limit)
    return config.integer("max.connections.per.ip")

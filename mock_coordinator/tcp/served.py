"""What all connections on TCP share, however their bytes are carried: the link between the broker's
driver and the connection's core (``mock_coordinator.connection``), which has all the rules."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Final

from mock_coordinator.connection import (
    Action,
    Close,
    ConnectionAuthenticator,
    ConnectionCore,
    ConnectionSettings,
    Signal,
    Submit,
    Write,
)
from mock_coordinator.core.outputs import NoReply, Reply, TornReply
from mock_coordinator.driver.core_driver import CoreDriver

__all__ = ["Peer", "ServedConnection"]

_log: Final = logging.getLogger("mock_coordinator")

Peer = tuple[str, int]
"""Address and port of a client."""


class ServedConnection(ABC):
    """One client: a ``Sink`` for the driver. Subclasses carry the bytes and keep the time.

    ``node_id`` is the broker that it leads to, as of ``CoreDriver.connect``. ``used`` is called
    when the client sends something. ``authenticator`` is as of ``ConnectionCore``.
    """

    def __init__(
        self,
        driver: CoreDriver,
        peer: Peer,
        node_id: int | None,
        settings: ConnectionSettings,
        authenticator: ConnectionAuthenticator | None,
        used: Callable[[], None],
    ) -> None:
        self._driver: Final = driver
        self._peer: Final = peer
        self._used: Final = used
        self._now_ms: Final = driver.clock
        self._number: Final = driver.connect(self, node_id)
        self._core: Final = ConnectionCore(self._now_ms(), self._number, settings, authenticator)

    # -- what the driver calls ---------------------------------------------------------------------

    def replied(self, reply: Reply | NoReply) -> None:
        """The request in hand was served."""
        now_ms = self._now_ms()
        self._perform(now_ms, self._core.answered(now_ms, reply))

    def torn(self, torn: TornReply) -> None:
        """The beginning of the reply is to be written, and no more."""
        now_ms = self._now_ms()
        self._perform(now_ms, self._core.torn(now_ms, torn))

    def closed(self, why: str) -> None:
        """The broker wants this connection closed."""
        self._perform(self._now_ms(), self._core.closed_by_broker(why))

    # -- what the core wants -----------------------------------------------------------------------

    def _received(self, data: bytes | bytearray | memoryview) -> None:
        self._used()
        now_ms = self._now_ms()
        self._perform(now_ms, self._core.receive(now_ms, data))

    def _perform(self, now_ms: int, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Submit):
                self._driver.submit(action.received)
            elif isinstance(action, Write):
                self._write(now_ms, action.data)
            elif isinstance(action, Signal):
                self._heed(action)
            else:
                self._end(action)

    def _end(self, close: Close) -> None:
        if close.why is not None:
            level = logging.INFO if close.is_expected else logging.WARNING
            _log.log(level, "connection from %s:%s closed: %s", *self._peer, close.why)
        self._close()

    def _gone(self) -> None:
        """The connection does not exist any more; nor does it for the broker."""
        self._core.lost()
        self._driver.disconnect(self._number)

    def _reset(self) -> None:
        _log.debug("connection from %s:%s was reset", *self._peer)

    @abstractmethod
    def _write(self, now_ms: int, data: bytes) -> None:
        """Send this, and call the core's ``taken`` when it was received."""

    @abstractmethod
    def _heed(self, signal: Signal) -> None:
        """Do what a signal says."""

    @abstractmethod
    def _close(self) -> None:
        """Close now, whatever is not written."""

"""Connections with TLS, and all connections under trio: one task for the bytes and one for the
time.

The first task does one thing at a time: it reads, or it writes, or it waits for the broker. (TLS
may have to write in order to read, and the other way round.)
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.streams.tls import TLSAttribute, TLSStream

from mock_coordinator.connection import (
    AuthenticatorFactory,
    ConnectionSettings,
    Signal,
)
from mock_coordinator.driver.core_driver import CoreDriver
from mock_coordinator.driver.timeouts import move_on_after
from mock_coordinator.tcp.served import Peer, ServedConnection

__all__ = ["StreamConnection"]

_CHUNK_BYTES: Final = 65_536
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class StreamConnection(ServedConnection):
    """One client, served by tasks of its own. ``await connection.run()``.

    ``context`` is for TLS. The other arguments are those of ``ServedConnection``.
    """

    def __init__(
        self,
        driver: CoreDriver,
        stream: anyio.abc.ByteStream,
        peer: Peer,
        node_id: int | None,
        settings: ConnectionSettings,
        authenticators: AuthenticatorFactory,
        context: ssl.SSLContext | None,
        used: Callable[[], None],
    ) -> None:
        at_once = authenticators.for_client(peer[0]) if context is None else None
        super().__init__(driver, peer, node_id, settings, at_once, used)
        self._stream = stream
        self._authenticators: Final = authenticators
        self._context: Final = context
        self._scope: Final = anyio.CancelScope()
        self._unsent: bytes | None = None
        self._has_turn = False
        self._moved = anyio.Event()
        """Set when the task that waits has something to do."""
        self._timer_moved = anyio.Event()

    async def run(self) -> None:
        """Serve requests until the connection is closed. Raises what goes wrong in the broker."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._keep_time)
                    await self._talk()
                    self._scope.cancel()
        finally:
            self._gone()

    async def _talk(self) -> None:
        try:
            if self._context is not None:
                await self._shake_hands(self._context)
            while True:
                await self._do_one_thing()
        except _GONE:
            self._reset()
        except ssl.SSLError as err:
            self._perform(self._now_ms(), self._core.broken(str(err)))

    async def _shake_hands(self, context: ssl.SSLContext) -> None:
        try:
            self._stream = await TLSStream.wrap(
                self._stream, server_side=True, ssl_context=context, standard_compatible=False
            )
        except Exception as err:  # noqa: BLE001  # bad bytes fail in as many ways as TLS has
            self._perform(self._now_ms(), self._core.broken(repr(err)))
            await anyio.lowlevel.checkpoint()  # which is where the closed connection ends
            return
        certificate = self._stream.extra(TLSAttribute.peer_certificate, None)
        authenticator = self._authenticators.for_client(self._peer[0], certificate)
        now_ms = self._now_ms()
        self._perform(now_ms, self._core.secured(now_ms, authenticator))

    async def _do_one_thing(self) -> None:
        if self._unsent is not None:
            data, self._unsent = self._unsent, None
            await self._stream.send(data)
            now_ms = self._now_ms()
            self._perform(now_ms, self._core.taken(now_ms))
        elif self._has_turn:
            self._has_turn = False
            await anyio.lowlevel.checkpoint()
            now_ms = self._now_ms()
            self._perform(now_ms, self._core.proceed(now_ms))
        elif self._core.is_reading:
            await self._read()
        else:
            self._moved = anyio.Event()
            await self._moved.wait()

    async def _read(self) -> None:
        try:
            data = await self._stream.receive(_CHUNK_BYTES)
        except anyio.EndOfStream:
            self._perform(self._now_ms(), self._core.ended())
            await anyio.lowlevel.checkpoint()
        else:
            self._received(data)

    async def _keep_time(self) -> None:
        while True:
            self._timer_moved = anyio.Event()
            deadline_ms = self._core.deadline_ms
            left_s = None
            if deadline_ms is not None:
                left_s = max(deadline_ms - self._now_ms(), 0) / 1000
            with move_on_after(self._driver.clock, left_s):
                await self._timer_moved.wait()
            await anyio.lowlevel.checkpoint()  # what has come by now is read first
            now_ms = self._now_ms()
            self._perform(now_ms, self._core.tick(now_ms))

    # -- what the core wants -----------------------------------------------------------------------

    def _write(self, now_ms: int, data: bytes) -> None:
        del now_ms  # it is not taken yet
        self._unsent = data
        self._moved.set()

    def _heed(self, signal: Signal) -> None:
        if signal is Signal.NEXT_TURN:
            self._has_turn = True
            self._moved.set()
        elif signal is Signal.SET_TIMER:
            self._timer_moved.set()

    def _close(self) -> None:
        self._scope.cancel()

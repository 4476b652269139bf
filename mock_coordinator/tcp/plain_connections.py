"""TCP without TLS under asyncio, in callbacks of the transport, without a task per connection.

A task that waits, wakes, and sets timers around each request costs several times as much as the
request itself. Here arriving bytes pass through the connection's core, the broker and back within
the callback that delivers them.

There is a single timer. When it fires it is set again, for the current deadline of the core.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from mock_coordinator.connection import ConnectionAuthenticator, ConnectionSettings, Signal
from mock_coordinator.driver.core_driver import CoreDriver
from mock_coordinator.driver.timeouts import LoopTimers, TimerHandle
from mock_coordinator.tcp.plain_sockets import PlainSocket
from mock_coordinator.tcp.served import Peer, ServedConnection

__all__ = ["PlainConnection"]


class PlainConnection(ServedConnection, asyncio.BufferedProtocol):
    """One client, served in the callbacks of its transport. ``await connection.run()``.

    The arguments are those of ``ServedConnection``.
    """

    def __init__(
        self,
        driver: CoreDriver,
        plain: PlainSocket,
        peer: Peer,
        node_id: int | None,
        settings: ConnectionSettings,
        authenticator: ConnectionAuthenticator,
        used: Callable[[], None],
    ) -> None:
        super().__init__(driver, peer, node_id, settings, authenticator, used)
        self._plain: Final = plain
        self._transport: Final = plain.transport
        self._buffer: Final = plain.buffer
        self._loop: Final = asyncio.get_running_loop()
        self._timers: Final = LoopTimers(driver.clock, self._loop)
        self._timer: TimerHandle | None = None
        self._ended: Final = self._loop.create_future()
        self._is_full = False
        """Whether the transport has more than the client takes."""

    async def run(self) -> None:
        """Serve requests until the connection is closed. Raises what goes wrong in the broker."""
        self._transport.set_write_buffer_limits(0)  # an answer is taken when all of it is
        self._transport.set_protocol(self)
        try:
            if self._transport.is_closing():
                return
            self._set_timer()
            self._transport.resume_reading()
            if self._plain.early:
                self._received(self._plain.early)
            if self._plain.is_at_end:
                self._perform(self._now_ms(), self._core.ended())
            await self._ended
        finally:
            self._gone()
            self._transport.abort()
            if self._timer is not None:
                self._timer.cancel()

    # -- what the transport calls ------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to read to."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come."""
        self._used()
        now_ms = self._now_ms()
        try:
            self._perform(now_ms, self._core.receive(now_ms, self._buffer[:nbytes]))
        except Exception as err:  # noqa: BLE001  # it is not lost: ``run`` raises it
            self._fail(err)

    def eof_received(self) -> bool:
        """The client has said everything, and may still read: the core says when to close."""
        self._perform(self._now_ms(), self._core.ended())
        return True

    def pause_writing(self) -> None:
        """The client does not take what was written yet."""
        self._is_full = True

    def resume_writing(self) -> None:
        """The client has taken what was written."""
        self._is_full = False
        now_ms = self._now_ms()
        self._perform(now_ms, self._core.taken(now_ms))

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        if exc is not None:
            self._reset()
        self._core.lost()
        if not self._ended.done():
            self._ended.set_result(None)

    # -- what the core wants -----------------------------------------------------------------------

    def _write(self, now_ms: int, data: bytes) -> None:
        self._transport.write(data)
        if not self._is_full and (actions := self._core.taken(now_ms)):
            self._perform(now_ms, actions)

    def _heed(self, signal: Signal) -> None:
        if signal is Signal.NEXT_TURN:
            self._loop.call_soon(self._proceed)
        elif signal is Signal.PAUSE:
            self._transport.pause_reading()
        elif signal is Signal.RESUME:
            self._transport.resume_reading()
        else:
            self._set_timer()

    def _close(self) -> None:
        self._transport.abort()

    def _proceed(self) -> None:
        try:
            now_ms = self._now_ms()
            self._perform(now_ms, self._core.proceed(now_ms))
        except Exception as err:  # noqa: BLE001  # it is not lost: ``run`` raises it
            self._fail(err)

    def _fail(self, err: Exception) -> None:
        if not self._ended.done():
            self._ended.set_exception(err)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline_ms = self._core.deadline_ms
        if deadline_ms is not None:
            in_ms = max(deadline_ms - self._now_ms(), 0)
            self._timer = self._timers.call_later(in_ms, self._look_at_the_time)

    def _look_at_the_time(self) -> None:
        now_ms = self._now_ms()
        self._perform(now_ms, self._core.tick(now_ms))
        self._set_timer()

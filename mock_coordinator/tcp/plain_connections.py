"""Plain TCP under asyncio, without a task for each connection: the transport calls, it acts.

Theory of operation
===================

A task that waits, wakes, and arms timers around each request costs several times what the request
itself does. Here bytes that arrive are cut into frames and served inside of the call that brings
them. The rules are those of every connection: one request at a time, its answer, then the next.

* A connection that has something to do (a request waits at the broker, an answer is not written
  yet) keeps what comes in meanwhile, and reads nothing more until it has caught up: no client can
  fill the memory.
* After an answer the next request that is there already has its turn in the next round of the event
  loop, so that a client which sends many at once does not hold up the others.
* An answer that the client does not take stays in the transport, which says so (``pause_writing``,
  ``resume_writing``).
* A client that has nothing more to say (``eof_received``) still gets what it asked for.

There is one timer. When it fires it is set again, for the time at which the connection will have
been idle for too long if nothing happens until then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import anyio
import anyio.abc
import anyio.lowlevel

from kip848_client.errors import WireError
from kip848_client.wire import APIS, Framer, write_response
from mock_coordinator.core.inputs import ClientInfo
from mock_coordinator.core.outputs import NoReply, Reply, TornReply
from mock_coordinator.driver import CoreDriver
from mock_coordinator.requests import read_received
from mock_coordinator.timeouts import LoopTime, TimerHandle

__all__ = ["PlainConnection", "PlainListener", "PlainSocket"]

_log: Final = logging.getLogger("mock_coordinator")
_CHUNK_BYTES: Final = 65_536
_GRACE_S: Final = 0.1

Peer = tuple[str, int]
"""Address and port of a client."""


class PlainListener:
    """Accepts from a bound TCP listener, which it takes over."""

    def __init__(self, bound: anyio.abc.Listener[Any]) -> None:
        self._bound: Final = bound
        self._socket: Final = bound.extra(anyio.abc.SocketAttribute.raw_socket)
        self._buffer: Final = memoryview(bytearray(_CHUNK_BYTES))

    async def accept(self) -> PlainSocket:
        """The next connection. Raises ``OSError``."""
        loop = asyncio.get_running_loop()
        accepted, _ = await loop.sock_accept(self._socket)
        _, plain = await loop.connect_accepted_socket(lambda: PlainSocket(self._buffer), accepted)
        return plain

    async def aclose(self) -> None:
        """Stop listening."""
        await self._bound.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """Those of the listener."""
        return self._bound.extra_attributes


class PlainSocket(asyncio.Protocol, anyio.abc.AsyncResource):
    """A connection that was accepted and is not read from before it is served. Leaving ``async
    with`` closes it.

    ``buffer`` is where it reads to. All connections of a listener have the same one: what is read
    is taken out of it in the same call.
    """

    def __init__(self, buffer: memoryview) -> None:
        self.buffer: Final = buffer
        self.early: Final = bytearray()
        """What came all the same: not every event loop lets a protocol refuse its first bytes."""
        self.is_at_end = False
        """Whether the client has said everything already."""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The first that is heard of it."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Bytes that come too early are kept; there are no more than one call brings."""
        self.early.extend(data)
        self.transport.pause_reading()

    def eof_received(self) -> bool:
        """Somebody has to answer what came early."""
        self.is_at_end = True
        return True

    @property
    def transport(self) -> asyncio.Transport:
        """What carries it."""
        assert self._transport is not None, "it was accepted"
        return self._transport

    @property
    def peer(self) -> Peer | None:
        """Where the client is; ``None`` when it has hung up already (a port scanner does)."""
        address = self.transport.get_extra_info("peername")
        return (str(address[0]), int(address[1])) if isinstance(address, tuple) else None

    async def aclose(self) -> None:
        """Close it now, whatever is not written."""
        self.transport.abort()
        await anyio.lowlevel.cancel_shielded_checkpoint()


class PlainConnection(asyncio.BufferedProtocol):
    """One client: a ``Sink`` for the driver, and the protocol of a transport.

    ``await connection.run()`` serves it. ``used`` is called for each request.
    """

    def __init__(
        self,
        driver: CoreDriver,
        plain: PlainSocket,
        peer: Peer,
        node_id: int | None,
        used: Callable[[], None],
    ) -> None:
        config = driver.core.broker.config
        self._driver: Final = driver
        self._peer: Final = peer
        self._plain: Final = plain
        self._transport: Final = plain.transport
        self._buffer: Final = plain.buffer
        self._used: Final = used
        self._client = ClientInfo(None, f"/{peer[0]}")
        self._loop: Final = asyncio.get_running_loop()
        self._framer: Final = Framer(config.integer("socket.request.max.bytes"))
        self._idle_s: Final = config.integer("connections.max.idle.ms") / 1000
        self._ended: Final = self._loop.create_future()
        self._is_busy = False
        """Whether a request waits at the broker."""
        self._is_blocked = False
        """Whether an answer is not written yet."""
        self._has_turn = False
        """Whether there will be a look at what is here already in the next round."""
        self._is_paused = False
        """Whether nothing more is read."""
        self._is_at_end = False
        """Whether the client has said everything."""
        self._is_over = False
        """Whether nothing is served any more."""
        self._clock: Final = LoopTime(driver.clock, self._loop)
        self._now: Final = self._clock.time
        self._since = self._now()
        self._suspected = 0.0
        self._timer: TimerHandle | None = None
        self._number: Final = driver.connect(self, node_id)

    async def run(self) -> None:
        """Serve requests until the client leaves, is idle for too long, or has to be closed. Raises
        whatever goes wrong otherwise."""
        self._transport.set_write_buffer_limits(0)  # an answer is written when all of it is
        self._transport.set_protocol(self)
        if self._idle_s >= 0:
            self._timer = self._clock.call_later(self._idle_s, self._look_at_the_time)
        try:
            self._begin()
            await self._ended
        finally:
            self._end()
            if self._timer is not None:
                self._timer.cancel()
            self._driver.disconnect(self._number)

    def _begin(self) -> None:
        if self._transport.is_closing():
            self._ended.set_result(None)
            return
        self._framer.put(self._plain.early)
        self._is_at_end = self._plain.is_at_end
        if not self._is_at_end:
            self._transport.resume_reading()
        self._go_on()

    # -- what the transport calls ------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to read to."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come."""
        if self._is_over:
            return
        self._since = self._now()
        self._framer.put(self._buffer[:nbytes])
        if not (self._is_busy or self._is_blocked or self._has_turn):
            self._go_on()
        elif not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """The client has said everything; whether it will be told something more."""
        self._is_at_end = True
        if self._is_busy or self._is_blocked or self._has_turn:
            return True
        self._log_rest()
        return False

    def pause_writing(self) -> None:
        """The client does not take the answer yet."""
        self._is_blocked = True

    def resume_writing(self) -> None:
        """The client has taken the answer."""
        self._is_blocked = False
        self._since = self._now()
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        if exc is not None:
            _log.debug("connection from %s:%s was reset", *self._peer)
        self._is_over = True
        if not self._ended.done():
            self._ended.set_result(None)

    # -- what the driver calls ---------------------------------------------------------------------

    def replied(self, reply: Reply | NoReply) -> None:
        """The request in hand was served."""
        if isinstance(reply, Reply):
            self._answer(reply)
        elif self._is_busy:
            self._is_busy = False
            self._take_turn()

    def torn(self, torn: TornReply) -> None:
        """The beginning of the reply is to be written, and no more."""
        self._answer(torn.reply, torn.after_bytes)
        if not self._is_over:
            self._is_over = True
            self._log_closed(f"a fault, {torn.after_bytes} bytes into the response")
            self._transport.close()  # once that is written

    def closed(self, why: str) -> None:
        """The broker wants this connection closed."""
        if not self._is_over:
            self._log_closed(why)
            self._end()

    # -- doing -------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Serve the next request, when it is here and the last one is done."""
        self._has_turn = False
        if self._is_over or self._is_busy or self._is_blocked:
            return
        try:
            payload = self._framer.take()
            if payload is not None:
                self._is_busy = True
                self._used()
                received = read_received(self._number, self._client, payload)
                self._client = received.client
                self._driver.submit(received)
                return
        except WireError as err:
            self.closed(str(err))
            return
        except Exception as err:  # noqa: BLE001  # it is not lost: ``run`` raises it
            if not self._ended.done():
                self._ended.set_exception(err)
            return
        if self._is_at_end:
            self._log_rest()
            self._is_over = True
            self._transport.close()
        elif self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def _answer(self, reply: Reply, length: int | None = None) -> None:
        if not self._is_busy or self._is_over:
            return  # nobody asked, or is there
        self._is_busy = False
        try:
            api = APIS[reply.api_key]
            frame = write_response(reply.response, api, reply.version, reply.correlation)
        except WireError as err:
            self.closed(str(err))
            return
        self._transport.write(frame if length is None else frame[:length])
        self._take_turn()

    def _take_turn(self) -> None:
        """The last request is done; when there is more to do it is done in the next round."""
        self._since = self._now()
        if self._framer.buffered_bytes or self._is_paused or self._is_at_end:
            self._has_turn = True
            self._loop.call_soon(self._go_on)

    def _look_at_the_time(self) -> None:
        """Give up on a client that keeps a connection and does not use it. A request that is never
        answered (its member joined again over another connection, or was removed) does not keep its
        connection for ever: it is idle while its request waits, in Kafka, too."""
        left_s = round(self._since + self._idle_s - self._now(), 3)
        if left_s <= 0 and self._suspected != self._since and not self._clock.is_virtual:
            # the broker may have been busy itself, and what the client said is not read yet
            self._suspected, left_s = self._since, _GRACE_S
        if left_s > 0:
            self._timer = self._clock.call_later(left_s, self._look_at_the_time)
            return
        if self._is_busy:
            self.closed(f"its request has waited for {self._idle_s:g} s")
        elif self._is_blocked:
            self.closed(f"did not read its reply for {self._idle_s:g} s")
        else:
            _log.info("connection from %s:%s closed: idle for %g s", *self._peer, self._idle_s)
        self._end()

    def _end(self) -> None:
        """Close now, whatever is not written."""
        self._is_over = True
        self._transport.abort()

    def _log_closed(self, why: str) -> None:
        _log.warning("connection from %s:%s closed: %s", *self._peer, why)

    def _log_rest(self) -> None:
        """Half a frame is worth a line."""
        waiting = self._framer.buffered_bytes
        if waiting:
            _log.info("client %s:%s left %d bytes of a frame behind", *self._peer, waiting)

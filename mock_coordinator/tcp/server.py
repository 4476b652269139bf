"""The broker on TCP, for any Kafka client (anyio: runs under asyncio and trio).

Theory of operation
===================

Each connection has one task that reads, submits and writes, one request at a time: while a fetch is
parked nothing more is read from that connection, which is both Kafka's order of replies and all the
back-pressure that is needed. A connection costs the others nothing: a client that sends half a
frame, or does not read its replies, holds up its own task, until ``connections.max.idle.ms`` closes
it; the same goes for one that is in the middle of its TLS handshake. Until a client is
authenticated its frames may not be longer than ``sasl.server.max.receive.size``. Whatever cannot be
understood closes the connection it came from, with a line in the log, because after a bad frame
there is no way to find the next one.

Under asyncio the task of a plain connection (neither TLS nor SASL) only waits for its end: reading,
submitting and writing are done in the transport's callbacks (``plain_connections``), by the same
rules, in less than half of the time.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.streams.tls import TLSStream

from kip848_client.errors import WireError
from kip848_client.wire import APIS, Framer, write_response
from mock_coordinator.connection_limits import Place, TooManyConnectionsError
from mock_coordinator.core.outputs import NoReply, Reply, TornReply
from mock_coordinator.core.settings.config import BrokerConfig
from mock_coordinator.driver import CoreDriver
from mock_coordinator.security.door import Door, DoorMaker
from mock_coordinator.tcp.listening import listen_on
from mock_coordinator.tcp.plain_connections import PlainConnection, PlainSocket
from mock_coordinator.timeouts import move_on_after, sleep

__all__ = ["WireServer"]

_log: Final = logging.getLogger("mock_coordinator")
_CHUNK_BYTES: Final = 65_536


class WireServer:
    """Listens on one address and serves one broker: ``node_id`` of several, or the only one.

    ``doors`` makes it a listener with TLS or SASL, which is known by its name.

    ``await server.listen()`` binds; ``host`` and ``port`` then say where; ``await server.serve()``
    runs until it is cancelled. Limits come from the broker's configuration: ``max.connections``,
    ``max.connections.per.ip``, ``socket.request.max.bytes``, ``connections.max.idle.ms``,
    ``sasl.server.max.receive.size``, ``connection.failed.authentication.delay.ms``.
    """

    def __init__(
        self,
        driver: CoreDriver,
        host: str = "127.0.0.1",
        port: int = 0,
        node_id: int | None = None,
        doors: DoorMaker | None = None,
    ) -> None:
        self._driver: Final = driver
        self._doors: Final = doors or DoorMaker()
        self._node_id: Final = node_id
        self._run: tuple[anyio.CancelScope, anyio.Event] | None = None
        self.host = host
        self.port = port
        self._listener: anyio.abc.Listener[Any] | None = None
        self._context: ssl.SSLContext | None = None

    @property
    def node_id(self) -> int | None:
        """Which of several brokers is served here, ``None`` where there is only one."""
        return self._node_id

    async def listen(self) -> None:
        """Bind the address; port 0 picks a free one. Raises ``OSError`` when it cannot be bound."""
        # a client that is neither asked who it is nor spoken to through TLS needs no task to do so
        listener = await listen_on(self.host, self.port, is_plain=self._doors.options is None)
        self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        options = self._doors.options
        self._context = None if options is None else options.tls_context()
        self._listener = listener
        self._run = anyio.CancelScope(), anyio.Event()
        if options is None:
            self._driver.core.advertise(*self._advertised(), self._node_id)
        else:
            broker = self._driver.core.broker
            node = broker.node_id if self._node_id is None else self._node_id
            broker.disk.security.addresses[options.name][node] = self._address_of_clients()

    async def serve(self) -> None:
        """Serve connections until cancelled or stopped; then all of them are closed."""
        if self._listener is None:
            await self.listen()
        listener, run = self._listener, self._run
        if listener is None or run is None:
            raise RuntimeError("the server is not listening")
        scope, ended = run
        try:
            with scope:
                async with listener, anyio.create_task_group() as tasks:
                    await listener.serve(self._serve_connection, tasks)
        finally:
            self._listener = self._run = None
            ended.set()

    async def abandon(self) -> None:
        """Stop listening, for a server that was never asked to serve."""
        listener, self._listener, self._run = self._listener, None, None
        if listener is not None:
            await listener.aclose()

    async def stop(self) -> None:
        """Stop listening and close all connections; returns when ``serve`` has ended. ``listen``
        and ``serve`` begin again, at the same port."""
        if self._run is not None:
            scope, ended = self._run
            scope.cancel()
            await ended.wait()

    def _advertised(self) -> tuple[str, int]:
        """``advertised.listeners`` when it is given, else the bound address."""
        given = self._driver.core.broker.config.text("advertised.listeners")
        if given and self._node_id is None:
            address = given.split(",")[0].split("//")[-1]
            host, _, port = address.rpartition(":")
            if host and port.isdigit():
                return host.strip("[]"), int(port)
        return self._address_of_clients()

    def _address_of_clients(self) -> tuple[str, int]:
        return ("localhost" if _is_wildcard(self.host) else self.host), self.port

    async def _serve_connection(self, stream: anyio.abc.ByteStream | PlainSocket) -> None:
        """Nothing that goes wrong with one connection reaches the others."""
        try:
            await self._serve_stream(stream)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            _log.debug("a connection was reset while it was closed")
        except OSError as err:  # bytes that are no TLS, among others
            _log.warning("a connection failed: %s", err)
        except Exception:  # noqa: BLE001  # one connection must not end the broker
            _log.exception("a connection failed")

    async def _serve_stream(self, stream: anyio.abc.ByteStream | PlainSocket) -> None:
        async with stream:
            peer = _peer(stream)
            if peer is None:
                _log.debug("a connection was reset before it was looked at")
                return
            broker = self._driver.core.broker
            # brokers speak to each other through the plain listener
            alone = not broker.disk.security.addresses
            limits = self._driver.limits_of(self._node_id)
            try:
                place = await limits.enter(
                    peer[0], is_protected=self._doors.options is None and not alone
                )
            except TooManyConnectionsError as why:
                _log.warning("connection from %s:%s refused: %s", *peer, why)
                return
            try:
                with place.scope:
                    await self._serve_in(place, stream, peer)
            finally:
                limits.leave(place)
            if place.is_given_up:
                _log.warning("connection from %s:%s closed: another needed its place", *peer)

    async def _serve_in(
        self, place: Place, plain: anyio.abc.ByteStream | PlainSocket, peer: tuple[str, int]
    ) -> None:
        """Serve a connection that has its place."""
        if isinstance(plain, PlainSocket):
            used = partial(self._driver.limits_of(self._node_id).touch, place)
            await PlainConnection(self._driver, plain, peer, self._node_id, used).run()
            return
        stream = await self._secured(plain, peer)
        if stream is None:
            return
        door = self._doors.door(stream, peer[0])
        connection = _Connection(self._driver, stream, peer, self._node_id, door)
        connection.when_used = lambda: self._driver.limits_of(self._node_id).touch(place)
        try:
            await connection.run()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            _log.debug("connection from %s:%s was reset", *peer)
        except ssl.SSLError as err:
            _log.warning("connection from %s:%s broke off: %s", *peer, err)
        finally:
            connection.gone()

    async def _secured(
        self, stream: anyio.abc.ByteStream, peer: tuple[str, int]
    ) -> anyio.abc.ByteStream | None:
        """The stream to talk through, with TLS where the listener has it; ``None`` when the client
        cannot, or takes too long. That is a line in the log, not a stack trace."""
        if self._context is None:
            return stream
        idle_s = _idle_s(self._driver.core.broker.config)
        try:
            with move_on_after(self._driver.clock, idle_s):
                return await TLSStream.wrap(
                    stream,
                    server_side=True,
                    ssl_context=self._context,
                    standard_compatible=False,
                )
        except Exception as err:  # noqa: BLE001  # bad bytes fail in as many ways as TLS has
            _log.warning("the TLS handshake of %s:%s failed: %r", *peer, err)
            return None
        _log.warning("the TLS handshake of %s:%s was not over after %g s", *peer, idle_s)
        return None


class _Connection:
    """One client: a ``Sink`` for the driver, and the task that serves it."""

    def __init__(
        self,
        driver: CoreDriver,
        stream: anyio.abc.ByteStream,
        peer: tuple[str, int],
        node_id: int | None,
        door: Door,
    ) -> None:
        self._driver: Final = driver
        self._stream: Final = stream
        self._peer: Final = peer
        self._door: Final = door
        self._answer: Reply | NoReply | TornReply | None = None
        self._answered = anyio.Event()
        self._why_closed: str | None = None
        self.when_used: Callable[[], None] = lambda: None
        self._scope: Final = anyio.CancelScope()
        self._number: Final = driver.connect(self, node_id)

    # -- what the driver calls ---------------------------------------------------------------------

    def replied(self, reply: Reply | NoReply) -> None:
        """The request in hand was served."""
        self._answer = reply
        self._answered.set()

    def torn(self, torn: TornReply) -> None:
        """The beginning of the reply is to be written, and no more."""
        self._answer = torn
        self._answered.set()

    def closed(self, why: str) -> None:
        """The broker wants this connection closed."""
        self._why_closed = why
        self._scope.cancel()

    def gone(self) -> None:
        """Tell the broker that this connection does not exist any more."""
        self._driver.disconnect(self._number)

    # -- the task ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve requests until the client leaves, is idle for too long, or has to be closed."""
        with self._scope:
            await self._run()
        if self._why_closed is not None:
            _log.warning("connection from %s:%s closed: %s", *self._peer, self._why_closed)

    async def _run(self) -> None:
        config = self._driver.core.broker.config
        framer = Framer()
        idle_s = _idle_s(config)
        while (data := await self._receive(idle_s)) is not None:
            self.when_used()
            framer.put(data)
            while (payload := await self._next(framer, config)) is not None:
                try:
                    await self._serve(payload, idle_s)
                except WireError as err:
                    self.closed(str(err))
                if self._why_closed is not None:
                    return
        if framer.buffered_bytes:
            waiting = framer.buffered_bytes
            _log.info("client %s:%s left %d bytes of a frame behind", *self._peer, waiting)

    async def _next(self, framer: Framer, config: BrokerConfig) -> bytes | None:
        """The next whole frame that has come; ``None`` as well when there can be no more."""
        is_authenticating = self._door.is_authenticating
        limit = "sasl.server.max.receive.size" if is_authenticating else "socket.request.max.bytes"
        framer.max_bytes = config.integer(limit)
        try:
            return framer.take()
        except WireError as err:
            if is_authenticating:
                await self._fail()
            self.closed(str(err))
            await anyio.lowlevel.checkpoint()
            return None

    async def _fail(self) -> None:
        """Let somebody whose authentication has failed wait."""
        config = self._driver.core.broker.config
        delay_ms = config.integer("connection.failed.authentication.delay.ms")
        await sleep(self._driver.clock, delay_ms / 1000)

    async def _receive(self, idle_s: float | None) -> bytes | None:
        """What comes next; ``None`` when nothing more will, or not for too long."""
        with move_on_after(self._driver.clock, idle_s):
            try:
                return await self._stream.receive(_CHUNK_BYTES)
            except anyio.EndOfStream:
                return None
        _log.info("connection from %s:%s closed: idle for %g s", *self._peer, idle_s)
        return None

    def _taken(self) -> tuple[Reply, int | None] | None:
        """The reply to write, and how many bytes of it when it is not to be written whole."""
        answer = self._answer
        if isinstance(answer, TornReply):
            return answer.reply, answer.after_bytes
        return (answer, None) if isinstance(answer, Reply) else None

    async def _serve(self, payload: bytes, idle_s: float | None) -> None:
        """One request and its reply, however long the reply takes. Raises ``WireError``."""
        self._answer = None
        self._answered = anyio.Event()
        entry = self._door.enter(self._driver.now_ms(), self._number, payload)
        if entry.received is None:
            if entry.fails:
                await self._fail()
            if entry.frame is not None:
                await self._write(entry.frame, idle_s)
            if entry.close is not None:
                self.closed(entry.close)
            return
        self._driver.submit(entry.received)
        if self._answer is None:
            await self._wait(idle_s)
        taken = self._taken()
        if taken is None:
            return
        answer, after_bytes = taken
        api = APIS[answer.api_key]
        frame = write_response(answer.response, api, answer.version, answer.correlation)
        await self._write(frame[:after_bytes], idle_s)
        if after_bytes is not None:
            self.closed(f"a fault, {after_bytes} bytes into the response")

    async def _wait(self, idle_s: float | None) -> None:
        """Until the request is answered. One that never will be (its member joined again over
        another connection, or was removed) does not keep its connection for ever: a connection is
        idle while its request waits, in Kafka, too."""
        with move_on_after(self._driver.clock, idle_s) as patience:
            await self._answered.wait()
        if patience.cancelled_caught and self._answer is None:
            self.closed(f"its request has waited for {idle_s:g} s")

    async def _write(self, data: bytes, idle_s: float | None) -> None:
        with move_on_after(self._driver.clock, idle_s) as patience:
            await self._stream.send(data)
        if patience.cancelled_caught:
            self.closed(f"did not read its reply for {idle_s:g} s")


def _idle_s(config: BrokerConfig) -> float | None:
    """For how long a connection may be idle, ``None`` for ever."""
    idle_ms = config.integer("connections.max.idle.ms")
    return None if idle_ms < 0 else idle_ms / 1000


def _peer(stream: anyio.abc.ByteStream | PlainSocket) -> tuple[str, int] | None:
    """Where the client is; ``None`` when it has hung up already (a port scanner does)."""
    if isinstance(stream, PlainSocket):
        return stream.peer
    address = stream.extra(anyio.abc.SocketAttribute.remote_address, None)
    if address is None:
        return None
    return (str(address[0]), int(address[1])) if isinstance(address, tuple) else (address, 0)


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False

"""The broker on TCP, for any Kafka client (anyio: runs under asyncio and trio).

Theory of operation
===================

Each connection has one task that reads, submits and writes, one request at a time: while a fetch is
parked nothing more is read from that connection, which is both Kafka's order of replies and all the
back-pressure that is needed. A connection costs the others nothing: a client that sends half a
frame, or does not read its replies, holds up its own task, until ``connections.max.idle.ms`` closes
it. Whatever cannot be understood closes the connection it came from, with a line in the log,
because after a bad frame there is no way to find the next one.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import Final

import anyio
import anyio.abc
from anyio.streams.tls import TLSListener

from kip848_client.errors import WireError
from kip848_client.wire import APIS, Framer, write_response
from mock_coordinator.core.outputs import NoReply, Reply, TornReply
from mock_coordinator.driver import CoreDriver
from mock_coordinator.security.door import Door, DoorMaker

__all__ = ["WireServer"]

_log: Final = logging.getLogger("mock_coordinator")
_CHUNK_BYTES: Final = 65_536


class WireServer:
    """Listens on one address and serves one broker: ``node_id`` of several, or the only one.

    ``doors`` makes it a listener with TLS or SASL, which is known by its name.

    ``await server.listen()`` binds; ``host`` and ``port`` then say where; ``await server.serve()``
    runs until it is cancelled. Limits come from the broker's configuration: ``max.connections``,
    ``max.connections.per.ip``, ``socket.request.max.bytes``, ``connections.max.idle.ms``.
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
        self._listener: anyio.abc.Listener[anyio.abc.ByteStream] | None = None
        self._per_address: dict[str, int] = {}

    async def listen(self) -> None:
        """Bind the address; port 0 picks a free one. Raises ``OSError`` when it cannot be bound."""
        listener = await anyio.create_tcp_listener(local_host=self.host, local_port=self.port)
        self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        options = self._doors.options
        context = None if options is None else options.tls_context()
        self._listener = listener if context is None else _TlsListener(listener, context, False)
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

    async def _serve_connection(self, stream: anyio.abc.ByteStream) -> None:
        async with stream:
            peer = _peer(stream)
            problem = self._too_many(peer[0])
            if problem:
                _log.warning("connection from %s:%s refused: %s", *peer, problem)
                return
            self._per_address[peer[0]] = self._per_address.get(peer[0], 0) + 1
            door = self._doors.door(stream, peer[0])
            connection = _Connection(self._driver, stream, peer, self._node_id, door)
            try:
                await connection.run()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                _log.debug("connection from %s:%s was reset", *peer)
            finally:
                connection.gone()
                self._per_address[peer[0]] -= 1
                if not self._per_address[peer[0]]:
                    del self._per_address[peer[0]]

    def _too_many(self, address: str) -> str:
        config = self._driver.core.broker.config
        limit = config.integer("max.connections")
        if sum(self._per_address.values()) >= limit:
            return f"there are {limit} already (max.connections)"
        limit = config.integer("max.connections.per.ip")
        if self._per_address.get(address, 0) >= limit:
            return f"there are {limit} from that address already (max.connections.per.ip)"
        return ""


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
        framer = Framer(config.integer("socket.request.max.bytes"))
        idle_s = config.integer("connections.max.idle.ms") / 1000
        while (data := await self._receive(idle_s)) is not None:
            try:
                for payload in framer.feed(data):
                    await self._serve(payload, idle_s)
            except WireError as err:
                self.closed(str(err))
        if framer.buffered_bytes:
            waiting = framer.buffered_bytes
            _log.info("client %s:%s left %d bytes of a frame behind", *self._peer, waiting)

    async def _receive(self, idle_s: float) -> bytes | None:
        """What comes next; ``None`` when nothing more will, or not for too long."""
        with anyio.move_on_after(None if idle_s < 0 else idle_s):
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

    async def _serve(self, payload: bytes, idle_s: float) -> None:
        """One request and its reply, however long the reply takes. Raises ``WireError``."""
        self._answer = None
        self._answered = anyio.Event()
        entry = self._door.enter(self._driver.now_ms(), self._number, payload)
        if entry.received is None:
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

    async def _wait(self, idle_s: float) -> None:
        """Until the request is answered. One that never will be (its member joined again over
        another connection, or was removed) does not keep its connection for ever: a connection is
        idle while its request waits, in Kafka, too."""
        with anyio.move_on_after(None if idle_s < 0 else idle_s) as patience:
            await self._answered.wait()
        if patience.cancelled_caught and self._answer is None:
            self.closed(f"its request has waited for {idle_s:g} s")

    async def _write(self, data: bytes, idle_s: float) -> None:
        with anyio.move_on_after(None if idle_s < 0 else idle_s) as patience:
            await self._stream.send(data)
        if patience.cancelled_caught:
            self.closed(f"did not read its reply for {idle_s:g} s")


class _TlsListener(TLSListener):
    """A failed handshake is a line in the log, not a stack trace."""

    @staticmethod
    async def handle_handshake_error(exc: BaseException, stream: anyio.abc.AnyByteStream) -> None:
        await anyio.aclose_forcefully(stream)
        if not isinstance(exc, Exception) or isinstance(exc, anyio.get_cancelled_exc_class()):
            raise exc
        _log.warning("a TLS handshake failed: %s", exc)


def _peer(stream: anyio.abc.ByteStream) -> tuple[str, int]:
    address = stream.extra(anyio.abc.SocketAttribute.remote_address)
    return (str(address[0]), int(address[1])) if isinstance(address, tuple) else (address, 0)


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False

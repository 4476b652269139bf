"""The broker on TCP, for any Kafka client (anyio: runs under asyncio and trio).

A connection does not affect the others: one that sends a part of a frame, does not read its
responses, or is in its TLS handshake, waits by itself until ``connections.max.idle.ms`` closes it.
Its core (``mock_coordinator.connection``) makes all decisions. Under asyncio, connections without
TLS are served in callbacks of the transport (``plain_connections``), in less than half of the time
that a task takes (``stream_connections``).
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
import anyio.abc

from mock_coordinator.connection import AuthenticatorFactory, ConnectionSettings
from mock_coordinator.driver.connection_limits import (
    ConnectionLimits,
    Place,
    TooManyConnectionsError,
)
from mock_coordinator.driver.core_driver import CoreDriver
from mock_coordinator.tcp.listening import SteadyListener, listen_on
from mock_coordinator.tcp.plain_connections import PlainConnection
from mock_coordinator.tcp.plain_sockets import PlainSocket
from mock_coordinator.tcp.served import Peer
from mock_coordinator.tcp.stream_connections import StreamConnection

__all__ = ["NamedListener", "WireServer", "listen_all"]

_log: Final = logging.getLogger("mock_coordinator")
_Accepted = anyio.abc.ByteStream | PlainSocket


def _no_tls() -> None:
    return None


@dataclass(frozen=True, slots=True)
class NamedListener:
    """What a further listener has that the plain one has not: a name, TLS, SASL.

    ``tls_context`` is called when the address is bound, and gives ``None`` for no TLS.
    """

    name: str
    authenticators: AuthenticatorFactory
    tls_context: Callable[[], ssl.SSLContext | None] = _no_tls


class WireServer:
    """Listens on one address and serves one broker: ``node_id`` of several, or the only one.

    ``listener`` makes it a further listener, which is known by its name.

    ``await server.listen()`` binds; ``host`` and ``port`` then say where; ``await server.serve()``
    runs until it is cancelled. Limits come from the broker's configuration: ``max.connections``,
    ``max.connections.per.ip``, and what ``ConnectionSettings`` has.
    """

    def __init__(
        self,
        driver: CoreDriver,
        host: str = "127.0.0.1",
        port: int = 0,
        node_id: int | None = None,
        listener: NamedListener | None = None,
    ) -> None:
        self._driver: Final = driver
        self._named: Final = listener
        self._authenticators: Final = (
            AuthenticatorFactory() if listener is None else listener.authenticators
        )
        self._node_id: Final = node_id
        self._run: tuple[anyio.CancelScope, anyio.Event] | None = None
        self.host = host
        self.port = port
        self._listener: SteadyListener | None = None
        self._context: ssl.SSLContext | None = None

    @property
    def node_id(self) -> int | None:
        """Which of several brokers is served here, ``None`` where there is only one."""
        return self._node_id

    async def listen(self) -> None:
        """Bind the address; port 0 picks a free one.

        Raises ``OSError`` when it cannot be bound, ``ConfigError`` when TLS cannot be set up.
        """
        named = self._named
        self._context = None if named is None else named.tls_context()
        try:
            listener = await listen_on(self.host, self.port, is_plain=self._context is None)
        except OSError as err:
            err.filename = f"{self.host}:{self.port}"  # which of several it is
            raise
        self.port = listener.port
        self._listener = listener
        self._run = anyio.CancelScope(), anyio.Event()
        if named is None:
            self._driver.core.advertise(*self._advertised(), self._node_id)
        else:
            broker = self._driver.core.broker
            node = broker.node_id if self._node_id is None else self._node_id
            broker.disk.security.addresses[named.name][node] = self._address_of_clients()

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
                async with anyio.create_task_group() as tasks:
                    await listener.serve(partial(self._accepted, tasks))
        finally:
            with anyio.CancelScope(shield=True):
                await listener.aclose()
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

    async def _accepted(self, tasks: anyio.abc.TaskGroup, stream: _Accepted) -> None:
        """Serve a connection in a task of its own, as soon as there is a place for it."""
        try:
            peer = _peer(stream)
            place = None if peer is None else await self._place_for(peer)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _close(stream)
            raise
        if peer is None or place is None:
            tasks.start_soon(_close, stream)
        else:
            tasks.start_soon(self._serve, stream, peer, place)

    async def _place_for(self, peer: Peer) -> Place | None:
        """Wait for a place among the broker's connections; ``None`` for one that is refused."""
        # brokers speak to each other through the plain listener, where there is another one
        is_protected = self._named is None and bool(
            self._driver.core.broker.disk.security.addresses
        )
        try:
            return await self._limits.enter(peer[0], is_protected=is_protected)
        except TooManyConnectionsError as why:
            _log.warning("connection from %s:%s refused: %s", *peer, why)
            return None

    @property
    def _limits(self) -> ConnectionLimits:
        return self._driver.limits_of(self._node_id)

    async def _serve(self, stream: _Accepted, peer: Peer, place: Place) -> None:
        """Nothing that goes wrong with one connection reaches the others."""
        try:
            with place.scope:
                await self._connection(place, stream, peer).run()
        except OSError as err:
            _log.warning("connection from %s:%s failed: %s", *peer, err)
        except Exception:  # noqa: BLE001  # one connection must not end the broker
            _log.exception("connection from %s:%s failed", *peer)
        finally:
            self._limits.leave(place)
            with anyio.CancelScope(shield=True):
                await _close(stream)
        if place.is_given_up:
            _log.warning("connection from %s:%s closed: max.connections is reached", *peer)

    def _connection(
        self, place: Place, stream: _Accepted, peer: Peer
    ) -> PlainConnection | StreamConnection:
        """What serves a connection that has its place."""
        driver, node_id, make = self._driver, self._node_id, self._authenticators
        used = partial(self._limits.touch, place)
        settings = ConnectionSettings.of(driver.core.broker.config)
        if isinstance(stream, PlainSocket):
            authenticator = make.for_client(peer[0])
            return PlainConnection(driver, stream, peer, node_id, settings, authenticator, used)
        return StreamConnection(driver, stream, peer, node_id, settings, make, self._context, used)


async def listen_all(servers: Sequence[WireServer]) -> None:
    """Bind the addresses of all servers, or of none. Raises what ``WireServer.listen`` does."""
    try:
        for server in servers:
            await server.listen()
    except BaseException:
        with anyio.CancelScope(shield=True):
            for server in servers:
                await server.abandon()
        raise


async def _close(stream: _Accepted) -> None:
    try:
        await stream.aclose()
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        _log.debug("a connection was reset while it was closed")


def _peer(stream: _Accepted) -> Peer | None:
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

"""Accepts connections under asyncio without a task: they are transports, not streams."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import anyio
import anyio.abc
import anyio.lowlevel

from mock_coordinator.tcp.served import Peer

__all__ = ["PlainListener", "PlainSocket"]

_CHUNK_BYTES: Final = 65_536


class PlainListener:
    """Accepts from a bound TCP listener, which it takes over."""

    def __init__(self, bound: anyio.abc.Listener[Any]) -> None:
        self._bound: Final = bound
        self._socket: Final = bound.extra(anyio.abc.SocketAttribute.raw_socket)
        self._buffer: Final = memoryview(bytearray(_CHUNK_BYTES))

    async def accept(self) -> PlainSocket:
        """The next connection. Raises ``OSError``."""
        loop = asyncio.get_running_loop()
        accepted = await self._taken()
        # As Kafka's brokers do. asyncio forgets it where the listener was made without a protocol
        # number, and each second of two quick answers waits 40 ms for the client's delayed ACK.
        with contextlib.suppress(OSError):  # the client may be gone already
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _, plain = await loop.connect_accepted_socket(lambda: PlainSocket(self._buffer), accepted)
        return plain

    async def aclose(self) -> None:
        """Stop listening."""
        await self._bound.aclose()

    async def _taken(self) -> socket.socket:
        """The next connection. Nothing is awaited once it is accepted: the loop's own
        ``sock_accept`` leaks it if it is cancelled in that turn of the loop."""
        while True:
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                await anyio.wait_readable(self._socket)
            else:
                accepted.setblocking(False)
                return accepted

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
        """What came before: not every event loop lets a protocol refuse its first bytes."""
        self.is_at_end = False
        """Whether the client has said everything already."""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is there."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Bytes that come too early are kept; there are no more than one call brings."""
        self.early.extend(data)
        self.transport.pause_reading()

    def eof_received(self) -> bool:
        """The client has said everything. What came early is still to be answered."""
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

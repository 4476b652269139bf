"""A network between clients and brokers that can be cut: one port for each broker, in this process.

::

    async with TcpProxy.open((1, 2, 3)) as proxy:
        proxy.targets = {1: 9092, 2: 9093, 3: 9094}   # clients are sent to proxy.ports
        with proxy.cut(Cut.ANSWERS_LOST, nodes={2}, clients={"a"}):
            ...

Who a connection belongs to is the client id of its first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import socket
import struct
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Cut", "TcpProxy"]

_HOST: Final = "127.0.0.1"
_CHUNK_BYTES: Final = 65_536
_HEAD_BYTES: Final = 14
"""Of a request: its size, API, version, number, and the size of the client id."""
_RESET: Final = struct.pack("ii", 1, 0)
"""With this linger a socket that is closed tells so with RST, as one that is cut does."""


class Cut(enum.Enum):
    """What a network does to connections while it is cut. Those that lost bytes are reset when it
    is healed."""

    DROPPED = "connections dropped"
    """They are reset, and no new ones are let in."""
    SILENT = "bytes swallowed"
    REQUESTS_LOST = "requests swallowed"
    ANSWERS_LOST = "answers swallowed"
    LATE = "bytes late"
    """They arrive when the network is healed."""


class _Way(enum.Enum):
    THERE = "to the broker"
    BACK = "to the client"


_CLOSED: Final[Mapping[Cut, tuple[_Way, ...]]] = {
    Cut.DROPPED: (),
    Cut.SILENT: (_Way.THERE, _Way.BACK),
    Cut.REQUESTS_LOST: (_Way.THERE,),
    Cut.ANSWERS_LOST: (_Way.BACK,),
    Cut.LATE: (_Way.THERE, _Way.BACK),
}
"""The ways on which bytes do not arrive."""


class _Link:
    """A connection of a client to a broker."""

    def __init__(self, node_id: int, client: asyncio.StreamWriter) -> None:
        self.node_id = node_id
        self.client_id = ""
        self._writers = [client]

    def joins(self, broker: asyncio.StreamWriter) -> None:
        self._writers.append(broker)

    def reset(self) -> None:
        for writer in self._writers:
            transport = writer.transport
            if not transport.is_closing():
                sock: socket.socket = transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            transport.abort()


@dataclass(eq=False)
class _Place:
    """A cut, and where it is."""

    cut: Cut
    nodes: frozenset[int]
    clients: frozenset[str] | None
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    torn: set[_Link] = field(default_factory=set)

    def holds(self, link: _Link) -> bool:
        return link.node_id in self.nodes and (
            self.clients is None or link.client_id in self.clients
        )


class TcpProxy:
    """``ports`` of it by broker, and the ``targets`` that they lead to."""

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self.targets: dict[int, int] = {}
        self.met: Counter[str] = Counter()
        """Connections, by client."""
        self._places: list[_Place] = []
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def open(cls, node_ids: tuple[int, ...]) -> AsyncGenerator[TcpProxy]:
        """Listen for the length of a block, at a port for each of these brokers."""
        proxy = cls()
        servers: list[asyncio.Server] = []
        try:
            for node_id in node_ids:
                server = await asyncio.start_server(proxy._accepting(node_id), _HOST, 0)
                servers.append(server)
                proxy.ports[node_id] = server.sockets[0].getsockname()[1]
            yield proxy
        finally:
            for server in servers:
                server.close()
            for link in tuple(proxy._links):
                link.reset()
            for task in proxy._tasks:
                task.cancel()
            await asyncio.gather(*proxy._tasks, return_exceptions=True)

    @property
    def bootstrap(self) -> str:
        """``host:port,..`` of all."""
        return ",".join(f"{_HOST}:{port}" for port in self.ports.values())

    @contextmanager
    def cut(
        self, cut: Cut, nodes: frozenset[int], clients: frozenset[str] | None = None
    ) -> Generator[None]:
        """Cut these clients, or all, from these brokers for the length of a block."""
        place = _Place(cut, nodes, clients)
        self._places.append(place)
        if cut is Cut.DROPPED:
            for link in tuple(filter(place.holds, self._links)):
                link.reset()
        try:
            yield
        finally:
            self._places.remove(place)
            place.healed.set()
            for link in place.torn:
                link.reset()

    def _accepting(
        self, node_id: int
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(node_id, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accept

    async def _serve(
        self, node_id: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        link = _Link(node_id, writer)
        self._links.add(link)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                head = await self._met(link, reader)
                if any(each.cut is Cut.DROPPED and each.holds(link) for each in self._places):
                    return
                coming, going = await asyncio.open_connection(_HOST, self.targets[node_id])
                link.joins(going)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._carry(link, _Way.THERE, reader, going, head))
                    tasks.create_task(self._carry(link, _Way.BACK, coming, writer))
        finally:
            link.reset()
            self._links.discard(link)

    async def _met(self, link: _Link, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readexactly(_HEAD_BYTES)
        (size,) = struct.unpack_from(">h", head, _HEAD_BYTES - 2)
        name = await reader.readexactly(max(size, 0))
        link.client_id = name.decode(errors="replace")
        self.met[link.client_id] += 1
        return head + name

    async def _carry(
        self,
        link: _Link,
        way: _Way,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        data: bytes = b"",
    ) -> None:
        """All bytes of one way, and their end, which a cut keeps back as well."""
        with contextlib.suppress(OSError):
            while data := data or await reader.read(_CHUNK_BYTES):
                if await self._passes(link, way):
                    writer.write(data)
                    await writer.drain()
                data = b""
        while place := self._place(link, way):
            await place.healed.wait()
        writer.close()

    async def _passes(self, link: _Link, way: _Way) -> bool:
        """Whether bytes are to arrive; returns when they are."""
        while place := self._place(link, way):
            if place.cut is not Cut.LATE:
                place.torn.add(link)
                return False
            await place.healed.wait()
        return True

    def _place(self, link: _Link, way: _Way) -> _Place | None:
        for place in self._places:
            if way in _CLOSED[place.cut] and place.holds(link):
                return place
        return None

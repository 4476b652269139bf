"""The bundled broker behind a door where a test may answer in its place.

``Interceptor`` serves TCP; ``answers[api name]`` is a function from the request to a response, to
``None`` for "as usual", to ``DROP`` for silence, or to ``CLOSE`` for a broken connection. It is how
refusals for which the broker has no setting (authorization) are tested, and brokers that are older.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from kip848_client.core.wire import APIS, Framer, read_request, write_response
from kip848_client.errors import TransportError
from mock_coordinator import InProcessConnection, MockBroker
from tests.integration.cluster import Cluster
from tests.support.kafka_broker import free_ports
from tests.support.real_kafka import FAST_CONFIGS

__all__ = ["CLOSE", "DROP", "Interceptor", "intercepted"]

DROP: Final = object()
CLOSE: Final = object()

Answer = Callable[[Any], Any]
"""From a request to its answer, see the module."""


class Interceptor:
    """See the module. ``asked`` counts the requests by API name."""

    def __init__(self, broker: MockBroker) -> None:
        self.broker = broker
        self.answers: dict[str, Answer] = {}
        self.asked: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)

    async def close(self) -> None:
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = self.broker.connect()
        try:
            await self._serve(reader, writer, connection)
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self._tasks.discard(task)
            connection.close()
            writer.close()

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connection: InProcessConnection,
    ) -> None:
        framer = Framer()
        while chunk := await reader.read(65_536):
            for frame in framer.feed(chunk):
                header, request = read_request(frame)
                api = APIS[header.api_key]
                self.asked[api.name] += 1
                answer: Answer = self.answers.get(api.name, _as_usual)
                mine = answer(request)
                if mine is DROP:
                    continue
                if mine is CLOSE:
                    return
                if mine is None:
                    with contextlib.suppress(TransportError):
                        mine = await connection.request(request, header.api_version)
                if mine is None:
                    return
                writer.write(write_response(mine, api, header.api_version, header.correlation_id))
                await writer.drain()


def _as_usual(_request: Any) -> None:
    return None


@asynccontextmanager
async def intercepted(profile: str = "4.4") -> AsyncGenerator[tuple[Interceptor, Cluster]]:
    """A bundled broker and the door before it."""
    (port,) = free_ports(1)
    async with MockBroker(
        profile=profile, config=FAST_CONFIGS, listen=False, host="127.0.0.1", port=port
    ) as broker:
        door = Interceptor(broker)
        await door.listen(port)
        cluster = Cluster("mock", profile, "127.0.0.1", port)
        try:
            yield door, cluster
        finally:
            await cluster.close()
            await door.close()

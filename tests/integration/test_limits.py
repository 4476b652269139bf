"""Too many, too slow, too much: the server stays up, others are served, memory stays bounded.

The stated bounds: an idle connection costs less than 30 KB of this process (the client's half of it
included), and a client that does not read holds one reply of its own, however many it asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import socket
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Final

import pytest

from kip848_client.core.wire import Framer, read_response, write_request
from kip848_client.core.wire import api_named as api
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest
from mock_coordinator import MockBroker

pytestmark = pytest.mark.asyncio

IDLE: Final = 5_000
IDLE_BYTES: Final = 30_000
_SPARE_FILES: Final = 200
_MEGABYTE: Final = 1_000_000
METADATA: Final = write_request(MetadataRequest(topics=None), 12, 5, "test")


def resident_bytes() -> int:
    gc.collect()
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("this system does not tell how much memory a process has")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


@pytest.fixture
def many_files() -> Generator[None]:
    """As many open files as both ends of the connections take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * IDLE + _SPARE_FILES
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"{wanted} open files are needed, and the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.asynccontextmanager
async def plain_sockets(broker: MockBroker, count: int) -> AsyncGenerator[list[socket.socket]]:
    """Connected sockets that nothing reads from, and that cost this process next to nothing."""
    loop = asyncio.get_running_loop()
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            client = socket.socket()
            opened.append(client)
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await loop.sock_connect(client, (broker.host, broker.port))
        yield opened
    finally:
        for client in opened:
            client.close()


class Ordinary:
    """A client that behaves, on a socket of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._framer = Framer()
        self.answered = 0

    @classmethod
    async def connect(cls, broker: MockBroker) -> Ordinary:
        return cls(*await asyncio.open_connection(broker.host, broker.port))

    async def ask(self) -> None:
        """A metadata request and its answer."""
        self._writer.write(METADATA)
        frames: list[bytes] = []
        while not frames:
            data = await self._reader.read(65_536)
            assert data, "the broker hung up on an ordinary client"
            frames = self._framer.feed(data)
        _, response = read_response(frames[0], api("Metadata"), 12)
        assert [topic.name for topic in response.topics] == ["t"]
        self.answered += 1

    async def go_on(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(0.01)  # others are what is tested here

    async def answered_again(self, broker: MockBroker) -> None:
        """Two more answers: the first may be to a request from before."""
        enough = self.answered + 2
        await broker.wait_for(lambda: self.answered >= enough, timeout_s=30)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@contextlib.asynccontextmanager
async def served_meanwhile(broker: MockBroker) -> AsyncGenerator[Ordinary]:
    """An ordinary client asks all the time, and is answered when all is over as well."""
    ordinary = await Ordinary.connect(broker)
    await ordinary.ask()
    task = asyncio.create_task(ordinary.go_on())
    try:
        yield ordinary
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    # its last request may be unanswered: the one that shows it is served comes over another
    another = await Ordinary.connect(broker)
    await another.ask()
    await another.close()
    await ordinary.close()


@pytest.mark.usefixtures("many_files")
@pytest.mark.timeout(240)  # it computes for seconds, and others may, too
async def test_thousands_of_idle_connections() -> None:
    async with MockBroker({"t": 1}) as broker, served_meanwhile(broker) as ordinary:
        before = resident_bytes()
        async with plain_sockets(broker, IDLE):
            await broker.wait_for(lambda: broker.driver.connections >= IDLE, timeout_s=30)
            assert resident_bytes() - before < IDLE * IDLE_BYTES
            await ordinary.answered_again(broker)
        await broker.wait_for(lambda: broker.driver.connections < 10, timeout_s=30)


def whole_topic() -> Message:
    partition = FetchRequestFetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=4 * _MEGABYTE
    )
    topic = FetchRequestFetchTopic(topic="t", partitions=(partition,))
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=4 * _MEGABYTE, topics=(topic,))


async def test_clients_that_ask_and_never_read() -> None:
    loop = asyncio.get_running_loop()
    asked = write_request(whole_topic(), 11, 1, "slow") * 40
    async with MockBroker({"t": 1}) as broker, served_meanwhile(broker) as ordinary:
        for _ in range(4):
            broker.produce("t", bytes(900_000))
        before = resident_bytes()
        async with plain_sockets(broker, 20) as clients:
            for client in clients:
                await loop.sock_sendall(client, asked)
            await broker.wait_for(lambda: len(broker.requests("Fetch")) >= 20)
            await asyncio.sleep(0.5)  # would they be answered more than once, they would be by now
            assert len(broker.requests("Fetch")) == 20
            # 800 replies of 3.6 MB were asked for; a reply is in memory as records and as bytes
            assert resident_bytes() - before < 20 * 3 * 4 * _MEGABYTE
            await ordinary.answered_again(broker)
        await broker.wait_for(lambda: broker.driver.connections < 10)


async def test_frames_that_come_byte_by_byte_or_in_half() -> None:
    loop = asyncio.get_running_loop()
    async with MockBroker({"t": 1}) as broker, served_meanwhile(broker) as ordinary:
        async with plain_sockets(broker, 200) as clients:
            for client in clients[100:]:
                await loop.sock_sendall(client, METADATA[: len(METADATA) // 2])
            for at in range(len(METADATA)):
                for client in clients[:100]:
                    await loop.sock_sendall(client, METADATA[at : at + 1])
            await ordinary.answered_again(broker)
            for client in clients[:100]:
                assert await loop.sock_recv(client, 4), "no answer"
        await broker.wait_for(lambda: broker.driver.connections < 10)

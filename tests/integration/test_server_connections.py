"""The TCP server and hostile, broken and impatient connections; under asyncio and under trio."""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import pytest

from kip848_client.core.wire import Framer, api_named, read_response, write_request
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest
from mock_coordinator import MockBroker, NewRecord

pytestmark = pytest.mark.anyio

PATIENCE_S = 10


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def running(**config: str) -> AsyncGenerator[MockBroker]:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    with anyio.fail_after(PATIENCE_S):
        async with MockBroker({"t": 1}, config=settings) as broker:
            yield broker


async def open_stream(broker: MockBroker) -> anyio.abc.SocketStream:
    return await anyio.connect_tcp(broker.host, broker.port)


async def frame_from(stream: anyio.abc.SocketStream) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        data += await stream.receive()
    return data[4:]


METADATA = write_request(MetadataRequest(topics=None), 12, 5, "test")


async def answers(stream: anyio.abc.SocketStream) -> bool:
    """Whether the broker serves this connection."""
    await stream.send(METADATA)
    correlation, response = read_response(await frame_from(stream), api_named("Metadata"), 12)
    return correlation == 5 and [topic.name for topic in response.topics] == ["t"]


async def is_closed(stream: anyio.abc.SocketStream) -> bool:
    """Whether the broker closes this connection without a byte."""
    try:
        await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True
    return False


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("negative size", struct.pack(">i", -1)),
        ("an unknown API", struct.pack(">ihhih", 10, 999, 0, 1, -1)),
        ("an API of brokers", struct.pack(">ihhih", 15, 4, 0, 1, -1) + b"\0\3abc"),
        ("plain text", b"GET / HTTP/1.1\r\n\r\n" + b"x" * 64),
    ],
)
async def test_garbage_closes_its_own_connection_and_no_other(
    name: str, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    del name
    caplog.set_level(logging.WARNING, "mock_coordinator")
    async with running() as broker, await open_stream(broker) as other:
        async with await open_stream(broker) as bad:
            await bad.send(sent)
            assert await is_closed(bad)
        assert await answers(other)
        (line,) = caplog.messages
        assert line.startswith("connection from 127.0.0.1:")
        assert " closed: " in line


async def test_half_a_frame_holds_up_nobody() -> None:
    async with running() as broker, await open_stream(broker) as slow:
        await slow.send(METADATA[:20])
        async with await open_stream(broker) as other:
            assert await answers(other)
        await slow.send(METADATA[20:])
        assert await frame_from(slow)


async def test_an_idle_connection_is_closed() -> None:
    async with running(connections_max_idle_ms="100") as broker, await open_stream(broker) as idle:
        await idle.send(METADATA[:20])
        assert await is_closed(idle)
        async with await open_stream(broker) as other:
            assert await answers(other)


async def test_a_broker_that_was_busy_itself_does_not_call_its_clients_idle() -> None:
    async with running(connections_max_idle_ms="200") as broker:
        with socket.create_connection((broker.host, broker.port)) as client:
            client.sendall(METADATA[:20])
            await anyio.sleep(0.05)
            client.sendall(METADATA[20:])
            time.sleep(0.4)  # noqa: ASYNC251  # the broker lives in this loop, and is busy
            client.setblocking(False)
            await anyio.wait_readable(client)
            assert client.recv(4)


async def test_the_limit_of_connections() -> None:
    async with running(max_connections="2") as broker:
        async with await open_stream(broker) as one, await open_stream(broker) as two:
            assert await answers(one)
            assert await answers(two)
            three = await open_stream(broker)
            with anyio.move_on_after(0.2):
                assert not await answers(three), "it waits, and so does its client"
        async with three:  # there is room now
            assert struct.unpack_from(">i", await three.receive(), 4)[0] == 5


def open_files() -> int:
    files = Path("/proc/self/fd")
    if not files.exists():
        pytest.skip("this system does not tell how many files a process has open")
    return len(list(files.iterdir()))


async def test_of_those_that_are_too_many_one_is_accepted_and_the_others_wait_outside() -> None:
    async with running(max_connections="1") as broker, await open_stream(broker) as one:
        assert await answers(one)
        before = open_files()
        waiting = [await open_stream(broker) for _ in range(20)]
        await anyio.sleep(0.1)  # for what must not happen there is no sign to wait for
        assert open_files() - before <= 20 + 1, "clients, and the one that is next"
        await one.aclose()
        for each in waiting:
            assert await answers(each), "in the order in which they came"
            await each.aclose()


async def test_the_limit_of_connections_per_address() -> None:
    async with (
        running(max_connections_per_ip="1") as broker,
        await open_stream(broker) as one,
        await open_stream(broker) as two,
    ):
        assert await answers(one)
        assert await is_closed(two)


def fetch(*, offset: int = 0, wait_ms: int = 60_000, correlation: int = 9) -> bytes:
    partition = FetchRequestFetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 30
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        topics=(FetchRequestFetchTopic(topic="t", partitions=(partition,)),),
    )
    return write_request(request, 12, correlation, "test")


async def test_who_has_said_everything_still_gets_what_it_asked_for() -> None:
    async with running() as broker, await open_stream(broker) as stream:
        await stream.send(fetch(wait_ms=200) + METADATA + METADATA)
        await stream.send_eof()
        data = b""
        with contextlib.suppress(anyio.EndOfStream):
            while True:
                data += await stream.receive()
        payloads = Framer().feed(data)
        correlations = [struct.unpack_from(">i", payload)[0] for payload in payloads]
        assert correlations == [9, 5, 5]
        await broker.wait_for(lambda: broker.driver.connections == 1)  # the broker's own


async def test_what_comes_while_a_request_waits_is_served_after_it_in_order() -> None:
    async with running() as broker, await open_stream(broker) as stream:
        await stream.send(fetch())
        await broker.wait_for(lambda: broker.core.parked_requests == 1)
        for correlation in range(100, 140):
            await stream.send(write_request(MetadataRequest(topics=None), 12, correlation, "test"))
        await anyio.sleep(0.05)  # for what must not happen there is no sign to wait for
        assert len(broker.requests()) == 1
        broker.produce("t", b"x")
        framer = Framer()
        found: list[int] = []
        while len(found) < 41:
            payloads = framer.feed(await stream.receive())
            found += [struct.unpack_from(">i", payload)[0] for payload in payloads]
        assert found == [9, *range(100, 140)]


async def test_a_client_that_asks_a_lot_at_once_holds_up_nobody() -> None:
    async with (
        running() as broker,
        await open_stream(broker) as greedy,
        await open_stream(broker) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(greedy.send, METADATA * 2000)
        for _ in range(20):
            assert await answers(other)
        assert len(broker.requests()) < 2000
        tasks.cancel_scope.cancel()


async def test_a_waiting_fetch_is_answered_in_time() -> None:
    async with running() as broker, await open_stream(broker) as stream:
        await stream.send(fetch(wait_ms=50))
        _, response = read_response(await frame_from(stream), api_named("Fetch"), 12)
        assert response.responses[0].partitions[0].records == b""


async def test_a_client_that_leaves_takes_its_fetch_with_it() -> None:
    async with running() as broker:
        async with await open_stream(broker) as stream:
            await stream.send(fetch(wait_ms=300))
            await broker.wait_for(lambda: broker.core.parked_requests == 1)
        await broker.wait_for(lambda: broker.core.parked_requests == 0)
        await broker.wait_for(lambda: broker.driver.connections == 1)


async def test_a_slow_reader_is_closed_and_holds_up_nobody() -> None:
    async with running(connections_max_idle_ms="2000", message_max_bytes="100000000") as broker:
        broker.produce("t", NewRecord(b"x" * 40_000_000))
        async with await open_stream(broker) as slow:
            await slow.send(fetch())
            await broker.wait_for(lambda: len(broker.requests("Fetch")) == 1)
            async with await open_stream(broker) as other:  # which must not look idle itself
                assert await answers(other)
            await broker.wait_for(lambda: broker.driver.connections <= 1)


async def test_a_version_that_we_do_not_have_is_answered_with_ours() -> None:
    async with running() as broker, await open_stream(broker) as stream:
        body = struct.pack(">hhih", 18, 77, 3, -1) + b"\0whatever"
        await stream.send(struct.pack(">i", len(body)) + body)
        correlation, response = read_response(await frame_from(stream), api_named("ApiVersions"), 0)
        assert (correlation, response.error_code) == (3, 35)
        assert [(a.api_key, a.max_version) for a in response.api_keys] == [(18, 5)]
        await stream.send(write_request(ApiVersionsRequest(), 0, 4, "test"))
        _, response = read_response(await frame_from(stream), api_named("ApiVersions"), 0)
        assert response.error_code == 0


async def test_closing_the_broker_closes_its_connections() -> None:
    async with running() as broker:
        stream = await open_stream(broker)
        assert await answers(stream)
        await stream.send(fetch())
        await broker.wait_for(lambda: broker.core.parked_requests == 1)
    async with stream:
        assert await is_closed(stream)


async def test_a_restart_closes_connections_and_keeps_topics_and_records() -> None:
    async with running() as broker:
        broker.produce("t", b"kept")
        async with await open_stream(broker) as stream:
            assert await answers(stream)
            broker.restart()
            assert await is_closed(stream)
        async with await open_stream(broker) as stream:
            assert await answers(stream)
        assert [record.value for record in broker.records("t")] == [b"kept"]


async def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    async with running() as broker:
        with pytest.raises(OSError, match="in use"):
            async with MockBroker(port=broker.port):
                pass


async def test_what_is_advertised() -> None:
    async with running(advertised_listeners="PLAINTEXT://kafka.example:9092") as broker:
        assert broker.bootstrap == "kafka.example:9092"
        assert broker.address[0] == "127.0.0.1"
    async with MockBroker(host="0.0.0.0") as broker:
        assert broker.host == "localhost"
        assert broker.port == broker.address[1]


async def test_an_exception_inside_the_block_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with running():
            raise KeyError("mine")

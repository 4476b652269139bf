"""What the network of tests does to bytes while it is cut, and afterwards."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from tests.support.tcp_proxy import Cut, TcpProxy

HERE: Final = frozenset({1})
HELLO: Final = struct.pack(">ihhih", 12, 0, 0, 0, 2) + b"me"
"""A request as far as the proxy reads it."""


class Echo:
    """A broker that answers with what it gets; ``got`` is all of it."""

    def __init__(self) -> None:
        self.got = b""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1000):
                self.got += data
                writer.write(data)
        except OSError:
            pass
        writer.close()


@asynccontextmanager
async def connected() -> AsyncGenerator[
    tuple[TcpProxy, Echo, asyncio.StreamReader, asyncio.StreamWriter]
]:
    broker = Echo()
    server = await asyncio.start_server(broker, "127.0.0.1", 0)
    async with server, TcpProxy.open((1,)) as proxy:
        proxy.targets = {1: server.sockets[0].getsockname()[1]}
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.ports[1])
        writer.write(HELLO)
        assert await reader.readexactly(len(HELLO)) == HELLO
        yield proxy, broker, reader, writer
        writer.close()


async def is_reset(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read(1) == b""
    except ConnectionResetError:
        return True


async def until_got(broker: Echo, what: bytes) -> None:
    while not broker.got.endswith(what):  # noqa: ASYNC110 - the broker only reads
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_dropped_connections_are_reset_and_no_new_one_is_let_in() -> None:
    async with connected() as (proxy, broker, reader, _writer):
        with proxy.cut(Cut.DROPPED, HERE):
            assert await is_reset(reader)
            again, to_proxy = await asyncio.open_connection("127.0.0.1", proxy.ports[1])
            to_proxy.write(HELLO)
            assert await is_reset(again)
        assert broker.got == HELLO


@pytest.mark.asyncio
@pytest.mark.parametrize("cut", [Cut.SILENT, Cut.REQUESTS_LOST])
async def test_requests_that_are_swallowed_never_arrive(cut: Cut) -> None:
    async with connected() as (proxy, broker, reader, writer):
        with proxy.cut(cut, HERE):
            writer.write(b"lost")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
        assert await is_reset(reader)
        assert broker.got == HELLO


@pytest.mark.asyncio
async def test_an_answer_is_swallowed_of_a_request_that_arrived() -> None:
    async with connected() as (proxy, broker, reader, writer):
        with proxy.cut(Cut.ANSWERS_LOST, HERE):
            writer.write(b"heard")
            await until_got(broker, b"heard")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
        assert await is_reset(reader)


@pytest.mark.asyncio
async def test_what_is_late_arrives_in_the_end() -> None:
    async with connected() as (proxy, broker, reader, writer):
        with proxy.cut(Cut.LATE, HERE):
            writer.write(b"late")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
            assert broker.got == HELLO
        assert await reader.readexactly(4) == b"late"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("nodes", "clients"),
    [(frozenset({2}), None), (HERE, frozenset({"other"}))],
    ids=["broker", "client"],
)
async def test_what_is_cut_elsewhere_harms_nobody(
    nodes: frozenset[int], clients: frozenset[str] | None
) -> None:
    async with connected() as (proxy, _broker, reader, writer):
        with proxy.cut(Cut.DROPPED, nodes, clients), proxy.cut(Cut.SILENT, nodes, clients):
            writer.write(b"fine")
            assert await reader.readexactly(4) == b"fine"
        assert proxy.met == {"me": 1}

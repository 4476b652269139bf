"""Plain connections on a transport that does what no test can make a socket do."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import warnings

import anyio
import anyio.abc
import pytest

from kip848_client.core.wire import Framer, write_request
from kip848_client.core.wire.messages.metadata import MetadataRequest
from mock_coordinator import MockBroker
from mock_coordinator.connection import AuthenticatorFactory, ConnectionSettings
from mock_coordinator.tcp.plain_connections import PlainConnection
from mock_coordinator.tcp.plain_sockets import PlainListener, PlainSocket

pytestmark = pytest.mark.asyncio

METADATA = write_request(MetadataRequest(topics=None), 12, 5, "test")


class Transport(asyncio.Transport):
    """Keeps what is written; takes it at once, or says that it cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.protocol: asyncio.BaseProtocol | None = None
        self.is_slow = False
        self.reads = True
        self.is_closed = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del low
        assert high == 0

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        if self.is_slow and self.protocol is not None:
            self.protocol.pause_writing()

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self.is_closed and self.protocol is not None:
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)
        self.is_closed = True

    @property
    def answers(self) -> int:
        return len(Framer().feed(self.written))


def served(broker: MockBroker, plain: PlainSocket) -> asyncio.Task[None]:
    peer, make = ("::1", 1), AuthenticatorFactory()
    connection = PlainConnection(
        broker.driver, plain, peer, None, ConnectionSettings(), make.for_client("::1"), lambda: None
    )
    return asyncio.create_task(connection.run())


def accepted(transport: Transport) -> PlainSocket:
    plain = PlainSocket(memoryview(bytearray(65_536)))
    transport.protocol = plain
    plain.connection_made(transport)
    return plain


def receive(transport: Transport, data: bytes) -> None:
    protocol = transport.protocol
    assert isinstance(protocol, PlainConnection)
    buffer = protocol.get_buffer(-1)
    buffer[: len(data)] = data
    protocol.buffer_updated(len(data))


async def rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_came_before_it_was_served_is_answered() -> None:
    transport = Transport()
    plain = accepted(transport)
    assert not transport.reads
    plain.data_received(METADATA + METADATA)
    assert plain.eof_received()
    task = served(MockBroker({"t": 1}, listen=False), plain)
    await rounds(10)
    assert transport.answers == 2
    assert transport.is_closed
    await task


async def test_one_that_is_gone_before_it_was_served_is_no_error() -> None:
    transport = Transport()
    plain = accepted(transport)
    transport.abort()
    broker = MockBroker({"t": 1}, listen=False)
    before = broker.driver.connections
    await served(broker, plain)
    assert broker.driver.connections == before


async def test_the_next_request_waits_until_the_answer_is_taken() -> None:
    transport = Transport()
    task = served(MockBroker({"t": 1}, listen=False), accepted(transport))
    await rounds(2)
    transport.is_slow = True
    receive(transport, METADATA)
    receive(transport, METADATA)
    assert not transport.reads, "the second one is kept, and nothing more is read"
    await rounds(5)
    assert transport.answers == 1
    assert transport.protocol is not None
    transport.protocol.resume_writing()
    await rounds(5)
    assert transport.answers == 2
    transport.protocol.resume_writing()
    await rounds(5)
    assert transport.reads
    transport.abort()
    await task


async def test_nothing_is_served_after_a_frame_that_cannot_be_one() -> None:
    transport = Transport()
    task = served(MockBroker({"t": 1}, listen=False), accepted(transport))
    await rounds(2)
    receive(transport, struct.pack(">i", -1) + METADATA)
    assert transport.is_closed
    await task
    assert transport.answers == 0


async def test_answers_are_not_held_back_for_an_acknowledgement() -> None:
    bound = await anyio.create_tcp_listener(local_host="127.0.0.1")
    listener = PlainListener(bound.listeners[0])
    port = bound.extra(anyio.abc.SocketAttribute.local_port)
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    async with await listener.accept() as accepted:
        raw = accepted.transport.get_extra_info("socket")
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    writer.close()
    await listener.aclose()


@pytest.mark.parametrize("turns", range(6))
async def test_a_listener_that_ends_while_somebody_connects_leaves_no_socket(turns: int) -> None:
    """A connection that is taken in the turn of the loop in which the accepting ends belonged to
    nobody."""
    (bound,) = (await anyio.create_tcp_listener(local_host="127.0.0.1")).listeners
    port = bound.extra(anyio.abc.SocketAttribute.local_port)
    async with contextlib.aclosing(PlainListener(bound)) as listener:
        accepting = asyncio.create_task(listener.accept())
        await asyncio.sleep(0)
        with socket.create_connection(("127.0.0.1", port)):
            for _ in range(turns):
                await asyncio.sleep(0)
            accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                async with await accepting:
                    pass
        del accepting
        with warnings.catch_warnings(record=True) as left:
            warnings.simplefilter("always", ResourceWarning)
            gc.collect()
        assert not left

"""What must not end the server: clients that are gone before they are accepted, bytes that are no
TLS in the middle of TLS, a process that may open no more files."""

from __future__ import annotations

import errno
import socket
import ssl
import struct
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import trustme

from kip848_client.core.wire import api_named, read_response, write_request
from kip848_client.core.wire.messages.metadata import MetadataRequest
from mock_coordinator import MockBroker
from mock_coordinator.security.options import ListenerOptions, SecurityOptions
from mock_coordinator.tcp import listening, server

pytestmark = pytest.mark.anyio

METADATA = write_request(MetadataRequest(topics=None), 12, 5, "test")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def answers(port: int) -> bool:
    """Whether the broker serves a new connection."""
    with anyio.fail_after(5):
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(METADATA)
            data = await stream.receive()
            while len(data) < 4 + struct.unpack_from(">i", data)[0]:
                data += await stream.receive()
    correlation, _ = read_response(data[4:], api_named("Metadata"), 12)
    return correlation == 5


def hang_up(client: socket.socket) -> None:
    """With a reset, as a port scanner does."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


async def test_clients_that_are_gone_before_they_are_accepted() -> None:
    async with MockBroker({"t": 1}) as broker:
        for _ in range(20):  # nothing is accepted in between: this does not await
            hang_up(socket.create_connection((broker.host, broker.port)))
        assert await answers(broker.port)


def speak_tls_and_then(last: bytes, address: tuple[str, int], context: ssl.SSLContext) -> None:
    raw = socket.create_connection(address, timeout=5)
    received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, to_send, server_hostname="127.0.0.1")
    shaken = False
    while not shaken:
        try:
            tls.do_handshake()
            shaken = True
        except ssl.SSLWantReadError:
            raw.sendall(to_send.read())
            received.write(raw.recv(65_536))
    raw.sendall(to_send.read() + last)
    if last:
        raw.close()
    else:
        hang_up(raw)


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(b"\x17\x03\x03\x00\x20" + bytes(32), id="a wrong checksum"),
        pytest.param(b"GET / HTTP/1.0\r\n\r\n", id="no TLS"),
        pytest.param(b"", id="a reset"),
    ],
)
async def test_connections_that_break_off_inside_of_tls(last: bytes) -> None:
    authority = trustme.CA()
    of_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(of_server)
    of_client = ssl.create_default_context()
    authority.configure_trust(of_client)
    listener = ListenerOptions(name="TLS", protocol="SSL", ssl_context=of_server)
    async with MockBroker({"t": 1}, security=SecurityOptions(listeners=(listener,))) as broker:
        host, port = broker.bootstrap_of("TLS").split(":")
        for _ in range(3):
            await anyio.to_thread.run_sync(speak_tls_and_then, last, (host, int(port)), of_client)
        assert await answers(broker.port)


class FullProcess:
    """A listener that cannot accept for a while; asyncio and trio say so in different ways."""

    def __init__(self, listener: Any, refusal: Exception) -> None:
        self._listener = listener
        self._refusal = refusal
        self.refused = 0
        self.extra_attributes = listener.extra_attributes

    async def accept(self) -> Any:
        await anyio.lowlevel.checkpoint()
        if self.refused < 2:
            self.refused += 1
            raise self._refusal from OSError(errno.EMFILE, "Too many open files")
        return await self._listener.accept()

    async def aclose(self) -> None:
        await self._listener.aclose()


@pytest.mark.parametrize(
    "refusal", [OSError(errno.EMFILE, "Too many open files"), anyio.BrokenResourceError()]
)
async def test_a_process_that_may_open_no_more_files(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refusal: Exception
) -> None:
    full: list[FullProcess] = []
    listen_on = listening.listen_on

    async def listen_full(host: str, port: int, *, is_plain: bool = False) -> Any:
        found: Any = await listen_on(host, port, is_plain=is_plain)
        full.extend(FullProcess(each, refusal) for each in found._listeners)
        return listening.SteadyListener(full)

    monkeypatch.setattr(server, "listen_on", listen_full)
    async with MockBroker({"t": 1}) as broker:
        assert await answers(broker.port)
    assert [each.refused for each in full] == [2]
    assert "Too many open files" in caplog.text

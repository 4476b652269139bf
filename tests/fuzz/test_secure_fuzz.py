"""Listeners with SASL and TLS, and whatever a client says before, within and after its login.

Each attack is a conversation put together from right steps, wrong ones and noise, sent in one go
and then hung up. Meanwhile a client that is logged in is served, and in the end nothing is left.
"""

from __future__ import annotations

import random
import ssl
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import pytest
import trustme
from anyio.streams.tls import TLSStream

from kip848_client.core.wire import APIS, Framer, api_named, read_response, write_request
from mock_coordinator import MockBroker
from mock_coordinator.core.security.acls import acls_from_data
from mock_coordinator.security import ListenerOptions, SecurityOptions
from tests.fuzz.random_messages import RandomMessages, mutated
from tests.support.plain_message import message
from tests.support.security.scram_client import ScramClient

pytestmark = pytest.mark.asyncio

ATTACKS: Final = 150
PATIENCE_S: Final = 50
USER, PASSWORD = "alice", "open sesame"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "", "plain")
SASL_BYTES: Final = 524_288


# --- Conversations --------------------------------------------------------------------------------


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(rng: random.Random, name: str, version: int, **fields: Any) -> bytes:
    return write_request(message(name, **fields), version, rng.randrange(1 << 31), "fuzz")


def handshake(rng: random.Random) -> bytes:
    return request(rng, "SaslHandshake", rng.randrange(2), mechanism=rng.choice(MECHANISMS))


def login_token() -> bytes:
    return f"\0{USER}\0{PASSWORD}".encode()


def any_token(rng: random.Random) -> bytes:
    first = ScramClient(USER, PASSWORD).first()
    tokens = [
        login_token(),
        b"\0alice\0wrong",
        b"\0" * rng.randrange(5),
        first,
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL,p=" + rng.randbytes(8),
        rng.randbytes(rng.randrange(60)),
    ]
    token = rng.choice(tokens)
    return mutated(token, rng) if rng.random() < 0.3 else token


def token_request(rng: random.Random) -> bytes:
    return request(rng, "SaslAuthenticate", rng.randrange(3), auth_bytes=any_token(rng))


def bare_token(rng: random.Random) -> bytes:
    return framed(any_token(rng))


def login(rng: random.Random) -> bytes:
    shake = request(rng, "SaslHandshake", 1, mechanism="PLAIN")
    return shake + request(rng, "SaslAuthenticate", 2, auth_bytes=login_token())


def versions(rng: random.Random) -> bytes:
    return request(rng, "ApiVersions", rng.randrange(5))


def any_request(rng: random.Random) -> bytes:
    """A request as it comes; of those that would wait, none that waits for long."""
    api = APIS[rng.choice(sorted(APIS.keys() - {1, 11}))]
    version = rng.randint(*api.versions)
    return write_request(RandomMessages(rng).message(api.request, version), version, 1, "fuzz")


def damaged(rng: random.Random) -> bytes:
    step = rng.choice((handshake, token_request, login, versions, any_request))
    return mutated(step(rng), rng)


def noise(rng: random.Random) -> bytes:
    raw = rng.randbytes(rng.randrange(1, 100))
    return raw if rng.random() < 0.3 else framed(raw)


def too_long(rng: random.Random) -> bytes:
    size = rng.choice((SASL_BYTES + 1, 2**31 - 1, -1, -(2**31), 0))
    return struct.pack(">i", size) + rng.randbytes(rng.randrange(100))


def long_token(rng: random.Random) -> bytes:
    return request(rng, "SaslAuthenticate", 2, auth_bytes=bytes(SASL_BYTES - rng.randrange(99)))


STEPS: Final[tuple[Callable[[random.Random], bytes], ...]] = (
    *(handshake, handshake, token_request, token_request, bare_token, login, login),
    *(versions, any_request, any_request, damaged, damaged, noise, too_long, long_token),
)


def conversation(rng: random.Random) -> bytes:
    data = b"".join(rng.choice(STEPS)(rng) for _ in range(rng.randrange(1, 7)))
    return mutated(data, rng) if rng.random() < 0.2 else data


# --- The broker -----------------------------------------------------------------------------------


class Certificates:
    """An authority and a server's certificate, in files."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        server = authority.issue_cert("localhost", "127.0.0.1")
        self.server, self.key = str(folder / "server.pem"), str(folder / "server.key")
        self.ca = str(folder / "ca.pem")
        server.private_key_pem.write_to_path(self.key)
        for each in server.cert_chain_pems:
            each.write_to_path(self.server, append=True)
        authority.cert_pem.write_to_path(self.ca)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


LISTENERS: Final = ("SASL", "SHORT", "TLS", "MUTUAL", "SASLTLS")


def broker_of(certificates: Certificates, **config: str) -> MockBroker:
    tls: Any = {"certificate": certificates.server, "key": certificates.key}
    settings = {name.replace("_", "."): value for name, value in config.items()}
    rights = [{"principal": "User:alice", "operation": "DESCRIBE", "resource_type": "TOPIC"}]
    return MockBroker(
        {"t": 2},
        # failures are told at once, or this takes minutes
        config={"connection.failed.authentication.delay.ms": "0", **settings},
        security=SecurityOptions(
            users={USER: PASSWORD, "bob": "b"},
            acls=acls_from_data([{**row, "name": "t"} for row in rights]),
            listeners=(
                ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT"),
                ListenerOptions(name="SHORT", protocol="SASL_PLAINTEXT", max_reauth_ms=50),
                ListenerOptions(name="TLS", protocol="SSL", **tls),
                ListenerOptions(
                    name="MUTUAL",
                    protocol="SSL",
                    client_auth="required",
                    client_ca=certificates.ca,
                    **tls,
                ),
                ListenerOptions(name="SASLTLS", protocol="SASL_SSL", **tls),
            ),
        ),
    )


async def connected(broker: MockBroker, listener: str) -> anyio.abc.SocketStream:
    host, _, port = broker.bootstrap_of(listener).rpartition(":")
    return await anyio.connect_tcp(host, int(port))


async def finish(stream: anyio.abc.ByteStream) -> None:
    """Hang up, and read whatever the broker still says, to its end."""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await stream.send_eof()
        while await stream.receive():
            pass


async def attack(broker: MockBroker, listener: str, data: bytes) -> None:
    async with await connected(broker, listener) as stream:
        with suppress(anyio.BrokenResourceError):
            await stream.send(data)
        await finish(stream)


class Member:
    """A client that is logged in, and asks."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._framer = Framer()

    async def ask(self, name: str, version: int, **fields: Any) -> Any:
        await self._stream.send(write_request(message(name, **fields), version, 7, "member"))
        frames: list[bytes] = []
        while not frames:
            frames = self._framer.feed(await self._stream.receive())
        correlation, response = read_response(frames[0], api_named(name), version)
        assert correlation == 7
        return response

    async def login(self) -> None:
        assert (await self.ask("SaslHandshake", 1, mechanism="PLAIN")).error_code == 0
        token = login_token()
        assert (await self.ask("SaslAuthenticate", 2, auth_bytes=token)).error_code == 0

    async def is_served(self) -> None:
        response = await self.ask("Metadata", 12, topics=None)
        assert [topic.name for topic in response.topics] == ["t"]


@asynccontextmanager
async def besieged(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> AsyncGenerator[tuple[MockBroker, Member]]:
    """A broker and a client of it; in the end it must be well, and alone."""
    with anyio.fail_after(PATIENCE_S):
        async with broker_of(certificates) as broker:
            async with await connected(broker, "SASL") as stream:
                member = Member(stream)
                await member.login()
                yield broker, member
                await member.is_served()
                await broker.wait_for(lambda: broker.driver.connections <= 2)  # and its own
            async with await connected(broker, "SASL") as stream:
                another = Member(stream)
                await another.login()
                await another.is_served()
    failures = [r for r in caplog.records if r.exc_info]
    assert not failures, f"{failures[0].getMessage()}\n{failures[0].exc_text}"


# --- The tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("listener", LISTENERS)
async def test_no_conversation_harms_anybody_else(
    listener: str, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(f"secure-fuzz-{listener}")
    async with besieged(certificates, caplog) as (broker, member):
        for number in range(ATTACKS):
            await attack(broker, listener, conversation(rng))
            if number % 10 == 0:
                await member.is_served()


async def test_many_at_once(certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random("secure-fuzz-many")
    async with (
        besieged(certificates, caplog) as (broker, member),
        anyio.create_task_group() as tasks,
    ):
        for _ in range(ATTACKS):
            tasks.start_soon(attack, broker, rng.choice(LISTENERS), conversation(rng))
        for _ in range(5):
            await member.is_served()


class _Watched(anyio.abc.ByteStream):
    """A stream whose bytes can be spoilt on the wire, below TLS."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self.spoil: Callable[[bytes], bytes] = lambda data: data

    async def send(self, item: bytes) -> None:
        await self.stream.send(self.spoil(item))

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        return await self.stream.receive(max_bytes)

    async def send_eof(self) -> None:
        await self.stream.send_eof()

    async def aclose(self) -> None:
        await self.stream.aclose()


@pytest.mark.parametrize("listener", ["TLS", "SASLTLS"])
@pytest.mark.parametrize("when", ["in the handshake", "after it", "never"])
async def test_broken_tls(
    listener: str, when: str, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(f"tls-fuzz-{listener}-{when}")
    context = ssl.create_default_context(cafile=certificates.ca)
    async with besieged(certificates, caplog) as (broker, member):
        for _ in range(ATTACKS // 5):
            async with await connected(broker, listener) as plain:
                wire = _Watched(plain)
                if when == "in the handshake":
                    wire.spoil = lambda data: mutated(data, rng)
                with (
                    suppress(
                        ssl.SSLError, anyio.EndOfStream, anyio.BrokenResourceError, TimeoutError
                    ),
                    anyio.fail_after(0.3),
                ):
                    stream = await TLSStream.wrap(
                        wire, hostname="localhost", ssl_context=context, standard_compatible=False
                    )
                    if when == "after it":
                        wire.spoil = lambda data: mutated(data, rng)
                    await stream.send(conversation(rng))
                await finish(plain)
        await member.is_served()


async def test_a_handshake_that_never_ends_is_given_up(certificates: Certificates) -> None:
    broker = broker_of(certificates, connections_max_idle_ms="300")
    with anyio.fail_after(PATIENCE_S):
        async with (
            broker,
            await connected(broker, "TLS") as silent,
            await connected(broker, "TLS") as half,
        ):
            await half.send(bytes.fromhex("16030100c8010000c40303") + bytes(20))
            for each in (silent, half):
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await each.receive()

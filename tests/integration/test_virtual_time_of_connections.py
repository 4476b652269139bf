"""Connections of a broker on virtual time: they are idle, and wait, by the broker's clock."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest

from kip848_client.core.wire import Framer, api_named, read_response, write_request
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.core.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.security import ListenerOptions, SecurityOptions

pytestmark = pytest.mark.anyio

PATIENCE_S = 10
IDLE_MS = 70_000
LATE_MS = 90_000
LISTENERS = ("", "SASL")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def running(**config: int) -> AsyncGenerator[MockBroker]:
    with anyio.fail_after(PATIENCE_S):
        async with MockBroker(
            {"t": 1},
            clock=VirtualClock(),
            config={name.replace("_", "."): str(value) for name, value in config.items()},
            security=SecurityOptions(
                users={"alice": "secret"},
                listeners=(ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT"),),
            ),
        ) as broker:
            yield broker


class Client:
    """One that speaks of its own accord, and hears when it is closed."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self._framer = Framer()

    @classmethod
    async def of(cls, broker: MockBroker, listener: str) -> Client:
        where = broker.bootstrap_of(listener) if listener else broker.bootstrap
        host, _, port = where.rpartition(":")
        client = cls(await anyio.connect_tcp(host, int(port)))
        if listener:
            await client.login(b"\0alice\0secret")
        return client

    async def login(self, token: bytes) -> int:
        await self.ask(SaslHandshakeRequest(mechanism="PLAIN"), "SaslHandshake", 1)
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = await self.ask(request, "SaslAuthenticate", 2)
        code: int = answer.error_code
        return code

    async def ask(self, request: Message, api: str, version: int) -> Any:
        await self.stream.send(write_request(request, version, 1, "test"))
        while (frame := self._framer.take()) is None:
            self._framer.put(await self.stream.receive())
        return read_response(frame, api_named(api), version)[1]

    async def is_served(self) -> bool:
        answer = await self.ask(MetadataRequest(topics=None), "Metadata", 12)
        return [topic.name for topic in answer.topics] == ["t"]

    async def is_closed(self) -> bool:
        try:
            await self.stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return True
        return False


@pytest.mark.parametrize("listener", LISTENERS)
async def test_an_idle_connection_ends_when_the_clock_says_so(listener: str) -> None:
    async with running(connections_max_idle_ms=IDLE_MS) as broker:
        client = await Client.of(broker, listener)
        async with client.stream:
            for _ in range(3):
                assert await client.is_served()
                await anyio.wait_all_tasks_blocked()
                broker.advance(IDLE_MS - 1)
            assert await client.is_served(), "it was used in time"
            await anyio.wait_all_tasks_blocked()
            broker.advance(IDLE_MS)
            assert await client.is_closed()


async def test_real_time_means_nothing() -> None:
    async with running(connections_max_idle_ms=20) as broker:
        client = await Client.of(broker, "")
        async with client.stream:
            assert await client.is_served()
            await anyio.sleep(0.3)  # for what must not happen there is no sign to wait for
            assert await client.is_served()


async def test_a_failed_login_is_answered_when_the_clock_says_so() -> None:
    async with running(connection_failed_authentication_delay_ms=LATE_MS) as broker:
        client = await Client.of(broker, "SASL")
        await client.stream.aclose()
        answers: list[int] = []

        async def fail() -> None:
            host, _, port = broker.bootstrap_of("SASL").rpartition(":")
            async with await anyio.connect_tcp(host, int(port)) as stream:
                answers.append(await Client(stream).login(b"\0alice\0wrong"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            await anyio.sleep(0.1)  # nothing is heard of it while it waits
            broker.advance(LATE_MS - 1)
            await anyio.sleep(0.1)
            assert answers == []
            broker.advance(1)
        assert answers == [58]

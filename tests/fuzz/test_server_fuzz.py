"""The server and whatever bytes: it answers or closes, nothing leaks, and others are served."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import anyio
import pytest

from kip848_client.core.wire import APIS, write_request
from kip848_client.core.wire.messages.metadata import MetadataRequest
from mock_coordinator import MockBroker

CONNECTIONS = 300
PATIENCE_S = 50
IDLE_MS = "500"
"""Some of these requests stay without an answer, as in Kafka: only time ends their connections."""

pytestmark = pytest.mark.asyncio


def noise(rng: random.Random) -> bytes:
    """Bytes as they come."""
    return rng.randbytes(rng.randrange(1, 200))


def framed_noise(rng: random.Random) -> bytes:
    """A frame of the right size with anything in it."""
    body = rng.randbytes(rng.randrange(0, 120))
    return struct.pack(">i", len(body)) + body


def headed_noise(rng: random.Random) -> bytes:
    """A frame that begins as a request of an API that we know, in any version."""
    api = APIS[rng.choice(sorted(APIS))]
    low, high = api.versions
    version = rng.randint(low - 1, high + 1)
    body = struct.pack(">hhih", api.key, version, rng.randrange(1 << 31), -1)
    body += rng.randbytes(rng.randrange(0, 80))
    return struct.pack(">i", len(body)) + body


def damaged_request(rng: random.Random) -> bytes:
    """A request of ours with a few bytes changed, cut or doubled."""
    api = APIS[rng.choice(sorted(APIS))]
    low, high = api.versions
    frame = bytearray(write_request(api.request(), rng.randint(low, high), 1, "fuzz"))
    for _ in range(rng.randrange(1, 6)):
        frame[rng.randrange(4, len(frame))] = rng.randrange(256)
    if rng.random() < 0.3:
        frame = frame[: rng.randrange(1, len(frame))]
    return bytes(frame)


KINDS = (noise, framed_noise, headed_noise, damaged_request)


def attacks(seed: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(CONNECTIONS):
        kind = rng.choice(KINDS)
        yield b"".join(kind(rng) for _ in range(rng.randrange(1, 4)))


async def attack(broker: MockBroker, data: bytes) -> None:
    """Send, hang up, and read whatever the broker still says, to its end."""
    async with await anyio.connect_tcp(broker.host, broker.port) as stream:
        try:
            await stream.send(data)
            await stream.send_eof()
            while await stream.receive():
                pass
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return


@pytest.mark.parametrize("seed", range(4))
async def test_no_bytes_bring_the_broker_down(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    with anyio.fail_after(PATIENCE_S):
        async with MockBroker({"t": 2}, config={"connections.max.idle.ms": IDLE_MS}) as broker:
            connection = broker.connect()
            for data in attacks(seed):
                await attack(broker, data)
            response = await connection.request(MetadataRequest(topics=None))
            assert "t" in [topic.name for topic in response.topics]
            connection.close()
            await broker.wait_for(lambda: broker.driver.connections <= 1)
    failures = [r for r in caplog.records if r.exc_info]
    assert not failures, failures[0].getMessage()
    given_up = [line for line in caplog.messages if "its request has waited" in line]
    unanswered = [line for line in caplog.messages if "gets no response, as in Kafka" in line]
    assert len(given_up) == len(unanswered), "all others end when their client hangs up"


@pytest.mark.parametrize("seed", range(10, 12))
async def test_many_at_once(seed: int) -> None:
    with anyio.fail_after(PATIENCE_S):
        async with MockBroker({"t": 2}) as broker:
            async with anyio.create_task_group() as tasks:
                for data in attacks(seed):
                    tasks.start_soon(attack, broker, data)
            response = await broker.connect().request(MetadataRequest(topics=None))
            assert response.brokers

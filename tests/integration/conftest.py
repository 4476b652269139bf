"""The fixture ``cluster``: one test, every broker.

A test that takes it runs against the bundled broker in this process and against the Kafka releases
of ``--kafka-versions``, or the oldest and the newest. Those carry the mark ``real_kafka`` and skip
where Kafka cannot run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio

from mock_coordinator import MockBroker
from tests.integration.cluster import Cluster
from tests.support.pytest_kafka import oldest_and_newest, skip_without_kafka
from tests.support.real_kafka import FAST_CONFIGS, RealKafka

__all__ = ["cluster", "pytest_generate_tests", "running_mock"]

MOCK_PROFILES = ("4.0", "4.4")
_OLDER = pytest.mark.everything("the newest profile is for every run")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cluster" not in metafunc.fixturenames:
        return
    real = [
        pytest.param(f"kafka-{version}", marks=pytest.mark.real_kafka)
        for version in oldest_and_newest(metafunc.config)
    ]
    *older, newest = (f"mock-{profile}" for profile in MOCK_PROFILES)
    mock = [*(pytest.param(each, marks=_OLDER) for each in older), newest]
    metafunc.parametrize("cluster", [*mock, *real], indirect=True)


@asynccontextmanager
async def running_mock(profile: str) -> AsyncGenerator[MockBroker]:
    """The bundled broker, held by one task: a fixture is entered and left in two."""
    broker = MockBroker(profile=profile, config=FAST_CONFIGS)
    ready, done = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        async with broker:
            ready.set()
            await done.wait()

    task = asyncio.get_running_loop().create_task(run())
    waiting = asyncio.get_running_loop().create_task(ready.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield broker
    finally:
        waiting.cancel()
        done.set()
        await task


@pytest_asyncio.fixture
async def cluster(
    request: pytest.FixtureRequest, real_kafka_pool: Callable[[str], RealKafka]
) -> AsyncIterator[Cluster]:
    """A broker to test against; see the module."""
    kind, _, version = str(request.param).partition("-")
    async with AsyncExitStack() as stack:
        if kind == "mock":
            mock = await stack.enter_async_context(running_mock(version))
            found = Cluster(kind, version, mock.host, mock.port)
        else:
            with skip_without_kafka():
                kafka = real_kafka_pool(version)
            found = Cluster(version, kafka.profile, kafka.host, kafka.port)
        stack.push_async_callback(found.close)
        yield found

"""librdkafka 2.8, older than its KIP-848: a classic group on our broker and on real Kafka."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kip848_client import Producer
from mock_coordinator.threaded import BrokerThread
from tests.support.old_librdkafka import old_librdkafka
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka
from tests.support.real_kafka import RealKafka

pytestmark = pytest.mark.foreign

ROOT = Path(__file__).parents[2]
Step = Callable[[], str]


@contextmanager
def living(bootstrap: str) -> Generator[Step]:
    """What the process of the two members prints, line by line; each call lets it go on."""
    path = os.pathsep.join([str(old_librdkafka()), os.environ.get("PYTHONPATH", ""), str(ROOT)])
    command = [sys.executable, "-m", "tests.support.old_librdkafka_life", bootstrap]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout
        version = stdout.readline().strip()
        assert version.startswith("2.8."), version
        is_first = True

        def step() -> str:
            nonlocal is_first
            if not is_first:
                stdin.write("\n")
                stdin.flush()
            is_first = False
            return stdout.readline().strip()

        try:
            yield step
        finally:
            process.kill()


@pytest.mark.parametrize("profile", ["4.0", "4.4"])
def test_a_classic_group_on_our_broker(profile: str) -> None:
    config = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerThread({"orders": 4}, profile=profile, config=config) as broker:
        for partition in range(4):
            broker.produce("orders", *(b"%d" % i for i in range(10)), partition=partition)
        with living(broker.bootstrap) as step:
            assert step() == "consumed and committed"
            assert step() == "two members"
            group = broker.snapshot("g")
            assert group is not None
            assert group.classic is not None
            assert len(group.classic.members) == 2
            assert step() == "the second took over"
            for partition in range(4):
                broker.produce("orders", b"late-%d" % partition, partition=partition)
            assert step() == "both left"
            left = broker.snapshot("g")
            assert left is not None
            assert left.state == "Empty"
            assert not broker.requests("ConsumerGroupHeartbeat")


@pytest.mark.real_kafka
def test_a_classic_group_on_kafka(request: pytest.FixtureRequest) -> None:
    """The same on what it was written for; one release, so that it costs little."""
    with (
        skip_without_kafka(),
        RealKafka.start(chosen_versions(request.config)[-1]) as kafka,
    ):
        kafka.create_topic("orders", 4)
        asyncio.run(produce(kafka.bootstrap, [str(i).encode() for i in range(10)]))
        with living(kafka.bootstrap) as step:
            assert [step() for _ in range(3)] == [
                "consumed and committed",
                "two members",
                "the second took over",
            ]
            for partition in range(4):
                asyncio.run(produce(kafka.bootstrap, [b"late-%d" % partition], [partition]))
            assert step() == "both left"


async def produce(
    bootstrap: str, values: Sequence[bytes], partitions: Sequence[int] = range(4)
) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for partition in partitions:
            for value in values:
                await producer.send_and_wait("orders", value, partition=partition)

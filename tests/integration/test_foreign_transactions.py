"""Exactly once with other people's clients: what they read, process and write in transactions
survives a crash, nothing lost and nothing twice."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import anyio.to_thread
import pytest

from mock_coordinator import MockBroker, NewRecord
from tests.integration.exactly_once import IN, OUT
from tests.support.kafka_tools import CONSOLE_CONSUMER, MESSAGE_COPIER, TRANSACTIONS, run_tool
from tests.support.pytest_kafka import skip_without_kafka

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

pytestmark = [pytest.mark.foreign, pytest.mark.asyncio, pytest.mark.timeout(120)]

FAST: Final = {
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}
PARTITIONS: Final = 3
RECORDS: Final = 240
CRASHES: Final = (70, 90)

VALUES: Final = [b"%d" % number for number in range(RECORDS)]


async def copier(*arguments: str) -> tuple[int, str]:
    """Run the copying program; its exit code and what it said about errors."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.integration.exactly_once", *arguments),
        cwd=Path(__file__).parents[2],
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    return process.returncode or 0, errors.decode()


async def fill(broker: MockBroker) -> None:
    for number, value in enumerate(VALUES):
        broker.produce(IN, NewRecord(value), partition=number % PARTITIONS)


async def committed_values(broker: MockBroker) -> list[bytes]:
    """What a read_committed consumer gets from the topic ``out``."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    def read() -> list[bytes]:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        places = [TopicPartition(OUT, index, OFFSET_BEGINNING) for index in range(PARTITIONS)]
        consumer.assign(places)
        values: list[bytes] = []
        ended = 0
        while ended < PARTITIONS:
            for message in consumer.consume(100, 10):
                if message.error() is None:
                    values.append(message.value() or b"")
                else:
                    ended += 1
        consumer.close()
        return values

    return await anyio.to_thread.run_sync(read)


@pytest.mark.parametrize(
    ("library", "group_protocol", "profile"),
    [
        ("confluent", "consumer", "4.0"),
        ("confluent", "consumer", "4.4"),
        ("confluent", "classic", "4.4"),
        ("aiokafka", "classic", "4.4"),
    ],
)
async def test_nothing_is_lost_or_copied_twice(
    library: str, group_protocol: str, profile: str
) -> None:
    topics = {IN: PARTITIONS, OUT: PARTITIONS}
    async with MockBroker(topics, profile=profile, config=FAST) as broker:
        await fill(broker)
        for crash_after in CRASHES:
            code, errors = await copier(library, broker.bootstrap, group_protocol, str(crash_after))
            assert code == -signal.SIGKILL, errors
        code, errors = await copier(library, broker.bootstrap, group_protocol, "0")
        assert code == 0, errors
        values = await committed_values(broker)
        counts = Counter(values)
        assert [value for value in VALUES if not counts[value]] == [], "lost"
        assert [value for value in values if counts[value] > 1] == [], "copied twice"
        written = sum(len(broker.records(OUT, index)) for index in range(PARTITIONS))
        assert written > RECORDS, "no transaction was aborted, and so nothing was put to the test"


@pytest.mark.real_kafka
async def test_javas_tools_see_and_end_transactions() -> None:
    async def tool(main_class: str, *arguments: str) -> str:
        def call() -> str:
            with skip_without_kafka():
                return run_tool(main_class, *arguments)

        return await anyio.to_thread.run_sync(call)

    async with MockBroker({IN: 1, OUT: 1}, config=FAST) as broker:
        for value in VALUES:
            broker.produce(IN, NewRecord(value), partition=0)
        await tool(
            MESSAGE_COPIER,
            *("--broker-list", broker.bootstrap, "--input-topic", IN, "--input-partition", "0"),
            *("--output-topic", OUT, "--transaction-size", "50", "--transactional-id", "java"),
            *("--consumer-group", "g", "--max-messages", str(RECORDS)),
        )
        at = ("--bootstrap-server", broker.bootstrap)
        listed = await tool(TRANSACTIONS, *at, "list")
        assert "java" in listed
        assert "CompleteCommit" in listed
        described = await tool(TRANSACTIONS, *at, "describe", "--transactional-id", "java")
        assert "CompleteCommit" in described
        printed = await tool(
            CONSOLE_CONSUMER,
            *(*at, "--topic", OUT, "--from-beginning", "--max-messages", str(RECORDS)),
            *("--timeout-ms", "30000", "--isolation-level", "read_committed"),
        )
        assert printed.split() == [value.decode() for value in VALUES]

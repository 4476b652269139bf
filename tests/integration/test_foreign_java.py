"""Kafka's own Java tools against our broker: console producer and consumer, topics, groups."""

from __future__ import annotations

import anyio.to_thread
import pytest

from mock_coordinator import MockBroker
from tests.support.kafka_tools import (
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    CONSUMER_GROUPS,
    TOPICS,
    run_tool,
)
from tests.support.pytest_kafka import skip_without_kafka

pytestmark = [pytest.mark.foreign, pytest.mark.real_kafka, pytest.mark.asyncio]

RECORDS = 50


async def tool(main_class: str, *arguments: str, stdin: str | None = None) -> str:
    def call() -> str:
        with skip_without_kafka():
            return run_tool(main_class, *arguments, stdin=stdin)

    return await anyio.to_thread.run_sync(call)


@pytest.mark.parametrize("profile", ["4.0", "4.4"])
async def test_console_producer_and_consumer(profile: str) -> None:
    async with MockBroker({"t": 3}, profile=profile) as broker:
        at = ("--bootstrap-server", broker.bootstrap)
        lines = "".join(f"line-{i}\n" for i in range(RECORDS))
        await tool(CONSOLE_PRODUCER, *at, "--topic", "t", stdin=lines)
        assert broker.requests("InitProducerId"), "Java's producer is idempotent by default"
        assert len(broker.records("t")) == RECORDS
        printed = await tool(
            CONSOLE_CONSUMER,
            *at,
            *("--topic", "t", "--group", "g", "--from-beginning", "--max-messages", str(RECORDS)),
            *("--timeout-ms", "30000", "--command-property", "group.protocol=consumer"),
        )
        assert sorted(printed.split()) == sorted(lines.split())
        assert broker.requests("ConsumerGroupHeartbeat")
        group = broker.snapshot("g")
        assert group is not None
        assert not group.members, "the console consumer leaves its group"
        described = await tool(CONSUMER_GROUPS, *at, "--describe", "--group", "g")
        assert described.count(" 0 ") >= 3, described  # no lag on any of the three partitions


async def test_the_topic_command() -> None:
    async with MockBroker() as broker:
        at = ("--bootstrap-server", broker.bootstrap)
        await tool(TOPICS, *at, "--create", "--topic", "made", "--partitions", "4")
        described = await tool(TOPICS, *at, "--describe", "--topic", "made")
        assert "PartitionCount: 4" in described
        assert broker.core.broker.catalog.topics["made"].partitions == 4

"""A consumer does not bring topics back that somebody deleted (automatic creation is on)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import pytest

from kip848_client import Consumer
from mock_coordinator import MockBroker
from tests.integration.cluster import eventually, polling

pytestmark = pytest.mark.asyncio

FAST: Final = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
}
REFRESH_MS: Final = 50


def topics_of(broker: MockBroker) -> set[str]:
    return {name for name in broker.core.broker.catalog.topics if not name.startswith("__")}


def refreshes(broker: MockBroker) -> list[list[str]]:
    """What was asked for by name: only that could create a topic. (Leaders are asked for by id.)"""
    asked: list[Any] = [each.request for each in broker.requests("Metadata")]
    names = [[each.name for each in request.topics or () if each.name] for request in asked]
    return [each for each in names if each]


async def refreshed(broker: MockBroker, times: int = 3) -> None:
    """Metadata was asked for by name so many times more."""
    before = len(refreshes(broker))
    await eventually(lambda: len(refreshes(broker)) >= before + times)


async def test_topics_of_a_pattern_stay_deleted_and_are_not_asked_for_any_more() -> None:
    async with MockBroker({"t-1": 1, "t-2": 1}, config=FAST, check_ownership=False) as broker:
        consumer = Consumer(
            bootstrap_servers=broker.bootstrap, group_id="g", metadata_max_age_ms=REFRESH_MS
        )
        consumer.subscribe(pattern="t-.*")
        async with consumer, polling(consumer):
            await consumer.wait_assigned(10_000)
            broker.delete_topic("t-1")
            await eventually(lambda: {tp.topic for tp in consumer.assignment()} == {"t-2"})
            await refreshed(broker)
            assert topics_of(broker) == {"t-2"}
            assert refreshes(broker)[-1] == ["t-2"]


async def test_a_topic_stays_deleted_when_another_one_is_looked_up() -> None:
    async with MockBroker({"a": 1, "b": 1}, config=FAST, check_ownership=False) as broker:
        consumer = Consumer(
            "a", bootstrap_servers=broker.bootstrap, group_id="g", metadata_max_age_ms=REFRESH_MS
        )
        async with consumer, polling(consumer):
            await consumer.wait_assigned(10_000)
            broker.delete_topic("a")
            await consumer.end_offsets([("b", 0)])
            await refreshed(broker)
            assert topics_of(broker) == {"b"}


async def test_what_is_subscribed_to_or_assigned_may_be_created_once() -> None:
    async with MockBroker({}, config=FAST, check_ownership=False) as broker:
        consumer = Consumer("new", bootstrap_servers=broker.bootstrap, group_id="g")
        async with consumer:
            await consumer.wait_assigned(10_000)
        assert topics_of(broker) == {"new"}
        refusing = Consumer(
            "other",
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            allow_auto_create_topics=False,
            metadata_max_age_ms=REFRESH_MS,
        )
        async with refusing:
            await refreshed(broker)
        assert topics_of(broker) == {"new"}


async def test_a_partition_that_is_not_there_is_said_and_consumed_once_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "kip848_client")
    async with MockBroker({"t": 1}) as broker:
        consumer = Consumer(
            bootstrap_servers=broker.bootstrap,
            auto_offset_reset="earliest",
            retry_backoff_ms=10,
            retry_backoff_max_ms=50,
        )
        consumer.assign([("t", 1)])
        async with consumer:
            await eventually(lambda: "t-1 was assigned by hand and does not exist" in caplog.text)
            broker.add_partitions("t", 2)
            broker.produce("t", b"here", partition=1)
            async with asyncio.timeout(10):
                assert (await consumer.getone(("t", 1))).value == b"here"


@pytest.mark.parametrize("records", [3, 8])
async def test_a_topic_that_is_created_again_is_read_once_and_in_order(records: int) -> None:
    """Not under the old assignment: at the old offset, or from wherever a reset leads."""
    slow = {**FAST, "group.consumer.heartbeat.interval.ms": "500"}
    async with MockBroker({"t": 1}, config=slow) as broker:
        broker.produce("t", *[b"old"] * 5)
        consumer = Consumer(
            "t", bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest"
        )
        async with consumer, polling(consumer) as seen:
            await eventually(lambda: len(seen) == 5)
            broker.delete_topic("t")
            broker.create_topic("t", 1)
            new = [b"new%d" % number for number in range(records)]
            broker.produce("t", *new)
            await eventually(lambda: len(seen) >= 5 + records)
            beats = len(broker.requests("ConsumerGroupHeartbeat"))
            await eventually(lambda: len(broker.requests("ConsumerGroupHeartbeat")) > beats + 1)
            assert [each.value for each in seen[5:]] == new

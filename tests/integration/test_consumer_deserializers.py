"""Deserializers that are awaited, over the wire: order, errors, rebalances, the end."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kip848_client import Consumer, RecordUnreadable, TopicPartition
from tests.integration.cluster import Cluster, eventually

pytestmark = pytest.mark.asyncio


async def number(data: bytes | None) -> int:
    await asyncio.sleep(0)
    return int(data or b"0")


def reading(cluster: Cluster, topic: str, group: str, **settings: Any) -> Consumer[Any, Any]:
    consumer: Consumer[Any, Any] = Consumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        **settings,
    )
    return consumer


async def topic_with(cluster: Cluster, name: str, values: dict[int, list[bytes]]) -> str:
    topic = cluster.unique(name)
    await cluster.create_topic(topic, len(values))
    await cluster.produce(topic, values)
    return topic


async def test_every_way_of_asking(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "awaited", {0: [b"%d" % n for n in range(10)]})
    consumer = reading(cluster, topic, cluster.unique("awaited"), value_deserializer=number)
    async with asyncio.timeout(20), consumer:
        taken = [(await consumer.getone()).value]
        async for record in consumer:
            taken.append(record.value)
            if len(taken) == 4:
                break
        while len(taken) < 7:
            for records in (await consumer.getmany(timeout_ms=1000, max_records=2)).values():
                taken += [each.value for each in records][: 7 - len(taken)]
        await consumer.commit({(topic, 0): 7})
        await consumer.seek_to_committed()
        for view in (await consumer.getbatches(timeout_ms=5000)).values():
            taken += [each.value async for each in view.records_async()]
    assert taken == list(range(10))


async def test_one_that_raises_can_be_skipped(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "awaited-poison", {0: [b"1", b"oops", b"3"]})
    consumer = reading(cluster, topic, cluster.unique("poison"), value_deserializer=number)
    async with asyncio.timeout(20), consumer:
        assert (await consumer.getone()).value == 1
        for _ in range(2):
            with pytest.raises(RecordUnreadable, match=f"{topic}-0: .* offset 1 .*oops"):
                await consumer.getone()
            assert await consumer.position((topic, 0)) == 1
        consumer.seek((topic, 0), 2)
        assert (await consumer.getone()).value == 3


async def test_a_rebalance_while_one_runs(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """What is being made is nobody's yet: the partition goes at once, and the record with it."""
    topic = await topic_with(cluster, "moved", {0: [b"0"], 1: [b"1"]})
    group = cluster.unique("moved")
    await cluster.fast_group(group)
    gate = asyncio.Event()
    called: list[int] = []

    async def slow(data: bytes | None) -> int:
        called.append(int(data or b""))
        await gate.wait()
        return await number(data)

    first = reading(cluster, topic, group, value_deserializer=slow)
    second = reading(cluster, topic, group, value_deserializer=number)
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(25), first:
            asking = asyncio.create_task(first.getone())
            await eventually(lambda: bool(called))
            async with second:
                await eventually(lambda: len(first.assignment()) == 1)
                there = await second.getone()
                gate.set()
                here = await asking
                assert sorted([here.value, there.value]) == [0, 1]
                assert TopicPartition(topic, here.partition) in first.assignment()
    assert not [each for each in caplog.records if each.levelno > logging.INFO]


async def test_the_end_waits_for_none(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "hanging", {0: [b"0"]})
    group = cluster.unique("hanging")
    called: list[bytes | None] = []

    async def hang(data: bytes | None) -> None:
        called.append(data)
        await asyncio.Event().wait()

    consumer = reading(cluster, topic, group, value_deserializer=hang)
    await consumer.start()
    seen: list[Any] = []

    async def iterate() -> None:
        seen.extend([each async for each in consumer])

    task = asyncio.create_task(iterate())
    await eventually(lambda: bool(called))
    async with asyncio.timeout(5):
        await consumer.stop()
        await task
    assert seen == []
    async with cluster.consumer(topic, group=group) as other:
        assert (await asyncio.wait_for(other.getone(), 20)).value == b"0"

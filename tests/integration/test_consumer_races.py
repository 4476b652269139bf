"""Calls that overlap, are cancelled, or come at a bad moment: nothing is lost, nothing hangs."""

from __future__ import annotations

import asyncio

import pytest

from kip848_client import (
    ConfigError,
    Consumer,
    ConsumerClosed,
    NoOffsetForPartition,
    NotAssigned,
    RecordUnreadable,
    TopicPartition,
)
from tests.integration.cluster import Cluster, eventually

__all__: list[str] = []

pytestmark = pytest.mark.asyncio


async def topic_with(cluster: Cluster, name: str, values: dict[int, list[bytes]]) -> str:
    topic = cluster.unique(name)
    await cluster.create_topic(topic, len(values))
    await cluster.produce(topic, values)
    return topic


async def test_records_before_one_that_cannot_be_read_are_handed_out(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "unreadable", {0: [b"1", b"2"], 1: [b"3", b"oops", b"4"]})
    consumer = Consumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        group_id=cluster.unique("unreadable"),
        auto_offset_reset="earliest",
        value_deserializer=int,
    )
    seen: list[int] = []
    async with consumer:
        raised = 0
        while raised < 3 or len(seen) < 3:
            try:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    seen += [record.value for record in records]
            except RecordUnreadable as err:
                raised += (err.topic, err.partition, err.offset) == (topic, 1, 1)
        assert sorted(seen) == [1, 2, 3]
        assert await consumer.position((topic, 1)) == 1
        consumer.seek((topic, 1), 2)
        assert (await consumer.getone()).value == 4


async def test_a_cancelled_seek_to_the_end_changes_nothing(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "half-sought", {0: [b"0", b"1"]})
    async with cluster.consumer(topic, group=cluster.unique("half-sought")) as consumer:
        assert (await consumer.getone()).value == b"0"
        seeking = asyncio.create_task(consumer.seek_to_end())
        await asyncio.sleep(0)
        seeking.cancel()
        await asyncio.wait([seeking])
        assert (await asyncio.wait_for(consumer.getone(), 10)).value == b"1"


async def test_a_seek_to_the_end_wins_over_the_first_position(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "sought-early", {0: [b"0", b"1", b"2"]})
    for turns in range(0, 40, 4):
        consumer = cluster.consumer(topic, group=cluster.unique(f"sought-early-{turns}"))
        async with consumer:
            async with asyncio.timeout(10):
                while not consumer.assignment():  # noqa: ASYNC110 - turn by turn is the point
                    await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            await consumer.seek_to_end()
            assert await consumer.position((topic, 0)) == 3, turns


async def test_a_younger_seek_wins_over_one_to_the_end(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "sought-twice", {0: [b"0", b"1", b"2"]})
    async with cluster.consumer(topic, group=cluster.unique("sought-twice")) as consumer:
        await consumer.getone()
        seeking = asyncio.create_task(consumer.seek_to_end())
        await asyncio.sleep(0)
        consumer.seek((topic, 0), 2)
        await seeking
        assert await consumer.position((topic, 0)) == 2


async def test_a_younger_seek_wins_over_one_to_what_is_committed(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "sought-back", {0: [b"0", b"1", b"2"]})
    async with cluster.consumer(topic, group=cluster.unique("sought-back")) as consumer:
        await consumer.getone()
        await consumer.commit()
        seeking = asyncio.create_task(consumer.seek_to_committed())
        await asyncio.sleep(0)
        consumer.seek((topic, 0), 2)
        assert await seeking == {(topic, 0): 1}
        assert await consumer.position((topic, 0)) == 2


async def test_to_seek_everything_needs_something_assigned(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "unassigned", {0: []})
    async with cluster.consumer(topic, group=cluster.unique("unassigned")) as consumer:
        for seek in (
            consumer.seek_to_beginning,
            consumer.seek_to_end,
            consumer.seek_to_committed,
        ):
            with pytest.raises(NotAssigned):
                await seek()


async def test_a_listener_may_ask_for_the_position_of_a_new_partition(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "asked-early", {0: [b"0", b"1"]})
    positions: list[int | None] = []

    class Listener:
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            pass

        async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            for tp in assigned:
                positions.append(await consumer.committed(tp))
                positions.append(await consumer.position(tp))
                await consumer.seek_to_end(tp)
                positions.append(await consumer.position(tp))

    async with cluster.consumer(group=cluster.unique("asked-early")) as consumer:
        consumer.subscribe([topic], listener=Listener())
        await consumer.getmany(timeout_ms=10)
        await eventually(lambda: len(positions) == 3)
    assert positions == [None, 0, 2]


async def test_nothing_is_handed_out_before_the_listener_that_asked_for_a_position_is_done(
    cluster: Cluster,
) -> None:
    topic = await topic_with(cluster, "asked-slowly", {0: [b"0", b"1"]})
    heard: list[object] = []

    class Listener:
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            pass

        async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            heard.extend([await consumer.position(tp) for tp in assigned])
            assert await consumer.getmany(timeout_ms=300) == {}
            heard.append("done")

    async with cluster.consumer(group=cluster.unique("asked-slowly")) as consumer:
        consumer.subscribe([topic], listener=Listener())
        heard.append((await consumer.getone()).value)
    assert heard == [0, "done", b"0"]


async def test_only_the_partition_without_an_offset_is_refused(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "no-offset", {0: [b"0"], 1: [b"1"]})
    group = cluster.unique("no-offset")
    async with cluster.consumer(topic, group=group, auto_offset_reset="none") as consumer:
        await consumer.wait_assigned(10_000)
        for tp in consumer.assignment():
            with pytest.raises(NoOffsetForPartition):
                await consumer.position(tp)
        consumer.seek((topic, 0), 0)
        assert (await consumer.getone((topic, 0))).value == b"0"
        with pytest.raises(NoOffsetForPartition):
            await consumer.getone()


async def test_getmany_returns_nothing_when_the_consumer_is_stopped_meanwhile(
    cluster: Cluster,
) -> None:
    topic = await topic_with(cluster, "stopped", {0: []})
    consumer = cluster.consumer(topic, group=cluster.unique("stopped"))
    await consumer.start()
    asking = asyncio.create_task(consumer.getmany(timeout_ms=20_000))
    await asyncio.sleep(0.05)
    await consumer.stop()
    assert await asking == {}


@pytest.mark.parametrize("offset", [-1, 1.5, "", None, 2**63])
async def test_what_is_no_offset_is_refused_at_once(cluster: Cluster, offset: object) -> None:
    topic = await topic_with(cluster, "offsets", {0: [b"0"]})
    async with cluster.consumer(group=None) as consumer:
        consumer.assign([(topic, 0)])
        with pytest.raises(ConfigError):
            consumer.seek((topic, 0), offset)  # type: ignore[arg-type]  # that is the point
        assert (await consumer.getone()).value == b"0"


async def test_partitions_assigned_by_hand_are_not_the_group_s_to_take(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "by-hand", {0: [b"0", b"1"], 1: [b"2"]})
    group = cluster.unique("by-hand")
    told: list[set[TopicPartition]] = []

    class Listener:
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            told.append(revoked)

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            pass

    async with cluster.consumer(group=group) as consumer:
        consumer.subscribe([topic], listener=Listener())
        both = await consumer.wait_assigned(20_000)
        consumer.unsubscribe()
        consumer.assign([(topic, 0)])
        await eventually(lambda: told == [both])
        await eventually(lambda: consumer.member is not None and consumer.member.member_epoch < 0)
        assert consumer.assignment() == {(topic, 0)}
        records = await consumer.getmany(timeout_ms=10_000)
        assert [record.value for record in records[TopicPartition(topic, 0)]] == [b"0", b"1"]
        consumer.unsubscribe()  # which commits that
        assert consumer.assignment() == frozenset()
        consumer.assign([(topic, 1)])
        assert (await consumer.getone()).value == b"2"  # stop() commits that
    assert await cluster.committed(group, topic) == {0: 2, 1: 1}


async def test_nothing_is_handed_out_after_unsubscribe(cluster: Cluster) -> None:
    topic = await topic_with(cluster, "left", {0: [b"%d" % n for n in range(50)]})
    async with cluster.consumer(topic, group=cluster.unique("left")) as consumer:
        await consumer.getone()
        consumer.unsubscribe()
        assert await consumer.getmany(timeout_ms=200) == {}


@pytest.mark.parametrize("turns", range(1, 31, 3))
async def test_stop_ends_a_start_that_is_under_way(cluster: Cluster, turns: int) -> None:
    topic = await topic_with(cluster, f"ended-{turns}", {0: []})
    consumer = cluster.consumer(topic, group=cluster.unique(f"ended-{turns}"))
    before = asyncio.all_tasks()
    starting = asyncio.create_task(consumer.start())
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await consumer.stop()
        results = await asyncio.gather(starting, return_exceptions=True)
    assert results[0] is None or isinstance(results[0], ConsumerClosed)
    with pytest.raises(ConsumerClosed):
        await consumer.getone()
    await asyncio.sleep(0.01)
    left = {str(task.get_coro()) for task in asyncio.all_tasks() - before}
    assert not [name for name in left if "AIOKafka" in name], left

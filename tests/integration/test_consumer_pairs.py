"""Two features at a time: what each does alone is tested elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from kip848_client import TopicPartition
from tests.integration.cluster import Cluster, eventually

pytestmark = pytest.mark.asyncio


async def test_pause_and_rebalance(cluster: Cluster) -> None:
    """What is retained stays paused, and what was given back comes back unpaused."""
    topic, group = cluster.unique("paused"), cluster.unique("paused")
    await cluster.create_topic(topic, 2)
    await cluster.fast_group(group)
    one = cluster.consumer(topic, group=group)
    async with one:
        await eventually(lambda: len(one.assignment()) == 2)
        one.pause(*one.assignment())
        async with cluster.consumer(topic, group=group) as other:
            polling = asyncio.ensure_future(other.getone())
            await eventually(lambda: len(one.assignment()) == len(other.assignment()) == 1)
            assert one.paused() == one.assignment()
            (kept,) = one.assignment()
            assert not other.paused()
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
        await eventually(lambda: len(one.assignment()) == 2)
        assert one.paused() == frozenset({kept})


async def test_automatic_commit_and_a_revocation_of_everything(cluster: Cluster) -> None:
    topic, other = cluster.unique("given-up"), cluster.unique("instead")
    group = cluster.unique("given-up")
    for name in (topic, other):
        await cluster.create_topic(name, 1)
    await cluster.fast_group(group)
    await cluster.produce(topic, {0: [b"0", b"1", b"2"]})
    consumer = cluster.consumer(topic, group=group, auto_commit_interval_ms=600_000)
    async with consumer:
        for _ in range(3):
            await consumer.getone()
        consumer.subscribe([other])
        waiting = asyncio.ensure_future(consumer.getone())  # says that the three are done
        await eventually(lambda: consumer.assignment() == frozenset({TopicPartition(other, 0)}))
        assert await cluster.committed(group, topic) == {0: 3}
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_automatic_commit_and_partitions_assigned_by_hand(cluster: Cluster) -> None:
    topic, group = cluster.unique("by-hand"), cluster.unique("by-hand")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"0", b"1"]})
    consumer = cluster.consumer(group=group, auto_commit_interval_ms=50)
    async with consumer:
        consumer.assign([TopicPartition(topic, 0)])
        for _ in range(2):
            await consumer.getone()
        waiting = asyncio.ensure_future(consumer.getone())

        async def stored() -> bool:
            return await cluster.committed(group, topic) == {0: 2}

        await eventually(stored)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_unsubscribe_and_a_commit_under_way(cluster: Cluster) -> None:
    topic, group = cluster.unique("both"), cluster.unique("both")
    await cluster.create_topic(topic, 1)
    await cluster.fast_group(group)
    await cluster.produce(topic, {0: [b"0", b"1", b"2"]})
    consumer = cluster.consumer(topic, group=group, auto_commit_interval_ms=600_000)
    async with consumer:
        for _ in range(2):
            await consumer.getone()
        committing = asyncio.ensure_future(consumer.commit())
        await asyncio.sleep(0)
        consumer.unsubscribe()
        assert (await committing)[TopicPartition(topic, 0)].offset == 2
        consumer.subscribe([topic])
        assert (await consumer.getone()).offset == 2


async def test_a_seek_in_the_listener_and_a_loss(cluster: Cluster) -> None:
    """A member that was put out and comes back starts where the listener says, again."""
    topic, group = cluster.unique("sought"), cluster.unique("sought")
    await cluster.create_topic(topic, 1)
    await cluster.fast_group(group)
    await cluster.produce(topic, {0: [b"%d" % n for n in range(6)]})
    consumer = cluster.consumer(group=group, enable_auto_commit=False, max_poll_interval_ms=600)
    heard: list[str] = []

    class Listener:
        def on_partitions_assigned(self, new: set[TopicPartition]) -> None:
            for tp in new:
                heard.append("assigned")
                consumer.seek(tp, 3)

        def on_partitions_revoked(self, gone: set[TopicPartition]) -> None:
            heard.extend("revoked" for _ in gone)

        def on_partitions_lost(self, gone: set[TopicPartition]) -> None:
            heard.extend("lost" for _ in gone)

    consumer.subscribe([topic], listener=Listener())
    async with consumer:
        assert (await consumer.getone()).offset == 3
        await eventually(lambda: "lost" in heard)  # it does not poll
        assert (await consumer.getone()).offset == 3
        assert heard == ["assigned", "lost", "assigned"]

"""A member's life: static return, patterns, topics that grow, go and come, idle applications."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client import (
    Consumer,
    LeaveMode,
    MemberState,
    TopicPartition,
)
from tests.integration.cluster import Cluster, eventually, kill, polling

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


def state_of(consumer: Consumer[Any, Any]) -> MemberState:
    member = consumer.member
    assert member is not None
    return member.state


async def test_a_static_member_returns_without_a_rebalance(cluster: Cluster) -> None:
    topic, group = cluster.unique("static"), cluster.unique("static")
    await cluster.create_topic(topic, 4)
    await cluster.fast_group(group, {"consumer.session.timeout.ms": "20000"})
    staying = cluster.consumer(topic, group=group)
    async with staying, polling(staying):
        settings = {"group_instance_id": cluster.unique("one")}
        async with cluster.consumer(topic, group=group, **settings) as going:
            await eventually(lambda: len(going.assignment()) == len(staying.assignment()) == 2)
            await going.wait_assigned(20_000)
            had = going.assignment()
            epoch = (await cluster.describe(group)).group_epoch
        assert len(staying.assignment()) == 2
        async with cluster.consumer(topic, group=group, **settings) as back:
            assert await back.wait_assigned(20_000) == had
            described = await cluster.describe(group)
            assert described.group_epoch == epoch
            assert len(described.members) == 2
            # KIP-1092: leave for good although static
            await back.stop(leave=LeaveMode.LEAVE_GROUP)
        await eventually(lambda: len(staying.assignment()) == 4)


async def test_a_dynamic_member_may_stay_in_the_group(cluster: Cluster) -> None:
    topic, group = cluster.unique("remain"), cluster.unique("remain")
    await cluster.create_topic(topic, 2)
    await cluster.fast_group(group, {"consumer.session.timeout.ms": "20000"})
    consumer = cluster.consumer(topic, group=group)
    await consumer.start()
    await consumer.wait_assigned(20_000)
    await consumer.stop(leave=LeaveMode.REMAIN_IN_GROUP)
    assert len((await cluster.describe(group)).members) == 1


async def test_a_duplicate_instance_id_is_refused(cluster: Cluster) -> None:
    topic, group = cluster.unique("twin"), cluster.unique("twin")
    await cluster.create_topic(topic, 1)
    settings = {"group_instance_id": cluster.unique("twin")}
    async with cluster.consumer(topic, group=group, **settings) as first:
        await first.wait_assigned(20_000)
        async with cluster.consumer(topic, group=group, **settings) as second:
            for _ in range(2):  # it is over, and says so each time
                with pytest.raises(Exception, match="UNRELEASED_INSTANCE_ID"):
                    await second.getone()
            assert state_of(second) is MemberState.FATAL
        assert state_of(first) is MemberState.STABLE


async def test_a_pattern_is_matched_by_the_broker(cluster: Cluster) -> None:
    prefix, group = cluster.unique("pattern"), cluster.unique("pattern")
    await cluster.create_topic(f"{prefix}-one", 1)
    await cluster.create_topic(f"other-{prefix}", 1)
    await cluster.fast_group(group)
    await cluster.produce(f"{prefix}-one", {0: [b"1"]})
    consumer = cluster.consumer(group=group)
    consumer.subscribe(pattern=f"{prefix}.*")
    async with consumer, polling(consumer) as records:
        await eventually(lambda: len(records) == 1)
        assert consumer.assignment() == {TopicPartition(f"{prefix}-one", 0)}
        assert consumer.subscription() == frozenset()
        consumer.subscribe([f"other-{prefix}"])
        await eventually(
            lambda: set(consumer.assignment()) == {TopicPartition(f"other-{prefix}", 0)}
        )


async def test_new_partitions_are_consumed(cluster: Cluster) -> None:
    topic, group = cluster.unique("grow"), cluster.unique("grow")
    await cluster.create_topic(topic, 1)
    await cluster.fast_group(group)
    consumer = cluster.consumer(topic, group=group)
    async with consumer, polling(consumer) as records:
        await eventually(lambda: len(consumer.assignment()) == 1)
        await cluster.grow_topic(topic, 3)
        await eventually(lambda: len(consumer.assignment()) == 3)
        await cluster.produce(topic, {p: [b"x"] for p in range(3)})
        await eventually(lambda: len(records) == 3)


async def test_a_topic_that_comes_later_is_consumed(cluster: Cluster) -> None:
    topic, group = cluster.unique("later"), cluster.unique("later")
    await cluster.fast_group(group)
    consumer = cluster.consumer(topic, group=group, allow_auto_create_topics=False)
    async with consumer, polling(consumer) as records:
        await eventually(lambda: state_of(consumer) is MemberState.STABLE)
        assert consumer.assignment() == frozenset()
        await cluster.create_topic(topic, 2)
        await cluster.produce(topic, {0: [b"a"], 1: [b"b"]})
        await eventually(lambda: len(records) == 2)


async def test_a_topic_created_again_is_another_topic(cluster: Cluster) -> None:
    topic, group = cluster.unique("phoenix"), cluster.unique("phoenix")
    first_id = await cluster.create_topic(topic, 1)
    await cluster.fast_group(group)
    await cluster.produce(topic, {0: [b"old"] * 10})
    gone: list[set[TopicPartition]] = []

    class Listener:
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            gone.append(revoked)

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            pass

    consumer = cluster.consumer(group=group)
    consumer.subscribe([topic], listener=Listener())
    async with consumer, polling(consumer) as records:
        await eventually(lambda: len(records) == 10)
        await consumer.commit()
        await cluster.delete_topic(topic)
        await eventually(lambda: consumer.assignment() == frozenset())
        assert gone == [{TopicPartition(topic, 0)}]
        second_id = await cluster.create_topic(topic, 1)
        assert first_id != second_id
        await cluster.produce(topic, {0: [b"new"] * 3})
        await eventually(lambda: len(records) == 13)
        assert [record.offset for record in records[10:]] == [0, 1, 2]
        assert {record.value for record in records[10:]} == {b"new"}


async def test_an_application_that_does_not_poll_leaves_and_returns(cluster: Cluster) -> None:
    topic, group = cluster.unique("idle"), cluster.unique("idle")
    await cluster.create_topic(topic, 2)
    await cluster.produce(topic, {0: [b"a", b"b"]})
    lost: list[set[TopicPartition]] = []

    class Listener:
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            raise AssertionError(f"revoked instead of lost: {revoked}")

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            pass

        async def on_partitions_lost(self, partitions: set[TopicPartition]) -> None:
            lost.append(partitions)

    consumer = cluster.consumer(group=group, max_poll_interval_ms=700, enable_auto_commit=False)
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    assert (await consumer.getone()).value == b"a"
    await eventually(lambda: state_of(consumer) is MemberState.STALE)
    await eventually(lambda: lost == [{TopicPartition(topic, 0), TopicPartition(topic, 1)}])

    async def left() -> bool:
        return bool((await cluster.describe(group)).members == ())

    await eventually(left)
    assert (await consumer.getone()).value == b"a"  # rejoined; nothing was committed
    # waiting for a record is polling: 1 s of it does not throw the member out
    assert (await consumer.getone()).value == b"b"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await consumer.getone()
    assert state_of(consumer) is MemberState.STABLE
    await kill(consumer)


async def test_unsubscribe_leaves_and_subscribing_again_returns(cluster: Cluster) -> None:
    topic, group = cluster.unique("again"), cluster.unique("again")
    await cluster.create_topic(topic, 2)
    await cluster.produce(topic, {0: [b"a"], 1: [b"b"]})
    async with cluster.consumer(topic, group=group) as consumer:
        await consumer.wait_assigned(20_000)
        consumer.unsubscribe()
        consumer.subscribe([topic])
        consumer.unsubscribe()
        await eventually(lambda: state_of(consumer) is MemberState.UNSUBSCRIBED)
        assert consumer.assignment() == frozenset()
        assert consumer.group_metadata().member_epoch == -1
        assert (await cluster.describe(group)).members == ()
        consumer.subscribe([topic])
        assert len(await consumer.wait_assigned(20_000)) == 2


async def test_a_dropped_topic_is_not_handed_out_any_more(cluster: Cluster) -> None:
    keep, drop, group = cluster.unique("keep"), cluster.unique("drop"), cluster.unique("narrow")
    for topic in (keep, drop):
        await cluster.create_topic(topic, 1)
        await cluster.produce(topic, {0: [b"%d" % n for n in range(10)]})
    async with cluster.consumer(keep, drop, group=group) as consumer:
        await consumer.wait_assigned(20_000)
        consumer.subscribe([keep])
        seen = [await consumer.getone() for _ in range(10)]
        assert {record.topic for record in seen} == {keep}
        await eventually(lambda: set(consumer.assignment()) == {TopicPartition(keep, 0)})


async def test_a_broken_connection_is_not_an_event(cluster: Cluster) -> None:
    """Heartbeats, commits and fetches go on over new connections."""
    topic, group = cluster.unique("broken"), cluster.unique("broken")
    await cluster.create_topic(topic, 1)
    consumer = cluster.consumer(topic, group=group)
    async with consumer, polling(consumer) as records:
        await consumer.wait_assigned(20_000)
        engine = consumer._engine
        assert engine is not None
        fetching = engine.transport._fetch_links._links
        await eventually(lambda: any(each.is_open for each in fetching.values()))
        links = [*engine.transport._links._links.values(), *fetching.values()]
        connections: list[Any] = [each._connection for each in links if each.is_open]
        assert len(connections) >= 2
        for connection in connections:
            connection._writer.close()
        await cluster.produce(topic, {0: [b"after"]})
        await eventually(lambda: len(records) == 1)
        await consumer.commit()
        before = consumer.member
        assert before is not None
        await consumer.commit({TopicPartition(topic, 0): 1})
        assert state_of(consumer) is MemberState.STABLE
    assert await cluster.committed(group, topic) == {0: 1}

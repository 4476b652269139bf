"""Several members of one group: nothing is lost, and nothing comes twice without a crash."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import Any

import pytest

from kip848_client import Consumer, TopicPartition
from kip848_client.errors import ConsumerClosed
from tests.integration.cluster import Cluster, eventually, kill

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(150), pytest.mark.smoke]

PARTITIONS = 6
TOTAL = 50_000

Place = tuple[int, int]  # partition, offset


class Worker:
    """A member that takes records in batches and remembers each."""

    def __init__(self, consumer: Consumer[Any, Any]) -> None:
        self.consumer = consumer
        self.seen: list[Place] = []
        self.values: dict[Place, bytes] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> Worker:
        await self.consumer.start()
        self._task = asyncio.get_running_loop().create_task(self._work())
        return self

    async def _work(self) -> None:
        while True:
            batches = await self.consumer.getmany(timeout_ms=100, max_records=100)
            for records in batches.values():
                for record in records:
                    place = (record.partition, record.offset)
                    self.seen.append(place)
                    self.values[place] = record.value
                await asyncio.sleep(0)  # a rebalance may come in the middle of a batch

    async def finish(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def stop(self) -> None:
        await self.consumer.stop()  # which lets the batch in hand be finished
        assert self._task is not None
        with contextlib.suppress(ConsumerClosed):
            await self._task


class Consumers:
    """All workers, past ones included."""

    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self.group = group
        self.workers: list[Worker] = []
        self.produced = 0

    async def hire(self) -> Worker:
        consumer = self.cluster.consumer(self.topic, group=self.group, auto_commit_interval_ms=200)
        worker = Worker(consumer)
        self.workers.append(worker)
        return await worker.start()

    def unique(self) -> int:
        return len({place for worker in self.workers for place in worker.seen})

    async def produce(self, count: int) -> None:
        each = count // PARTITIONS
        start = self.produced // PARTITIONS
        self.produced += each * PARTITIONS
        values = {p: [b"%d" % n for n in range(start, start + each)] for p in range(PARTITIONS)}
        await self.cluster.produce(self.topic, values)

    async def consumed(self, count: int) -> None:
        await eventually(lambda: self.unique() >= count, timeout_s=60)


async def test_one_joins_one_leaves_one_is_killed_and_nothing_is_lost(cluster: Cluster) -> None:
    topic, group = cluster.unique("fifty"), cluster.unique("fifty")
    await cluster.create_topic(topic, PARTITIONS)
    # long enough that a busy machine fences nobody, short enough to wait for the one that is killed
    await cluster.fast_group(group, {"consumer.session.timeout.ms": "4000"})
    consumers = Consumers(cluster, topic, group)
    first, second, third = [await consumers.hire() for _ in range(3)]
    await consumers.produce(15_000)
    await consumers.consumed(8_000)
    fourth = await consumers.hire()
    await consumers.produce(15_000)
    await consumers.consumed(20_000)
    await first.stop()
    await consumers.produce(10_000)
    await consumers.consumed(32_000)
    await kill(second.consumer)
    await second.finish()
    at_kill = await cluster.committed(group, topic)
    await consumers.produce(TOTAL - consumers.produced - 2)
    await consumers.consumed(consumers.produced)

    async def broker_shows_our_epochs() -> bool:
        described = await cluster.describe(group)
        epochs = {member.member_id: member.member_epoch for member in described.members}
        ours = [worker.consumer.group_metadata() for worker in (third, fourth)]
        return epochs == {each.member_id: each.member_epoch for each in ours}

    await eventually(broker_shows_our_epochs)  # the killed member's session has to end first
    for worker in (third, fourth):
        await worker.stop()

    each = consumers.produced // PARTITIONS
    places = [place for worker in consumers.workers for place in worker.seen]
    lost = {(p, n) for p in range(PARTITIONS) for n in range(each)} - set(places)
    assert not lost
    counts = Counter(places)
    assert all(
        worker.values[place] == b"%d" % place[1]
        for worker in consumers.workers
        for place in worker.values
    )
    victims = set(second.seen)
    for place, count in counts.items():
        if count > 1:
            partition, offset = place
            excused = place in victims and offset >= at_kill.get(partition, 0)
            assert excused, f"{place} came {count} times, committed up to {at_kill}"


async def test_members_share_and_give_back(cluster: Cluster) -> None:
    """Retained partitions are neither revoked nor fetched anew when others move."""
    topic, group = cluster.unique("share"), cluster.unique("share")
    await cluster.create_topic(topic, 4)
    await cluster.fast_group(group)
    calls: list[tuple[str, int]] = []

    class Listener:
        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            calls.append(("revoked", len(revoked)))

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            calls.append(("assigned", len(assigned)))

    one = cluster.consumer(group=group)
    one.subscribe([topic], listener=Listener())
    worker = await Worker(one).start()
    await eventually(lambda: len(one.assignment()) == 4)
    other = await Worker(cluster.consumer(topic, group=group)).start()
    await eventually(lambda: len(one.assignment()) == len(other.consumer.assignment()) == 2)
    assert not one.assignment() & other.consumer.assignment()
    # a revocation is followed by an assignment of what is new: nothing
    await eventually(lambda: calls[-2:] == [("revoked", 2), ("assigned", 0)])
    await other.stop()
    await eventually(lambda: len(one.assignment()) == 4)
    await eventually(lambda: calls[-1] == ("assigned", 2))
    await worker.stop()
    assert calls[-1] == ("revoked", 4)
    described = await cluster.describe(group)
    assert (described.group_state, described.members) == ("Empty", ())


async def test_an_application_in_the_middle_of_records_keeps_them(cluster: Cluster) -> None:
    """The group waits for them; then they are committed and not handed to anybody else."""
    topic, group = cluster.unique("middle"), cluster.unique("middle")
    await cluster.create_topic(topic, 2)
    await cluster.fast_group(group)
    await cluster.produce(topic, {0: [b"a0", b"a1"], 1: [b"b0", b"b1"]})
    async with cluster.consumer(topic, group=group) as slow:
        held = await slow.getmany(timeout_ms=10_000)  # and is busy with them
        assert len(held) == 2
        other = await Worker(cluster.consumer(topic, group=group)).start()
        before = _heartbeats(slow)
        await eventually(lambda: _heartbeats(slow) > before + 3)
        assert len(slow.assignment()) == 2
        assert other.seen == []
        assert await slow.getmany(timeout_ms=100) == {}  # done with them
        await eventually(lambda: len(slow.assignment()) == 1)
        await eventually(lambda: len(other.consumer.assignment()) == 1)
        await cluster.produce(topic, {0: [b"a2"], 1: [b"b2"]})
        await eventually(lambda: len(other.seen) == 1)
        assert other.seen[0][1] == 2
        await other.stop()


def _heartbeats(consumer: Consumer[Any, Any]) -> int:
    member = consumer.member
    assert member is not None
    return member.heartbeats_answered

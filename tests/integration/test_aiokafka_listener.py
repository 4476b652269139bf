"""Listeners of the import swap are called as aiokafka calls them: all goes, all comes."""

from __future__ import annotations

import asyncio
from typing import Any

import aiokafka
import pytest
from aiokafka.structs import TopicPartition

from kip848_client.aiokafka import _adapters
from kip848_client.core.types import LEAVE_EPOCH
from kip848_client.core.wire import api_named
from tests.integration.aiokafka_consumers import Listener, made, take
from tests.integration.cluster import Cluster, eventually
from tests.integration.test_consumer_records import filled

pytestmark = pytest.mark.asyncio


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who gets nothing does not wait long for it."""
    monkeypatch.setattr(_adapters, "_PATIENCE_S", 0.3)
    monkeypatch.setattr(_adapters, "_INTERVALS", 0.0)
    monkeypatch.setattr(_adapters, "_NOTHING_INTERVALS", 0.0)


async def test_a_listener_gets_their_partitions(cluster: Cluster) -> None:
    topic = await filled(cluster, "listened", 1, 1)
    listener, tp = Listener(), TopicPartition(topic, 0)
    consumer = made(cluster, group=cluster.unique("listened"))
    consumer.subscribe([topic], listener=listener)
    async with consumer:
        await take(consumer, 1)
    assert listener.calls == [("revoked", set()), ("assigned", {tp}), ("revoked", {tp})]
    assert all(type(each) is TopicPartition for _, called in listener.calls for each in called)


@pytest.mark.usefixtures("impatient")
async def test_a_listener_outside_of_a_group_is_not_called(cluster: Cluster) -> None:
    group, listener = cluster.unique("nothing"), Listener()
    consumer = made(cluster, group=group)
    consumer.subscribe(pattern=cluster.unique("no-such-topic"), listener=listener)
    async with consumer:
        assert consumer.assignment() == set()
    assert listener.calls == []


@pytest.mark.usefixtures("impatient")
async def test_who_gets_nothing_hears_of_it(cluster: Cluster) -> None:
    topic, group = await filled(cluster, "waits", 1, 0), cluster.unique("waits")
    async with made(cluster, topic, group=group):
        listener = Listener()
        second = made(cluster, group=group)
        second.subscribe([topic], listener=listener)
        async with second:
            await eventually(lambda: listener.calls == [("revoked", set()), ("assigned", set())])


async def test_a_listener_that_fails_is_logged_and_called_again(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await filled(cluster, "failing", 1, 1)
    listener, tp = Listener(failures=1), TopicPartition(topic, 0)
    consumer = made(cluster, group=cluster.unique("failing"))
    consumer.subscribe([topic], listener=listener)
    async with asyncio.timeout(20), consumer:
        assert len(await take(consumer, 1)) == 1
    pair = [("revoked", {tp}), ("assigned", {tp})]
    assert listener.calls[:4] == [("revoked", set()), *pair[1:], *pair]
    assert "not now" in caplog.text


class Program(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Believes what its listener is told, and reads all the while. It does in its listener what
    programs do there, and takes its time."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self.mine: set[Any] = set()
        self.paused = True
        self.offsets: dict[Any, list[int]] = {}
        self.pairs = 0
        self.faults: list[str] = []

    def on_partitions_revoked(self, revoked: set[Any]) -> Any:
        return self._revoked(revoked)

    def on_partitions_assigned(self, assigned: set[Any]) -> Any:
        return self._assigned(assigned)

    async def _revoked(self, revoked: set[Any]) -> None:
        self.paused = True
        self._expect(revoked == self.mine, f"{revoked} revoked of {self.mine}")
        self._expect(self._rejoins, "it does not rejoin while it revokes")
        await self.consumer.commit()
        await asyncio.sleep(0.05)

    async def _assigned(self, assigned: set[Any]) -> None:
        stays, self.mine = self.mine & assigned, set(assigned)
        self._expect(not self._rejoins, "it rejoins while it assigns")
        self._expect(self.consumer.assignment() == assigned, "this is not what is assigned")
        for tp in stays & self.offsets.keys():
            at = await self.consumer.position(tp)
            self._expect(at == self.offsets[tp][-1] + 1, f"{tp} is at {at}")
            self.consumer.seek(tp, at)
        await asyncio.sleep(0.05)
        self.paused = False
        self.pairs += 1

    @property
    def _rejoins(self) -> bool:
        return bool(self.consumer._coordinator._rejoin_needed_fut.done())

    def _expect(self, truth: bool, fault: str) -> None:
        if not truth:
            self.faults.append(fault)

    async def read(self) -> None:
        async for record in self.consumer:
            tp = TopicPartition(record.topic, record.partition)
            self._expect(not self.paused, f"{tp} was read between the calls")
            self._expect(tp in self.mine, f"{tp} was read, which was not assigned")
            self.offsets.setdefault(tp, []).append(record.offset)
            await asyncio.sleep(0)


async def test_a_program_that_believes_its_listener(cluster: Cluster) -> None:
    """``self.mine = set(assigned)``: right at every time, whoever joins and leaves."""
    topic, group = await filled(cluster, "mine", 3, 200), cluster.unique("mine")
    await cluster.fast_group(group)
    programs: list[Program] = []
    reading: list[asyncio.Task[None]] = []

    async def begin() -> Any:
        consumer = made(cluster, group=group, enable_auto_commit=False)
        programs.append(Program(consumer))
        consumer.subscribe([topic], listener=programs[-1])
        await consumer.start()
        reading.append(asyncio.create_task(programs[-1].read()))
        return consumer

    first = await begin()
    await eventually(lambda: len(programs[0].mine) == 3)
    second = await begin()
    await eventually(lambda: programs[1].pairs > 0 and programs[0].pairs > 1)
    await cluster.produce(topic, {number: [b"more"] * 50 for number in range(3)})
    await second.stop()
    await eventually(lambda: len(programs[0].mine) == 3)
    wanted = 3 * 250
    await eventually(lambda: sum(len(o) for p in programs for o in p.offsets.values()) >= wanted)
    await first.stop()
    await asyncio.gather(*reading)
    assert [each.faults for each in programs] == [[], []]
    for number in range(3):
        read = [o for p in programs for o in p.offsets.get((topic, number), [])]
        assert sorted(read) == [*range(250)], "each record once"


async def test_a_listener_that_comes_later_hears_of_everything(cluster: Cluster) -> None:
    topic = await filled(cluster, "later", 2, 3)
    both = {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    async with made(cluster, topic, group=cluster.unique("later")) as consumer:
        first = await take(consumer, 1)
        listener = Listener(failures=1)
        consumer.subscribe([topic], listener=listener)
        waiting = consumer._subscription.wait_for_assignment()
        rest = await take(consumer, 5)
        pair = [("revoked", both), ("assigned", both)]
        assert listener.calls == [*pair, *pair]
        assert waiting.done()
        read = [(each.partition, each.offset) for each in [*first, *rest]]
        assert sorted(read) == [(p, o) for p in range(2) for o in range(3)], "each record once"
        other = Listener()
        consumer.subscribe([topic], listener=other)
        await eventually(lambda: other.calls == pair)
        consumer.unsubscribe()
        await eventually(lambda: other.calls == [*pair, pair[0]])
        consumer.subscribe([topic], listener=other)
        await eventually(lambda: other.calls == [*pair, *pair])
    assert len(listener.calls) == 4


async def test_a_membership_that_is_lost_is_revoked_and_assigned_anew(cluster: Cluster) -> None:
    topic, group = await filled(cluster, "lost", 1, 5), cluster.unique("lost")
    await cluster.fast_group(group)
    listener, tp = Listener(), TopicPartition(topic, 0)
    consumer = made(cluster, group=group, enable_auto_commit=False)
    consumer.subscribe([topic], listener=listener)
    heartbeat = api_named("ConsumerGroupHeartbeat").request
    async with consumer:
        await take(consumer, 2)
        await consumer.commit()
        member_id = consumer._coordinator.member_id
        await cluster.ask(
            heartbeat(group_id=group, member_id=member_id, member_epoch=LEAVE_EPOCH), (1, 1)
        )
        await eventually(lambda: listener.calls[2:3] == [("revoked", {tp})])
        assert [each.offset for each in await take(consumer, 3)] == [2, 3, 4]
    calls = listener.calls
    assert calls == [("revoked", set()), *[("assigned", {tp}), ("revoked", {tp})] * 2]

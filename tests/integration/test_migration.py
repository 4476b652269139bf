"""A group moves from the classic protocol to the new one and back while it works (KIP-848).

Members are replaced one by one, as in a rolling restart: first the newcomer, then the old one goes.
In between the group holds members of both protocols. Nothing may be lost on the way.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
import pytest
from aiokafka import AIOKafkaConsumer

from kip848_client.core.wire.messages.groups import DescribeGroupsRequest
from tests.integration.cluster import Cluster, eventually

confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(180), pytest.mark.foreign]

PARTITIONS = 6
EVERYTHING = list(range(PARTITIONS))
CLASSIC, CONSUMER = 0, 1
Place = tuple[int, int]  # partition, offset


class Worker:
    """A member, whatever its protocol: reads what it is given, and commits now and then."""

    def __init__(self) -> None:
        self.seen: set[Place] = set()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Go to work in the background."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        raise NotImplementedError

    async def stop(self) -> None:
        """Leave the group in order."""
        raise NotImplementedError

    def owned(self) -> list[int]:
        """The partitions that it thinks are its own. Raises what ended its work."""
        assert self._task is not None
        if self._task.done():
            self._task.result()
        return self._partitions()

    def _partitions(self) -> list[int]:
        raise NotImplementedError


class PythonWorker(Worker):
    """Our own consumer and aiokafka's have what is needed here in common."""

    def __init__(self, consumer: Any) -> None:
        super().__init__()
        self._consumer = consumer

    async def start(self) -> None:
        await self._consumer.start()
        await super().start()

    async def _work(self) -> None:
        while True:
            batches = await self._consumer.getmany(timeout_ms=100, max_records=50)
            self.seen |= {(r.partition, r.offset) for each in batches.values() for r in each}

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.stop()

    def _partitions(self) -> list[int]:
        return [each.partition for each in self._consumer.assignment()]


def new_worker(cluster: Cluster, topic: str, group: str) -> Worker:
    """A member of the new protocol: our own consumer."""
    return PythonWorker(cluster.consumer(topic, group=group, auto_commit_interval_ms=200))


def aiokafka_worker(cluster: Cluster, topic: str, group: str) -> Worker:
    """A classic member that gives everything up in every rebalance."""
    return PythonWorker(
        AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=200,
            heartbeat_interval_ms=150,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=15_000,
        )
    )


class LibrdkafkaWorker(Worker):
    """A classic member in a thread."""

    def __init__(self, cluster: Cluster, topic: str, group: str, *, strategy: str) -> None:
        super().__init__()
        self._topic = topic
        self._owned: list[int] = []
        self._stopping = threading.Event()
        self._settings = {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "group.protocol": "classic",
            "partition.assignment.strategy": strategy,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            "heartbeat.interval.ms": 150,
            "session.timeout.ms": 10_000,
            "max.poll.interval.ms": 15_000,
        }

    async def _work(self) -> None:
        await anyio.to_thread.run_sync(self._consume)

    def _consume(self) -> None:
        consumer = confluent.Consumer(self._settings)
        consumer.subscribe([self._topic])
        while not self._stopping.is_set():
            for message in consumer.consume(50, timeout=0.1):
                if message.error() is None:
                    self.seen.add((message.partition(), message.offset()))
            self._owned = [each.partition for each in consumer.assignment()]
        consumer.close()

    async def stop(self) -> None:
        assert self._task is not None
        self._stopping.set()
        await self._task

    def _partitions(self) -> list[int]:
        return list(self._owned)


def eager_librdkafka(cluster: Cluster, topic: str, group: str) -> Worker:
    """librdkafka with an assignor that keeps nothing."""
    return LibrdkafkaWorker(cluster, topic, group, strategy="range")


def cooperative_librdkafka(cluster: Cluster, topic: str, group: str) -> Worker:
    """librdkafka giving up only what it must. Its sticky assignors write user data into the
    assignments, and brokers do not upgrade a classic group that has such: it can join later."""
    return LibrdkafkaWorker(cluster, topic, group, strategy="cooperative-sticky")


WorkerType = Callable[[Cluster, str, str], Worker]


class Members:
    """The members of a group and all that was ever read."""

    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        self._cluster, self._topic, self._group = cluster, topic, group
        self.at_work: list[Worker] = []
        self.ever: list[Worker] = []

    async def hire(self, kind: WorkerType) -> Worker:
        worker = kind(self._cluster, self._topic, self._group)
        self.ever.append(worker)
        await worker.start()
        self.at_work.append(worker)
        return worker

    async def release(self, worker: Worker) -> None:
        self.at_work.remove(worker)
        await worker.stop()

    async def close(self) -> None:
        for worker in list(self.at_work):
            await self.release(worker)

    @property
    def seen(self) -> set[Place]:
        return set[Place]().union(*(worker.seen for worker in self.ever))

    async def settled(self, *types: int) -> None:
        """Return once all partitions are shared among members of these types, and the broker
        thinks so, too; no types stand for a classic group."""

        async def shared() -> bool:
            owned = sorted(each for worker in self.at_work for each in worker.owned())
            return owned == EVERYTHING and await self._types() == sorted(types)

        await eventually(shared)

    async def _types(self) -> list[int] | None:
        """The types of a stable group's members."""
        described = await self._cluster.describe(self._group)
        if described.error_code:
            request = DescribeGroupsRequest(groups=(self._group,))
            classic = (await self._cluster.ask(request, (5, 5))).groups[0]
            stable = classic.group_state == "Stable"
            return [] if stable and len(classic.members) == len(self.at_work) else None
        if described.group_state != "Stable":
            return None
        return sorted(each.member_type for each in described.members)


@asynccontextmanager
async def steady_production(cluster: Cluster, topic: str) -> AsyncGenerator[dict[int, int]]:
    """Writes records all the time; partition -> how many so far."""
    counts = dict.fromkeys(EVERYTHING, 0)

    async def write(producer: Any) -> None:
        while True:
            for partition in EVERYTHING:
                await producer.send_and_wait(topic, b"x", partition=partition)
                counts[partition] += 1
            await asyncio.sleep(0.02)

    async with cluster.producer() as producer:
        task = asyncio.get_running_loop().create_task(write(producer))
        try:
            yield counts
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("old", "again"),
    [(aiokafka_worker, aiokafka_worker), (eager_librdkafka, cooperative_librdkafka)],
    ids=["aiokafka", "librdkafka"],
)
async def test_a_rolling_upgrade_and_back_loses_nothing(
    cluster: Cluster, old: WorkerType, again: WorkerType
) -> None:
    topic, group = cluster.unique("orders"), cluster.unique("g")
    await cluster.create_topic(topic, PARTITIONS)
    await cluster.fast_group(group)
    members = Members(cluster, topic, group)
    try:
        async with steady_production(cluster, topic) as counts:
            first, second = await members.hire(old), await members.hire(old)
            await members.settled()

            third = await members.hire(new_worker)
            await members.settled(CLASSIC, CLASSIC, CONSUMER)
            await members.release(first)
            await members.settled(CLASSIC, CONSUMER)
            fourth = await members.hire(new_worker)
            await members.settled(CLASSIC, CONSUMER, CONSUMER)
            await members.release(second)
            await members.settled(CONSUMER, CONSUMER)

            await members.hire(again)
            await members.settled(CLASSIC, CONSUMER, CONSUMER)
            await members.release(third)
            await members.settled(CLASSIC, CONSUMER)
            await members.hire(again)
            await members.settled(CLASSIC, CLASSIC, CONSUMER)
            await members.release(fourth)
            await members.settled()
        written = {
            (partition, offset) for partition, count in counts.items() for offset in range(count)
        }
        await eventually(lambda: members.seen >= written)
        assert min(counts.values()) > 0
    finally:
        await members.close()

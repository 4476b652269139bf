"""The producer among three brokers: leaders and coordinators move, brokers stop and die, and every
record is written once and in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from kip848_client import Consumer, Producer, RecordMetadata
from mock_coordinator import MockCluster
from mock_coordinator.core.faults import Fault, Match, MoveCoordinator
from tests.integration.cluster import eventually
from tests.support.plain_message import message

pytestmark = pytest.mark.asyncio

PARTITIONS: Final = 6
ROUND: Final = 60
ID: Final = "tx"
GROUP: Final = "g"
NEXT: Final = {1: 2, 2: 3, 3: 1}

CONFIG: Final = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}

Futures = list["asyncio.Future[RecordMetadata]"]


@asynccontextmanager
async def three_brokers(profile: str = "4.4") -> AsyncGenerator[MockCluster]:
    async with MockCluster({"t": PARTITIONS}, profile=profile, config=CONFIG) as cluster:
        yield cluster


def a_producer(cluster: MockCluster, **settings: Any) -> Producer[Any, Any]:
    return Producer(bootstrap_servers=cluster.bootstrap, linger_ms=1, **settings)


def move_leaders(cluster: MockCluster) -> None:
    """Each to the next broker."""
    for partition in range(PARTITIONS):
        leader = cluster.leader_of("t", partition)
        assert leader is not None
        cluster.move_leader("t", partition, NEXT[leader])


async def send(producer: Producer[Any, Any], numbers: Sequence[int]) -> Futures:
    return [
        await producer.send("t", b"%d" % number, partition=number % PARTITIONS)
        for number in numbers
    ]


def is_whole(cluster: MockCluster, count: int) -> bool:
    """Whether the numbers below ``count`` are written, each once and in order."""
    written = [
        [int(record.value or b"") for record in cluster.records("t", partition)]
        for partition in range(PARTITIONS)
    ]
    return written == [list(range(each, count, PARTITIONS)) for each in range(PARTITIONS)]


async def test_leaders_that_move_all_the_time() -> None:
    async with three_brokers() as cluster, a_producer(cluster) as producer:
        futures: Futures = []
        for begin in range(0, 15 * ROUND, ROUND):
            futures += await send(producer, range(begin, begin + ROUND))
            move_leaders(cluster)
            await asyncio.sleep(0.01)
        await asyncio.gather(*futures)
        assert is_whole(cluster, 15 * ROUND)


async def test_a_rolling_restart() -> None:
    async with three_brokers() as cluster, a_producer(cluster) as producer:
        futures = await send(producer, range(ROUND))
        for node_id in (1, 2, 3):
            futures += await send(producer, range(len(futures), len(futures) + ROUND))
            await cluster.stop_broker(node_id)
            futures += await send(producer, range(len(futures), len(futures) + ROUND))
            await asyncio.gather(*futures)
            await cluster.start_broker(node_id)
        assert is_whole(cluster, len(futures))


async def test_a_broker_that_dies() -> None:
    async with three_brokers() as cluster, a_producer(cluster) as producer:
        futures = await send(producer, range(ROUND))
        await cluster.crash_broker(2, noticed_after_ms=1_000)
        futures += await send(producer, range(ROUND, 2 * ROUND))
        await asyncio.gather(*futures)
        assert is_whole(cluster, 2 * ROUND)


@pytest.mark.parametrize("api", ["InitProducerId", "TxnOffsetCommit", "EndTxn"])
@pytest.mark.parametrize("profile", ["4.0", "4.4"])
async def test_coordinators_that_move_under_each_request(profile: str, api: str) -> None:
    async with three_brokers(profile) as cluster:
        cluster.produce("t", b"in")
        cluster.faults.add(Fault(MoveCoordinator(), Match(api=api), times=3))
        consumer: Consumer[Any, Any] = Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        async with consumer, a_producer(cluster, transactional_id=ID) as producer:
            record = await consumer.getone()
            async with producer.transaction() as txn:
                await txn.send("t", b"out", partition=1)
                await txn.send_offsets(consumer)
            assert cluster.faults.hits
            assert await consumer.committed((record.topic, record.partition)) == 1
        assert [each.value for each in cluster.records("t", 1) if each.value == b"out"] == [b"out"]


async def test_everything_moves_within_transactions() -> None:
    async with three_brokers() as cluster:
        async with a_producer(cluster, transactional_id=ID) as producer:
            for begin in range(0, 6 * ROUND, ROUND):
                async with producer.transaction() as txn:
                    for number in range(begin, begin + ROUND):
                        await txn.send("t", b"%d" % number, partition=number % PARTITIONS)
                    move_leaders(cluster)
                    moved = cluster.transaction_coordinator_of(ID)
                    assert moved is not None
                    cluster.move_transaction_coordinator(ID, NEXT[moved])
                    await producer.flush()
                    move_leaders(cluster)
        assert is_whole(cluster, 6 * ROUND)


async def test_partitions_without_a_leader_are_left_out_until_they_have_one() -> None:
    """A partitioner of the user's is told which partitions can be written to; without one, records
    without a key go where they can."""
    async with three_brokers() as cluster:
        alone = {
            "name": "alone",
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [
                {"partition_index": number, "broker_ids": [number + 1]} for number in range(3)
            ],
        }
        with cluster.connect(node_id=1) as admin:
            answer = admin.ask(message("CreateTopics", topics=[alone]), 7)
        assert answer.topics[0].error_code == 0, answer
        told: list[tuple[list[int], list[int]]] = []

        def first(key: bytes | None, every: list[int], available: list[int]) -> int:
            told.append((list(every), list(available)))
            every.clear()  # they are the partitioner's
            return available.pop(0)

        await cluster.stop_broker(1)
        places: set[int] = set()
        async with (
            a_producer(cluster, max_batch_size=1) as ours,
            a_producer(cluster, partitioner=first) as theirs,
        ):
            assert (await theirs.send_and_wait("alone", b"1")).partition == 1
            assert told == [([0, 1, 2], [1, 2])]
            for number in range(20):
                places.add((await ours.send_and_wait("alone", b"%d" % number)).partition)
            assert places == {1, 2}
            await cluster.start_broker(1)

            async def is_back() -> bool:
                return (await theirs.send_and_wait("alone", b"2")).partition == 0

            await eventually(is_back)

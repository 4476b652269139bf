"""What fetching by our own core is for, seen from outside: replicas nearby, sessions, epochs, a new
beginning."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from kip848_client import Consumer, TopicPartition
from kip848_client.core.wire.messages.fetch import FetchRequest
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator import MockBroker, MockCluster
from mock_coordinator.core.faults import faults_from_json
from tests.integration.cluster import eventually, polling
from tests.support.real_kafka import FAST_CONFIGS

pytestmark = pytest.mark.asyncio

TP = TopicPartition("t", 0)


def fetches(broker: MockBroker | MockCluster) -> list[FetchRequest]:
    return [
        each.request for each in broker.requests("Fetch") if isinstance(each.request, FetchRequest)
    ]


async def test_records_come_from_the_replica_in_our_rack() -> None:
    config = {
        **FAST_CONFIGS,
        "default.replication.factor": "3",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }
    racks = ("r1", "r2", "r3")
    async with MockCluster({"t": 1}, brokers=3, racks=racks, config=config) as cluster:
        leader = cluster.leader_of("t", 0)
        assert leader is not None
        mine = leader % 3 + 1
        cluster.produce("t", b"0")
        consumer = Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap,
            group_id="g",
            client_rack=f"r{mine}",
            auto_offset_reset="earliest",
        )
        async with consumer, polling(consumer) as seen:
            await eventually(lambda: len(seen) == 1)
            engine = consumer._engine
            assert engine is not None
            links = engine.transport._fetch_links._links
            asked = {port for (_, port), link in links.items() if link.is_open}
            assert asked == {each.port for each in cluster.nodes if each.node_id in (leader, mine)}
            cluster.produce("t", b"1")
            await eventually(lambda: len(seen) == 2)
            assert len({each.connection for each in cluster.requests("Fetch")}) == 2


async def test_a_session_says_only_what_changed_and_is_closed_at_the_end() -> None:
    async with MockBroker({"t": 50}, config=FAST_CONFIGS) as broker:
        consumer = Consumer(
            "t", bootstrap_servers=broker.bootstrap, group_id="g", fetch_max_wait_ms=20
        )
        async with consumer, polling(consumer):
            await consumer.wait_assigned(10_000)
            await eventually(lambda: len(fetches(broker)) > 5 and not fetches(broker)[-1].topics)
            assert fetches(broker)[-1].session_epoch > 1
            assert sum(len(each.topics) for each in fetches(broker)) <= 3
        assert (fetches(broker)[-1].session_epoch, fetches(broker)[-1].topics) == (-1, ())


async def test_commits_carry_the_leader_epoch() -> None:
    async with MockCluster({"t": 1}, brokers=2, config=FAST_CONFIGS) as cluster:
        cluster.produce("t", b"0")
        cluster.move_leader("t", 0, 3 - (cluster.leader_of("t", 0) or 0))
        cluster.produce("t", b"1")
        consumer = Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        epochs: list[int] = []
        async with consumer:
            for _ in range(2):
                record = await asyncio.wait_for(consumer.getone(), 10)
                await consumer.commit()
                await consumer.commit({TP: record.offset + 1})
        for each in cluster.requests("OffsetCommit"):
            assert isinstance(each.request, OffsetCommitRequest)
            (row,) = each.request.topics[0].partitions
            epochs.append(row.committed_leader_epoch)
        assert epochs == [0, 0, 1, 1]


async def test_a_broker_may_send_the_client_back_to_its_bootstrap_servers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "kip848_client")
    faults = [
        {
            "match": {"api": "Metadata"},
            "nth": 4,
            "answer": {"error_code": int(ErrorCode.REBOOTSTRAP_REQUIRED)},
        }
    ]
    async with MockBroker({"t": 1}, config=FAST_CONFIGS) as broker:
        broker.faults.add(*faults_from_json(json.dumps(faults)))
        broker.produce("t", b"0")
        consumer = Consumer(
            "t",
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            metadata_max_age_ms=50,
        )
        async with consumer, polling(consumer) as seen:
            await eventually(lambda: "starts over" in caplog.text)
            broker.produce("t", b"1")
            await eventually(lambda: [each.value for each in seen] == [b"0", b"1"])
            assert await consumer.commit() != {}

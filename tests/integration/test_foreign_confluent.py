"""confluent-kafka (librdkafka) against our broker: a KIP-848 group from beginning to end."""

from __future__ import annotations

from functools import partial

import anyio.to_thread
import pytest

from mock_coordinator import MockBroker
from tests.support.polled_members import ConfluentMember, life_of_a_group, poll_until

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

pytestmark = [pytest.mark.foreign, pytest.mark.asyncio]

FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}
PROFILES = ("4.0", "4.4")
PATIENCE_S = 15.0


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_consumer_group_from_join_to_leave(profile: str) -> None:
    async with MockBroker({"orders": 4}, profile=profile, config=FAST) as broker:
        for partition in range(4):
            broker.produce("orders", *(b"%d" % i for i in range(10)), partition=partition)
        story = life_of_a_group(
            partial(ConfluentMember, group_protocol="consumer"), broker.bootstrap
        )

        async def step() -> str:
            return await anyio.to_thread.run_sync(next, story)

        assert await step() == "consumed and committed"
        group = broker.snapshot("g")
        assert group is not None
        assert len(group.members) == 1
        assert await step() == "two members"
        group = broker.snapshot("g")
        assert group is not None
        assert len(group.members) == 2
        assert await anyio.to_thread.run_sync(describe_group, broker.bootstrap, "g") == "STABLE"
        assert await step() == "the second took over"
        for partition in range(4):
            broker.produce("orders", b"late-%d" % partition, partition=partition)
        assert await step() == "both left"
        group = broker.snapshot("g")
        assert group is not None
        assert not group.members
        assert not broker.requests("JoinGroup")  # it was the new protocol all the way


def use_admin_and_producer(bootstrap: str) -> dict[str, int]:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewPartitions, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic("made", 2, 1)]).values():
        future.result(PATIENCE_S)
    for future in admin.create_partitions([NewPartitions("made", 3)]).values():
        future.result(PATIENCE_S)
    settings = {"enable.idempotence": True, "compression.type": "lz4", "linger.ms": 5}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for i in range(100):
        producer.produce("made", value=b"%d" % i, partition=i % 3)
    assert producer.flush(PATIENCE_S) == 0
    groups = admin.list_consumer_groups().result(PATIENCE_S)
    assert groups.errors == []
    found = admin.list_topics(timeout=PATIENCE_S).topics
    return {name: len(topic.partitions) for name, topic in found.items()}


async def test_the_admin_client_and_the_idempotent_producer() -> None:
    async with MockBroker() as broker:
        topics = await anyio.to_thread.run_sync(use_admin_and_producer, broker.bootstrap)
        assert topics["made"] == 3
        values = sorted(int(r.value or b"") for r in broker.records("made"))
        assert values == list(range(100))
        assert broker.requests("InitProducerId"), "the producer was not idempotent"


def describe_group(bootstrap: str, group_id: str) -> str:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    described = admin.describe_consumer_groups([group_id], request_timeout=PATIENCE_S)
    return str(described[group_id].result(PATIENCE_S).state.name)


async def test_an_empty_group_is_described() -> None:
    async with MockBroker({"orders": 4}, config=FAST) as broker:

        def join_and_leave() -> None:
            member = ConfluentMember(broker.bootstrap, group_protocol="consumer")
            poll_until(lambda: bool(member.partitions()), member)
            member.close()

        await anyio.to_thread.run_sync(join_and_leave)
        assert await anyio.to_thread.run_sync(describe_group, broker.bootstrap, "g") == "EMPTY"

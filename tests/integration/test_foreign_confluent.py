"""confluent-kafka (librdkafka) against our broker: a KIP-848 group from beginning to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import anyio.to_thread
import pytest

from mock_coordinator import MockBroker

confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

pytestmark = [pytest.mark.foreign, pytest.mark.asyncio]

FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}
PROFILES = ("4.0", "4.4")
PATIENCE_S = 15.0


class Member:
    """A consumer of group ``g``, polled by whoever calls it."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.values: list[bytes] = []
        self._consumer = confluent.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "group.id": "g",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe(["orders"])

    def poll(self) -> None:
        message = self._consumer.poll(0.05)
        if message is not None:
            assert message.error() is None, message.error()
            self.values.append(message.value())

    def partitions(self) -> list[int]:
        return sorted(p.partition for p in self._consumer.assignment())

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def committed(self) -> list[int]:
        wanted = [confluent.TopicPartition("orders", p) for p in range(4)]
        return [p.offset for p in self._consumer.committed(wanted, timeout=PATIENCE_S)]

    def close(self) -> None:
        self._consumer.close()


def poll_until(condition: Callable[[], bool], *members: Member) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up, "the group did not get there in time"
        for member in members:
            member.poll()


def life_of_a_group(bootstrap: str) -> Iterator[str]:
    """The story, one step a yield; what the broker should then look like is checked outside."""
    first = Member(bootstrap, "first")
    poll_until(lambda: len(first.values) == 40, first)
    assert first.partitions() == [0, 1, 2, 3]
    first.commit()
    assert first.committed() == [10, 10, 10, 10]
    yield "consumed and committed"
    second = Member(bootstrap, "second")
    poll_until(
        lambda: len(first.partitions()) == 2 and len(second.partitions()) == 2, first, second
    )
    assert sorted(first.partitions() + second.partitions()) == [0, 1, 2, 3]
    yield "two members"
    first.close()
    poll_until(lambda: second.partitions() == [0, 1, 2, 3], second)
    yield "the second took over"
    poll_until(lambda: len(second.values) == 4, second)
    assert sorted(second.values) == [b"late-0", b"late-1", b"late-2", b"late-3"]
    second.close()
    yield "both left"


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_consumer_group_from_join_to_leave(profile: str) -> None:
    async with MockBroker({"orders": 4}, profile=profile, config=FAST) as broker:
        for partition in range(4):
            broker.produce("orders", *(b"%d" % i for i in range(10)), partition=partition)
        story = life_of_a_group(broker.bootstrap)

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
            member = Member(broker.bootstrap, "only")
            poll_until(lambda: bool(member.partitions()), member)
            member.close()

        await anyio.to_thread.run_sync(join_and_leave)
        assert await anyio.to_thread.run_sync(describe_group, broker.bootstrap, "g") == "EMPTY"

"""Today's clients in classic groups of our broker: join, consume, commit, rebalance, leave.

aiokafka and kafka-python know nothing else; librdkafka is asked for it by ``group.protocol``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition

from kip848_client.core.wire.messages.groups import DescribeGroupsRequest
from mock_coordinator import MockBroker
from mock_coordinator.core.groups.classic.snapshot import ClassicSnapshot
from tests.support.kafka_tools import CONSOLE_CONSUMER, CONSUMER_GROUPS, run_tool
from tests.support.polled_members import ConfluentMember, Member, life_of_a_group
from tests.support.pytest_kafka import skip_without_kafka

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

pytestmark = [pytest.mark.foreign, pytest.mark.asyncio]

# kafka-python 3 reads its schemas with a function that Python 3.11 deprecates and 3.13 keeps
tolerant = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PROFILES = ("4.0", "4.4")
FAST = {"group.initial.rebalance.delay.ms": "100"}
PATIENCE_S = 20.0


def classic(broker: MockBroker) -> ClassicSnapshot:
    """The group ``g``, which must be a classic one."""
    group = broker.snapshot("g")
    assert group is not None
    assert group.classic is not None
    return group.classic


def is_stable(broker: MockBroker, members: int) -> bool:
    """Whether the group is Stable with so many members."""
    group = broker.snapshot("g")
    if group is None or group.classic is None:
        return False
    return group.state == "Stable" and len(group.classic.members) == members


def fill(broker: MockBroker, partitions: int, each: int) -> None:
    for partition in range(partitions):
        broker.produce("orders", *(b"%d" % i for i in range(each)), partition=partition)


# -- aiokafka --------------------------------------------------------------------------------------


def aiokafka_member(broker: MockBroker, **options: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=100,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=15_000,
        **options,
    )


def owned_by(members: Sequence[AIOKafkaConsumer]) -> list[int]:
    return sorted(part.partition for member in members for part in member.assignment())


async def until(condition: Callable[[], bool]) -> None:
    """Look again and again; clients move on their own tasks."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nothing signals what is waited for
            await anyio.sleep(0.02)


async def settled(
    broker: MockBroker, members: Sequence[AIOKafkaConsumer], partitions: int = 8
) -> None:
    """Return once the members have all partitions among them, and the broker agrees."""
    everything = list(range(partitions))
    await until(lambda: is_stable(broker, len(members)) and owned_by(members) == everything)


async def consume(members: Sequence[AIOKafkaConsumer], count: int) -> Counter[tuple[int, int]]:
    """Read so many records with all members."""
    got: Counter[tuple[int, int]] = Counter()
    async with asyncio.timeout(PATIENCE_S):
        while got.total() < count:
            for member in members:
                batches = await member.getmany(timeout_ms=50)
                for part, records in batches.items():
                    got.update((part.partition, record.offset) for record in records)
    return got


@pytest.mark.parametrize("profile", PROFILES)
async def test_aiokafka_from_join_to_leave(profile: str) -> None:
    async with MockBroker({"orders": 32}, profile=profile, config=FAST) as broker:
        fill(broker, 32, 5)
        first = aiokafka_member(broker, client_id="first")
        await first.start()
        members = [first]
        try:
            assert (await consume(members, 160)).total() == 160
            await first.commit()
            for size in (2, 8, 32):
                new = [aiokafka_member(broker) for _ in range(size - len(members))]
                members += new
                await asyncio.gather(*(each.start() for each in new))
                await settled(broker, members, 32)
                assert {len(each.assignment()) for each in members} == {32 // size}
            parts = [TopicPartition("orders", partition) for partition in range(32)]
            assert [await members[-1].committed(part) for part in parts] == [5] * 32
            fill(broker, 32, 2)
            late = await consume(members, 64)
            assert set(late.values()) == {1}
            await asyncio.gather(*(each.commit() for each in members))
            assert classic(broker).protocol_type == "consumer"
            described = broker_view(broker)
            assert len(described.members) == 32
            await asyncio.gather(*(members.pop().stop() for _ in range(31)))
            await settled(broker, members, 32)
        finally:
            await asyncio.gather(*(each.stop() for each in members))
        assert not classic(broker).members
        group = broker.snapshot("g")
        assert group is not None
        assert {value.offset for value in group.offsets["orders"].values()} == {7}


def broker_view(broker: MockBroker) -> Any:
    """The group as DescribeGroups shows it."""
    connection = broker.connect()
    answer = connection.ask(DescribeGroupsRequest(groups=("g",)), 6)
    connection.close()
    return answer.groups[0]


async def test_an_aiokafka_member_that_is_lost_makes_room() -> None:
    """No LeaveGroup: the session ends, and the others take over."""
    config = {**FAST, "group.min.session.timeout.ms": "500"}
    async with MockBroker({"orders": 4}, config=config) as broker:
        members = [aiokafka_member(broker), aiokafka_member(broker)]
        await asyncio.gather(*(each.start() for each in members))
        try:
            await broker.wait_for(lambda: is_stable(broker, 2), PATIENCE_S)
            await until(lambda: owned_by(members) == [0, 1, 2, 3])
            broker.driver.restart()  # connections are lost, sessions begin anew, nobody has left
            await until(lambda: is_stable(broker, 2) and owned_by(members) == [0, 1, 2, 3])
            fill(broker, 4, 3)
            assert set((await consume(members, 12)).values()) == {1}
        finally:
            await asyncio.gather(*(each.stop() for each in members))


# -- clients with threads of their own -------------------------------------------------------------


def classic_confluent_member(bootstrap: str) -> Member:
    """librdkafka's consumer with the classic protocol."""
    return ConfluentMember(
        bootstrap,
        group_protocol="classic",
        partition_assignment_strategy="cooperative-sticky",
        heartbeat_interval_ms=100,
        session_timeout_ms=10_000,
    )


class KafkaPythonMember:
    """kafka-python's consumer."""

    def __init__(self, bootstrap: str) -> None:
        from kafka import KafkaConsumer

        self.values: list[bytes] = []
        self._consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            session_timeout_ms=10_000,
        )

    def poll(self) -> None:
        for records in self._consumer.poll(timeout_ms=50).values():
            self.values += [record.value for record in records]

    def partitions(self) -> list[int]:
        return sorted(part.partition for part in self._consumer.assignment())

    def commit(self) -> None:
        self._consumer.commit()

    def committed(self) -> list[int]:
        from kafka.structs import TopicPartition as KafkaPartition

        wanted = [KafkaPartition("orders", partition) for partition in range(4)]
        return [self._consumer.committed(part) or 0 for part in wanted]

    def close(self) -> None:
        self._consumer.close()


@tolerant
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("make", [classic_confluent_member, KafkaPythonMember])
async def test_a_classic_group_from_join_to_leave(
    make: Callable[[str], Member], profile: str
) -> None:
    async with MockBroker({"orders": 4}, profile=profile, config=FAST) as broker:
        fill(broker, 4, 10)
        story = life_of_a_group(make, broker.bootstrap)

        async def step() -> str:
            return await anyio.to_thread.run_sync(next, story)

        assert await step() == "consumed and committed"
        assert is_stable(broker, 1)
        assert await step() == "two members"
        assert is_stable(broker, 2)
        described = broker_view(broker)
        assert (described.error_code, described.group_state) == (0, "Stable")
        assert all(member.member_assignment for member in described.members)
        assert await step() == "the second took over"
        for partition in range(4):
            broker.produce("orders", b"late-%d" % partition, partition=partition)
        assert await step() == "both left"
        assert not classic(broker).members
        assert not broker.requests("ConsumerGroupHeartbeat")  # it was the classic protocol


# -- Java ------------------------------------------------------------------------------------------


@pytest.mark.real_kafka
@pytest.mark.parametrize("profile", PROFILES)
async def test_javas_console_consumer_and_group_command(profile: str) -> None:
    async def tool(main_class: str, *arguments: str) -> str:
        def call() -> str:
            with skip_without_kafka():
                return run_tool(main_class, *arguments)

        return await anyio.to_thread.run_sync(call)

    async with MockBroker({"orders": 4}, profile=profile, config=FAST) as broker:
        fill(broker, 4, 10)
        at = ("--bootstrap-server", broker.bootstrap)
        printed = await tool(
            CONSOLE_CONSUMER,
            *at,
            *("--topic", "orders", "--group", "g", "--from-beginning", "--max-messages", "40"),
            *("--timeout-ms", "30000", "--command-property", "group.protocol=classic"),
        )
        assert len(printed.split()) == 40
        assert broker.requests("JoinGroup")
        assert not classic(broker).members, "the console consumer leaves its group"
        member = aiokafka_member(broker, client_id="somebody")
        await member.start()
        try:
            await broker.wait_for(lambda: is_stable(broker, 1), PATIENCE_S)
            group = (CONSUMER_GROUPS, *at, "--describe", "--group", "g")
            assert await tool(*group) != ""
            members = await tool(*group, "--members", "--verbose")
            assert "somebody" in members
            assert "orders" in members
            state = await tool(*group, "--state")
            assert "roundrobin" in state
            assert "Stable" in state
        finally:
            await member.stop()
        assert "g" in await tool(CONSUMER_GROUPS, *at, "--list", "--type", "classic")
        await tool(
            CONSUMER_GROUPS,
            *at,
            *("--group", "g", "--reset-offsets", "--to-earliest", "--all-topics", "--execute"),
        )
        snapshot = broker.snapshot("g")
        assert snapshot is not None
        assert {each.offset for each in snapshot.offsets["orders"].values()} == {0}
        await tool(CONSUMER_GROUPS, *at, "--group", "g", "--delete")
        assert broker.snapshot("g") is None

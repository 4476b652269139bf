"""Client-side assignors over TCP: a member computes what the group consumes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kip848_client import Consumer, ProtocolUnsupported, TopicPartition
from kip848_client.client_assignors import (
    ASSIGNOR_FAILED,
    AssignorMetadata,
    ClientAssignor,
    GroupAssignment,
    GroupMember,
    GroupTopic,
    MemberAssignment,
    NewAssignment,
)
from mock_coordinator import MockBroker

pytestmark = pytest.mark.asyncio

FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}
Members = Mapping[str, GroupMember]
Topics = Mapping[str, GroupTopic]


class ByCapacity:
    """Gives each member as many partitions as its share of the capacity."""

    name = "by-capacity"
    minimum_version = 0
    maximum_version = 1

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.computed = 0
        self.told: list[NewAssignment] = []

    def metadata(self) -> AssignorMetadata:
        return AssignorMetadata(str(self.capacity).encode())

    def assign(self, members: Members, topics: Topics) -> GroupAssignment:
        self.computed += 1
        capacity = {each: int(member.metadata.data) for each, member in members.items()}
        given: dict[str, list[TopicPartition]] = {each: [] for each in members}
        for name, topic in topics.items():
            for tp in topic.partitions(name):
                neediest = min(given, key=lambda each: (len(given[each]) + 1) / capacity[each])
                given[neediest].append(tp)
        return GroupAssignment(
            {
                each: MemberAssignment(partitions, f"{len(partitions)} of them".encode())
                for each, partitions in given.items()
            }
        )

    def on_assignment(self, assignment: NewAssignment) -> None:
        self.told.append(assignment)


class Group:
    """Consumers of one group that ask for records all the time."""

    def __init__(self, broker: MockBroker) -> None:
        self.broker = broker
        self._stack = AsyncExitStack()
        self.consumers: list[Consumer[Any, Any]] = []

    async def __aenter__(self) -> Group:
        await self._stack.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.aclose()

    async def join(self, *assignors: ClientAssignor, **settings: Any) -> Consumer[Any, Any]:
        consumer: Consumer[Any, Any] = Consumer(
            "t",
            bootstrap_servers=self.broker.bootstrap,
            group_id="g",
            group_local_assignors=assignors,
            **settings,
        )
        await self._stack.enter_async_context(consumer)
        task = asyncio.create_task(_read(consumer))
        self._stack.callback(task.cancel)
        self.consumers.append(consumer)
        return consumer

    async def shared(self, *sizes: int) -> None:
        """Wait until the members have so many partitions, in the order in which they joined."""
        await self.broker.wait_for(
            lambda: [len(each.assignment()) for each in self.consumers] == list(sizes)
        )


async def _read(consumer: Consumer[Any, Any]) -> None:
    async for _ in consumer:
        pass


async def test_three_consumers_share_by_capacity() -> None:
    async with (
        MockBroker(topics={"t": 12}, config=FAST) as broker,
        Group(broker) as group,
    ):
        small, middle, large = ByCapacity(1), ByCapacity(2), ByCapacity(3)
        await group.join(small)
        await group.shared(12)
        await group.join(middle)
        await group.shared(4, 8)
        await group.join(large)
        await group.shared(2, 4, 6)
        assert small.computed + middle.computed + large.computed == 3
        assert [each.told[-1].data for each in (small, middle, large)] == [
            b"2 of them",
            b"4 of them",
            b"6 of them",
        ]
        told = [set(each.told[-1].partitions) for each in (small, middle, large)]
        assert told == [set(each.assignment()) for each in group.consumers]


async def test_a_member_that_says_something_new_is_heard() -> None:
    async with MockBroker(topics={"t": 12}, config=FAST) as broker, Group(broker) as group:
        one, other = ByCapacity(1), ByCapacity(1)
        await group.join(one)
        await group.join(other)
        await group.shared(6, 6)
        other.capacity = 5
        await group.shared(2, 10)


class Broken(ByCapacity):
    """Fails in its own way when it computes, unless it is alone."""

    def __init__(self, how: str) -> None:
        super().__init__(1)
        self.how = how

    def assign(self, members: Members, topics: Topics) -> Any:
        good = super().assign(members, topics)
        if len(members) == 1:
            return good
        first, second = sorted(good.members)
        match self.how:
            case "raises":
                raise ZeroDivisionError("no capacity")
            case "exits":
                raise SystemExit(3)
            case "no assignment":
                return dict(good.members)
            case "a partition twice":
                return GroupAssignment({**good.members, first: good.members[second]})
            case "nobody has one":
                return GroupAssignment({first: good.members[first]})
            case "unknown topic":
                strange = MemberAssignment([TopicPartition("zzz", 0)])
                return GroupAssignment({first: strange})
            case "unknown member":
                return GroupAssignment({**good.members, "nobody": MemberAssignment()})
            case "unreadable version":
                return GroupAssignment({**good.members, first: MemberAssignment((), b"", 9)})
            case _:
                raise AssertionError(self.how)


HOWS = (
    "raises",
    "exits",
    "no assignment",
    "a partition twice",
    "nobody has one",
    "unknown topic",
    "unknown member",
    "unreadable version",
)


@pytest.mark.parametrize("how", HOWS)
async def test_another_member_computes_where_one_fails(how: str) -> None:
    async with MockBroker(topics={"t": 4}, config=FAST) as broker, Group(broker) as group:
        broken, sound = Broken(how), ByCapacity(1)
        await group.join(broken)
        await group.shared(4)
        await group.join(sound)
        await group.shared(2, 2)
        assert (broken.computed, sound.computed) == (2, 1)
        assert [each.error for each in broken.told + sound.told] == [0] * len(
            broken.told + sound.told
        )


async def test_where_all_fail_the_group_keeps_what_it_has_and_is_told() -> None:
    async with MockBroker(topics={"t": 4}, config=FAST) as broker, Group(broker) as group:
        first, second = Broken("raises"), Broken("raises")
        await group.join(first)
        await group.shared(4)
        await group.join(second)
        await broker.wait_for(lambda: bool(second.told) and second.told[-1].error != 0)
        assert second.told[-1].error == ASSIGNOR_FAILED
        await broker.wait_for(lambda: first.told[-1].error == ASSIGNOR_FAILED)
        await group.shared(4, 0)


async def test_a_broker_without_them_is_named_at_the_start() -> None:
    async with MockBroker(topics={"t": 4}, draft_protocols=False) as broker:
        consumer: Consumer[Any, Any] = Consumer(
            "t",
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            group_local_assignors=[ByCapacity(1)],
        )
        with pytest.raises(ProtocolUnsupported, match="leave group_local_assignors away"):
            await consumer.start()

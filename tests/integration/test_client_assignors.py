"""Client-side assignors over TCP: a member computes what the group consumes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kip848_client import Consumer, ProtocolUnsupported, TopicPartition
from kip848_client.core.client_assignors import (
    ASSIGNOR_FAILED,
    AssignorMetadata,
    ClientAssignor,
    GroupAssignment,
    GroupMember,
    GroupTopic,
    MemberAssignment,
    NewAssignment,
    RackAwareAssignor,
    StickyAssignor,
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


async def test_an_assignor_that_two_consumers_share_hears_which_of_them_is_meant() -> None:
    async with (
        MockBroker(topics={"t": 4}, config=FAST) as broker,
        Group(broker) as group,
    ):
        shared = ByCapacity(1)
        first = await group.join(shared, group_instance_id="one")
        await group.shared(4)
        second = await group.join(shared)
        await group.shared(2, 2)
        await broker.wait_for(lambda: len({each.group_metadata for each in shared.told}) >= 3)
        newest = {each.group_metadata.member_id: each for each in shared.told}
        assert newest.keys() == {each.group_metadata().member_id for each in group.consumers}
        for consumer, instance in ((first, "one"), (second, None)):
            told = newest[consumer.group_metadata().member_id]
            assert told.group_metadata.group_id == "g"
            assert told.group_metadata.group_instance_id == instance
            assert told.group_metadata.member_epoch == told.member_epoch
            assert set(told.partitions) == set(consumer.assignment())


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


class Slow(ByCapacity):
    """Never returns when it is not alone; ``how``: in a thread, or as a coroutine."""

    def __init__(self, how: str) -> None:
        super().__init__(1)
        self.how = how
        self.released = threading.Event()

    def assign(self, members: Members, topics: Topics) -> Any:
        good = super().assign(members, topics)
        if len(members) == 1:
            return good
        if self.how == "coroutine":
            return asyncio.get_running_loop().create_future()
        self.released.wait(30)
        return good


class Awaited:
    """``ByCapacity`` in the event loop."""

    name = "awaited"
    minimum_version = 0
    maximum_version = 0

    def __init__(self, capacity: int) -> None:
        self._plain = ByCapacity(capacity)
        self.metadata = self._plain.metadata
        self.told = self._plain.told

    async def assign(self, members: Members, topics: Topics) -> GroupAssignment:
        await asyncio.sleep(0)
        return self._plain.assign(members, topics)

    async def on_assignment(self, assignment: NewAssignment) -> None:
        self.told.append(assignment)
        raise ValueError("only logged")


async def test_who_computes_too_long_is_passed_over() -> None:
    async with MockBroker(topics={"t": 4}, config=FAST) as broker, Group(broker) as group:
        slow, sound = Slow("thread"), ByCapacity(1)
        consumer = await group.join(slow, rebalance_callback_timeout_ms=200)
        await group.shared(4)
        await group.join(sound)
        await broker.wait_for(lambda: slow.computed == 2)
        await group.shared(2, 2)
        assert sound.computed == 1
        await consumer.commit({("t", 0): 1})  # it lives on
        slow.released.set()


async def test_assignors_may_be_coroutines_and_fail_in_on_assignment() -> None:
    async with MockBroker(topics={"t": 4}, config=FAST) as broker, Group(broker) as group:
        first, second = Awaited(1), Awaited(3)
        await group.join(first)
        await group.join(second)
        await group.shared(1, 3)
        await broker.wait_for(
            lambda: (
                [each.told[-1].data for each in (first, second)]
                == [
                    b"1 of them",
                    b"3 of them",
                ]
            )
        )


class Racks(RackAwareAssignor):
    """Remembers what it was given."""

    def __init__(self) -> None:
        self.seen: list[Topics] = []

    def assign(self, members: Members, topics: Topics) -> GroupAssignment:
        self.seen.append(topics)
        return super().assign(members, topics)


async def test_partitions_go_to_the_rack_of_their_replicas() -> None:
    racks = ["x", "y", "z"]
    async with (
        MockBroker(config=FAST, brokers=3, racks=racks) as broker,
        Group(broker) as group,
    ):
        broker.create_topic("t", 6, replication_factor=1)
        assignors = [Racks() for _ in racks]
        for rack, assignor in zip(racks, assignors, strict=True):
            await group.join(assignor, client_rack=rack)
        await group.shared(2, 2, 2)
        seen = assignors[0].seen + assignors[1].seen + assignors[2].seen
        of = seen[0]["t"].racks
        assert {next(iter(each)) for each in of.values()} == set(racks)
        for rack, consumer in zip(racks, group.consumers, strict=True):
            assert all(of[tp.partition] == {rack} for tp in consumer.assignment())


async def test_the_assignors_are_upgraded_one_by_one() -> None:
    """Members of versions 0 to 1 and 1 to 2 go together; only those compute who read both."""

    class Newer(ByCapacity):
        maximum_version = 2

        def metadata(self) -> AssignorMetadata:
            return AssignorMetadata(str(self.capacity).encode(), version=2)

    async with MockBroker(topics={"t": 6}, config=FAST) as broker, Group(broker) as group:
        old, new = ByCapacity(1), Newer(1)
        await group.join(old)
        await group.shared(6)
        await group.join(new)
        await group.shared(3, 3)
        assert (old.computed, new.computed) == (1, 1)


@pytest.mark.everything("a hundred consumers take seconds to start")
async def test_a_hundred_consumers_share_a_thousand_partitions() -> None:
    quick = FAST | {
        "group.consumer.min.heartbeat.interval.ms": "1500",
        "group.consumer.heartbeat.interval.ms": "1500",
    }
    async with MockBroker(topics={"t": 1_000}, config=quick) as broker, Group(broker) as group:
        broken = Broken("raises")
        await group.join(broken)
        await group.shared(1_000)
        for _ in range(14):  # all at once keep the event loop from answering the first
            await asyncio.gather(*(group.join(ByCapacity(1)) for _ in range(7)))
        await broker.wait_for(lambda: _is_shared(group, 1_000, 1), timeout_s=120)
        await group.join(ByCapacity(1))
        await broker.wait_for(lambda: _is_shared(group, 1_000, 0), timeout_s=120)
        assert broken.computed >= 2  # who computed last is asked first


class Kept(StickyAssignor):
    """``sticky`` of some version, which may have trouble."""

    def __init__(self, version: int, order: list[Kept]) -> None:
        self.maximum_version = version
        self.trouble = ""
        self.released = threading.Event()
        self._order = order
        """Who computed, one after the other."""

    def metadata(self) -> AssignorMetadata:
        return AssignorMetadata(b"", version=self.maximum_version)

    def assign(self, members: Members, topics: Topics) -> GroupAssignment:
        self._order.append(self)
        if self.trouble == "raises":
            raise ZeroDivisionError
        if self.trouble == "slow":
            self.released.wait(30)
        return super().assign(members, topics)


@pytest.mark.everything("forty consumers take seconds to start")
@pytest.mark.timeout(200)
async def test_few_partitions_move_when_forty_are_upgraded_one_by_one() -> None:
    """Also while one fails to compute, and another one takes too long. Of a hundred the simulation
    says the same (``tests.simulation.upgrading``)."""
    quick = FAST | {
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": "500",
    }
    settings = {"rebalance_callback_timeout_ms": 3_000}
    order: list[Kept] = []
    real = ideal = 0
    async with MockBroker(topics={"t": 400}, config=quick) as broker, Group(broker) as group:
        for _ in range(4):  # all at once keep the event loop from answering the first
            await asyncio.gather(*(group.join(Kept(1, order), **settings) for _ in range(10)))
        await broker.wait_for(lambda: _is_shared(group, 400, 0), timeout_s=120)
        for trouble in ("", "", "raises", "slow"):  # then two can read the newer metadata
            computes = order[-1]  # who computed last is asked first
            computes.trouble = trouble
            before = _owners(group)
            await group.consumers.pop(0).stop()
            await broker.wait_for(lambda: _is_shared(group, 400, 1), timeout_s=120)
            left = _owners(group)
            await group.join(Kept(2, order), **settings)
            await broker.wait_for(lambda: _is_shared(group, 400, 0), timeout_s=120)
            for old, new in ((before, left), (left, _owners(group))):
                moved = sum(old[tp] is not who for tp, who in new.items())
                assert moved <= 10 * 1.1
                real, ideal = real + moved, ideal + 10
            assert not trouble or order[-1] is not computes, "another one has computed"
            computes.released.set()
            computes.trouble = ""
    print(f"ideal {ideal} moves, real {real}")


def _owners(group: Group) -> dict[TopicPartition, Consumer[Any, Any]]:
    return {tp: each for each in group.consumers for tp in each.assignment()}


def _is_shared(group: Group, partitions: int, spread: int) -> bool:
    """Whether all are with somebody, and nobody has more than ``spread`` more than another."""
    sizes: list[int] = []
    for each in group.consumers:
        sizes.append(len(each.assignment()))
        if max(sizes) - min(sizes) > spread:
            return False  # as long as members wait, which is soon seen
    return sum(sizes) == partitions

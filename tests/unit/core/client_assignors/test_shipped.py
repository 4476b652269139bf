"""The assignors that are here: what they compute, and how little they move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.client_assignors import (
    ClientAssignor,
    GroupAssignment,
    GroupMember,
    GroupTopic,
    PreparedGroup,
    RackAwareAssignor,
    StickyAssignor,
    checked_assignment,
)
from kip848_client.core.types import TopicId, TopicPartition
from tests.support.examples import examples

Members = dict[str, GroupMember]
Topics = dict[str, GroupTopic]
SHIPPED: list[Any] = [StickyAssignor(), RackAwareAssignor()]


def topic(name: str, partitions: int, *racks: str) -> GroupTopic:
    """Partition i has replicas in rack i and rack i + 1."""
    near: dict[int, frozenset[str]] = {}
    for i in range(partitions if racks else 0):
        near[i] = frozenset({racks[i % len(racks)], racks[(i + 1) % len(racks)]})
    return GroupTopic(TopicId(name.ljust(16).encode()), partitions, near)


def assigned(assignor: ClientAssignor, members: Members, topics: Topics) -> Members:
    """The members with their new targets; what is computed is what the coordinator would take."""
    result = assignor.assign(members, topics)
    assert isinstance(result, GroupAssignment)
    checked_assignment(PreparedGroup(1, assignor.name, members, topics), result)
    return {
        each: GroupMember(
            1,
            member.topics,
            tuple(sorted(result.members[each].partitions)),
            instance_id=member.instance_id,
            rack_id=member.rack_id,
        )
        for each, member in members.items()
    }


def moves(before: Members, after: Members) -> int:
    """How many partitions are with somebody else."""
    was = {tp: each for each, member in before.items() for tp in member.target}
    return sum(was.get(tp, each) != each for each, member in after.items() for tp in member.target)


def sizes(members: Mapping[str, GroupMember]) -> list[int]:
    return sorted(len(each.target) for each in members.values())


@pytest.mark.parametrize("assignor", SHIPPED)
def test_who_joins_takes_its_share_and_nobody_else_moves(assignor: ClientAssignor) -> None:
    topics = {"t": topic("t", 12)}
    three = assigned(assignor, {each: GroupMember(1, ("t",)) for each in "abc"}, topics)
    assert sizes(three) == [4, 4, 4]
    four = assigned(assignor, {**three, "d": GroupMember(1, ("t",))}, topics)
    assert sizes(four) == [3, 3, 3, 3]
    assert moves(three, four) == 3
    assert assigned(assignor, four, topics) == four
    left = {each: member for each, member in four.items() if each != "a"}
    assert moves(left, assigned(assignor, left, topics)) == 0


@pytest.mark.parametrize("assignor", SHIPPED)
def test_a_hundred_members_move_next_to_nothing(assignor: ClientAssignor) -> None:
    topics = {f"t{i}": topic(f"t{i}", 100) for i in range(10)}
    subscribed = tuple(sorted(topics))
    group = assigned(assignor, {f"m{i:03}": GroupMember(1, subscribed) for i in range(100)}, topics)
    assert sizes(group) == [10] * 100
    more = assigned(assignor, {**group, "x": GroupMember(1, subscribed)}, topics)
    assert moves(group, more) <= 10


def test_partitions_are_read_where_they_are() -> None:
    topics = {"t": topic("t", 12, "x", "y", "z")}
    members = {f"{rack}{i}": GroupMember(1, ("t",), rack_id=rack) for rack in "xyz" for i in "12"}
    after = assigned(RackAwareAssignor(), members, topics)
    assert sizes(after) == [2] * 6
    assert all(
        member.rack_id in topics["t"].racks[tp.partition]
        for member in after.values()
        for tp in member.target
    )


def test_a_partition_goes_where_it_is_near_if_that_keeps_the_balance() -> None:
    topics = {"t": GroupTopic(TopicId(b"t" * 16), 2, {0: frozenset("x"), 1: frozenset("y")})}
    crossed = {
        "a": GroupMember(1, ("t",), (TopicPartition("t", 1),), rack_id="x"),
        "b": GroupMember(1, ("t",), (TopicPartition("t", 0),), rack_id="y"),
    }
    after = assigned(RackAwareAssignor(), crossed, topics)
    assert after["a"].target == (TopicPartition("t", 0),)
    far = {each: GroupMember(1, ("t",), rack_id="w") for each in "ab"}
    assert sizes(assigned(RackAwareAssignor(), far, topics)) == [1, 1]


names = st.sampled_from("pqr")


@settings(max_examples=examples(200), deadline=None)
@given(
    subscriptions=st.lists(
        st.tuples(st.sets(names, min_size=1), st.sampled_from(["", "x", "y"])),
        min_size=1,
        max_size=6,
    ),
    counts=st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 7)),
    racked=st.booleans(),
    leaves=st.integers(0, 5),
)
@pytest.mark.parametrize("assignor", SHIPPED)
def test_what_is_computed_is_an_assignment(
    assignor: ClientAssignor,
    subscriptions: list[tuple[set[str], str]],
    counts: tuple[int, int, int],
    racked: bool,
    leaves: int,
) -> None:
    def group(given: list[tuple[set[str], str]], before: Members) -> tuple[Members, Topics]:
        read = set().union(*(topics for topics, _ in given))
        topics = {
            name: topic(name, count, *("xyz" if racked else ""))
            for name, count in zip("pqr", counts, strict=True)
            if name in read
        }
        members = {
            f"m{i}": GroupMember(
                1,
                tuple(sorted(mine)),
                tuple(tp for tp in before[f"m{i}"].target if tp.topic in topics) if before else (),
                rack_id=rack or None,
            )
            for i, (mine, rack) in enumerate(given)
        }
        return members, topics

    first = assigned(assignor, *group(subscriptions, {}))
    second = assigned(assignor, *group(subscriptions[: max(1, len(subscriptions) - leaves)], first))
    if all(topics == subscriptions[0][0] for topics, _ in subscriptions):
        assert max(sizes(second)) - min(sizes(second)) <= 1

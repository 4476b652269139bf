"""Worked sequences of the homogeneous uniform assignor, as Kafka computes them."""

from __future__ import annotations

import pytest

from kip848_client.core.assignors import (
    AssignorError,
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TopicMetadata,
)
from kip848_client.core.assignors._uniform_homogeneous import assign_homogeneous
from kip848_client.core.types import MemberId, parse_topic_id
from tests.unit.core.assignors.replay import ReplayedGroup, topic_id

FOO = topic_id(1)


def foo_group(partitions: int) -> ReplayedGroup:
    return ReplayedGroup({"foo": (FOO, partitions)})


def played(group: ReplayedGroup, *steps: str) -> dict[str, list[int]]:
    """``+A`` joins, ``-A`` leaves; after a leave the first member sends a heartbeat."""
    for step in steps:
        if step.startswith("+"):
            group.join(step[1:], ["foo"])
        else:
            group.leave(step[1:])
            group.heartbeat(next(iter(group.members)))
    return {member: target.get("foo", []) for member, target in group.shown().items()}


def test_six_partitions() -> None:
    group = foo_group(6)
    assert played(group, "+A") == {"A": [0, 1, 2, 3, 4, 5]}
    assert played(group, "+B") == {"A": [0, 1, 2], "B": [3, 4, 5]}
    assert played(group, "+C") == {"A": [0, 1], "B": [3, 4], "C": [2, 5]}


def test_three_partitions_and_more_members() -> None:
    group = foo_group(3)
    assert played(group, "+A", "+B") == {"A": [0, 1], "B": [2]}
    assert played(group, "+C") == {"A": [0], "B": [2], "C": [1]}
    assert played(group, "+D") == {"A": [0], "B": [2], "C": [1], "D": []}
    assert group.written == {"D"}
    assert played(group, "-A") == {"B": [2], "C": [1], "D": [0]}
    assert group.written == {"D"}


def test_ten_partitions() -> None:
    group = foo_group(10)
    after_three = {"m1": [0, 1, 2, 3], "m2": [5, 6, 7], "m3": [4, 8, 9]}
    assert played(group, "+m1", "+m2", "+m3") == after_three
    assert played(group, "+m4") == {
        "m1": [0, 1, 2],
        "m2": [5, 6, 7],
        "m3": [4, 8],
        "m4": [3, 9],
    }
    assert played(group, "+m5") == {
        "m1": [0, 1],
        "m2": [5, 6],
        "m3": [4, 8],
        "m4": [3, 9],
        "m5": [2, 7],
    }
    assert played(group, "-m2") == {
        "m1": [0, 1],
        "m3": [4, 8],
        "m4": [3, 5, 9],
        "m5": [2, 6, 7],
    }
    assert played(group, "-m4") == {"m1": [0, 1, 3], "m3": [4, 5, 8], "m5": [2, 6, 7, 9]}


def test_the_order_of_a_java_set_decides_what_is_given_up() -> None:
    group = foo_group(20)
    assert played(group, "+x", "+y") == {"x": list(range(10)), "y": list(range(10, 20))}
    assert played(group, "+z") == {
        "x": [0, 1, 2, 3, 4, 5, 6],
        "y": [10, 11, 12, 16, 17, 18, 19],
        "z": [7, 8, 9, 13, 14, 15],
    }


def test_the_order_of_the_topic_ids_decides_who_gets_which_topic() -> None:
    group = ReplayedGroup(
        {
            "foo": (parse_topic_id("6vk_PxMHSOqE1zt1ZCW9TA"), 5),
            "bar": (parse_topic_id("Q3lTAqWJQ9C8yW_oJ6hQ0g"), 4),
        }
    )
    names = ["foo", "bar"]
    group.join("consumer-a", names)
    group.join("consumer-b", names)
    assert group.shown() == {
        "consumer-a": {"foo": [0, 1, 2, 3, 4]},
        "consumer-b": {"bar": [0, 1, 2, 3]},
    }
    group.join("consumer-c", names)
    assert group.shown() == {
        "consumer-a": {"foo": [0, 1, 2]},
        "consumer-b": {"bar": [0, 1, 2]},
        "consumer-c": {"foo": [3, 4], "bar": [3]},
    }
    group.leave("consumer-a")
    group.heartbeat("consumer-b")
    assert group.shown() == {
        "consumer-b": {"foo": [1, 2], "bar": [0, 1, 2]},
        "consumer-c": {"foo": [0, 3, 4], "bar": [3]},
    }


def test_a_topic_no_longer_subscribed_is_dropped() -> None:
    gone = topic_id(7)
    members = {
        MemberId("A"): MemberSpec((FOO,), {gone: (0, 1), FOO: (0, 1, 2)}),
        MemberId("B"): MemberSpec((FOO,), {FOO: (3,)}),
    }
    topics = {FOO: TopicMetadata("foo", 4), gone: TopicMetadata("gone", 2)}
    result = assign_homogeneous(GroupSpec(members, SubscriptionType.HOMOGENEOUS), topics)
    assert result.members == {"A": {FOO: (0, 1)}, "B": {FOO: (2, 3)}}


def test_contradictory_previous_targets_are_an_error() -> None:
    # a partition in two targets, and a quota too small for all that was given up
    members = {
        MemberId("A"): MemberSpec((FOO,), {FOO: (0, 1, 2)}),
        MemberId("B"): MemberSpec((FOO,), {FOO: (0, 1, 2)}),
    }
    group = GroupSpec(members, SubscriptionType.HOMOGENEOUS)
    with pytest.raises(AssignorError, match=r"^Partitions were left unassigned$"):
        assign_homogeneous(group, {FOO: TopicMetadata("foo", 3)})

"""The range assignor: blocks, the order of members, bad input."""

from __future__ import annotations

import pytest

from kip848_client.core.assignors import (
    NO_PARTITIONS,
    AssignorError,
    GroupSpec,
    MemberSpec,
    RangeAssignor,
    SubscriptionType,
    TopicMetadata,
)
from kip848_client.core.types import MemberId, TopicId
from tests.unit.core.assignors.replay import ReplayedGroup, topic_id

FOO, BAR = topic_id(1), topic_id(2)
TOPICS = {FOO: TopicMetadata("foo", 6), BAR: TopicMetadata("bar", 3)}


def assigned(
    members: dict[str, MemberSpec], kind: SubscriptionType = SubscriptionType.HOMOGENEOUS
) -> dict[str, dict[TopicId, tuple[int, ...]]]:
    group = GroupSpec({MemberId(key): spec for key, spec in members.items()}, kind)
    result = RangeAssignor().assign(group, TOPICS)
    return {str(key): dict(target) for key, target in result.members.items()}


def test_name() -> None:
    assert RangeAssignor().name == "range"


def test_two_and_three_members() -> None:
    group = ReplayedGroup({"foo": (FOO, 6), "bar": (BAR, 3)}, assignor="range")
    group.join("A", ["foo", "bar"])
    group.join("B", ["foo", "bar"])
    assert group.shown() == {
        "A": {"foo": [0, 1, 2], "bar": [0, 1]},
        "B": {"foo": [3, 4, 5], "bar": [2]},
    }
    group.join("C", ["foo", "bar"])
    assert group.shown() == {
        "A": {"foo": [0, 1], "bar": [0]},
        "B": {"foo": [2, 3], "bar": [1]},
        "C": {"foo": [4, 5], "bar": [2]},
    }


def test_static_members_come_first_by_instance_id() -> None:
    both = (FOO,)
    result = assigned(
        {
            "a": MemberSpec(both),
            "c": MemberSpec(both, instance_id="i1"),
            "b": MemberSpec(both, instance_id="i2"),
        }
    )
    assert result == {"a": {FOO: (4, 5)}, "c": {FOO: (0, 1)}, "b": {FOO: (2, 3)}}


def test_members_are_compared_by_utf16_units() -> None:
    result = assigned({"\uff5a": MemberSpec((FOO,)), "\U0001d538": MemberSpec((FOO,))})
    assert result["\U0001d538"] == {FOO: (0, 1, 2)}


def test_heterogeneous_counts_only_subscribers() -> None:
    result = assigned(
        {"A": MemberSpec((FOO,)), "B": MemberSpec((FOO, BAR)), "C": MemberSpec(())},
        SubscriptionType.HETEROGENEOUS,
    )
    assert result == {"A": {FOO: (0, 1, 2)}, "B": {FOO: (3, 4, 5), BAR: (0, 1, 2)}, "C": {}}


def test_more_members_than_partitions() -> None:
    result = assigned({name: MemberSpec((BAR,)) for name in "ABCDE"})
    assert [result[name].get(BAR) for name in "ABCDE"] == [(0,), (1,), (2,), None, None]


def test_an_unchanged_target_is_given_back() -> None:
    previous = {FOO: (5, 4, 3, 2, 1, 0)}
    group = GroupSpec({MemberId("A"): MemberSpec((FOO,), previous)}, SubscriptionType.HOMOGENEOUS)
    assert RangeAssignor().assign(group, TOPICS).members[MemberId("A")] is previous


def test_nothing_to_do() -> None:
    assert assigned({}) == {}
    group = GroupSpec({MemberId("A"): MemberSpec(())}, SubscriptionType.HOMOGENEOUS)
    assert RangeAssignor().assign(group, TOPICS).members[MemberId("A")] is NO_PARTITIONS


@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_an_unknown_topic_is_an_error(kind: SubscriptionType) -> None:
    with pytest.raises(AssignorError, match=r"^Member is subscribed to a non-existent topic$"):
        assigned({"A": MemberSpec((topic_id(9),))}, kind)

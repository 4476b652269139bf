"""The uniform assignor's dispatch, and what both builders do with bad input."""

from __future__ import annotations

import pytest

from kip848_client.core.assignors import (
    BUILTIN,
    NO_PARTITIONS,
    AssignorError,
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TopicMetadata,
    UniformAssignor,
)
from kip848_client.core.types import MemberId
from tests.unit.core.assignors.replay import topic_id

FOO = topic_id(1)
TOPICS = {FOO: TopicMetadata("foo", 6)}
BOTH = pytest.mark.parametrize("kind", list(SubscriptionType))


def test_names_in_kafkas_default_order() -> None:
    assert list(BUILTIN) == ["uniform", "range"]
    assert [assignor.name for assignor in BUILTIN.values()] == ["uniform", "range"]


@BOTH
def test_an_empty_group(kind: SubscriptionType) -> None:
    assert UniformAssignor().assign(GroupSpec({}, kind), TOPICS).members == {}


@BOTH
def test_members_without_topics_get_nothing(kind: SubscriptionType) -> None:
    members = {MemberId("A"): MemberSpec(()), MemberId("B"): MemberSpec((), {FOO: (1,)})}
    result = UniformAssignor().assign(GroupSpec(members, kind), TOPICS)
    assert result.members == {"A": {}, "B": {}}
    assert result.members[MemberId("A")] is NO_PARTITIONS


@BOTH
def test_an_unknown_topic_is_an_error(kind: SubscriptionType) -> None:
    members = {MemberId("A"): MemberSpec((topic_id(9),))}
    with pytest.raises(AssignorError) as caught:
        UniformAssignor().assign(GroupSpec(members, kind), TOPICS)
    assert str(caught.value) == (
        "Members are subscribed to topic AAAAAAAAAAAAAAAAAAAACQ "
        "which doesn't exist in the topic metadata."
    )


@BOTH
def test_an_unchanged_target_is_given_back(kind: SubscriptionType) -> None:
    previous = {FOO: (5, 4, 3, 2, 1, 0)}
    members = {MemberId("A"): MemberSpec((FOO,), previous)}
    assert (
        UniformAssignor().assign(GroupSpec(members, kind), TOPICS).members[MemberId("A")]
        is previous
    )


def test_a_previous_target_beyond_the_topic_is_an_error() -> None:
    members = {MemberId("A"): MemberSpec((FOO,), {FOO: (6,)}), MemberId("B"): MemberSpec(())}
    with pytest.raises(AssignorError, match="partition 6 of topic"):
        UniformAssignor().assign(GroupSpec(members, SubscriptionType.HETEROGENEOUS), TOPICS)


def test_the_input_is_not_changed() -> None:
    previous = {FOO: (0, 1, 2, 3, 4, 5)}
    members = {MemberId("A"): MemberSpec((FOO,), previous), MemberId("B"): MemberSpec((FOO,))}
    for kind in SubscriptionType:
        result = UniformAssignor().assign(GroupSpec(members, kind), TOPICS)
        assert result.members[MemberId("A")] == {FOO: (0, 1, 2)}
        assert previous == {FOO: (0, 1, 2, 3, 4, 5)}

"""ConsumerGroupDescribe, DescribeGroups and ListGroups: every field and every version."""

from __future__ import annotations

import pytest

from kip848_client.core.wire import decode, encode
from kip848_client.core.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from kip848_client.core.wire.messages.groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from mock_coordinator.core.inputs import ClientInfo
from tests.unit.mock_coordinator.groups._group_harness import EVERY_PROFILE, GroupHarness


def _describe(
    harness: GroupHarness, *groups: str, operations: bool = False
) -> tuple[ConsumerGroupDescribeResponseDescribedGroup, ...]:
    request = ConsumerGroupDescribeRequest(
        group_ids=groups, include_authorized_operations=operations
    )
    response = harness.ask(request, 1)
    return decode(ConsumerGroupDescribeResponse, 1, encode(response, 1)).groups


def _numbers(assignment: ConsumerGroupDescribeResponseAssignment) -> dict[str, tuple[int, ...]]:
    return {topic.topic_name: topic.partitions for topic in assignment.topic_partitions}


def test_every_field_of_a_described_group_and_member() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", rack="r", inst="i")
    harness.join("B", ["foo"])
    (group,) = _describe(harness, "g")
    assert (group.error_code, group.error_message) == (0, None)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert (group.assignor_name, group.authorized_operations) == ("uniform", -(2**31))
    a, b = sorted(group.members, key=lambda member: member.member_id)
    assert (a.member_id, a.member_epoch, a.member_type) == ("A", 2, 1)
    assert (a.instance_id, a.rack_id, a.client_id, a.client_host) == (
        "i",
        "r",
        "client",
        "/127.0.0.1",
    )
    assert (a.subscribed_topic_names, a.subscribed_topic_regex) == (("foo",), "")
    assert _numbers(a.assignment) == {"foo": (0, 1, 2, 3, 4, 5)}
    assert _numbers(a.target_assignment) == {"foo": (0, 1, 2)}
    assert (_numbers(b.assignment), _numbers(b.target_assignment)) == ({}, {"foo": (3, 4, 5)})


def test_what_cannot_be_described() -> None:
    harness = GroupHarness()
    harness.commit("", -1, {"foo": {0: 1}}, group="simple")
    empty, missing, simple = _describe(harness, "", "nope", "simple", operations=True)
    assert (empty.error_code, empty.error_message) == (24, None)
    assert (missing.error_code, missing.error_message) == (69, "Group nope not found.")
    assert (simple.error_code, simple.error_message) == (
        69,
        "Group simple is not a consumer group.",
    )
    assert {group.authorized_operations for group in (empty, missing, simple)} == {-(2**31)}


@EVERY_PROFILE
def test_an_empty_group(profile: str) -> None:
    harness = GroupHarness(profile)
    e = harness.first
    harness.join("A", assignor="range")
    harness.beat("A", -1)
    (group,) = _describe(harness, "g", operations=True)
    target = e + 1 if profile == "4.4" else e
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == (
        "Empty",
        e + 1,
        target,
    )
    assert (group.assignor_name, group.members, group.authorized_operations) == (
        "uniform",
        (),
        3400,
    )


def test_deleted_topics_are_left_out() -> None:
    harness = GroupHarness()
    harness.join("A", ["foo", "bar"])
    harness.delete("foo")
    (group,) = _describe(harness, "g")
    assert _numbers(group.members[0].assignment) == {"bar": (0, 1, 2)}


def test_a_client_may_move_to_another_address() -> None:
    harness = GroupHarness()
    harness.join("A")
    harness.beat("A", 2, client=ClientInfo(None, "/10.0.0.1"))
    (group,) = _describe(harness, "g")
    assert (group.members[0].client_id, group.members[0].client_host) == ("", "/10.0.0.1")


def _classic(
    harness: GroupHarness, version: int, *groups: str
) -> list[DescribeGroupsResponseDescribedGroup]:
    request = DescribeGroupsRequest(groups=groups, include_authorized_operations=version >= 3)
    response = harness.ask(request, version)
    return list(decode(DescribeGroupsResponse, version, encode(response, version)).groups)


@pytest.mark.parametrize("version", range(7))
def test_describe_groups_is_for_classic_groups(version: int) -> None:
    harness = GroupHarness()
    harness.join("A")
    harness.commit("", -1, {"foo": {0: 1}}, group="simple")
    consumer, missing, simple = _classic(harness, version, "g", "nope", "simple")
    error = 69 if version == 6 else 0
    assert (consumer.error_code, consumer.group_state) == (error, "Dead")
    assert (missing.error_code, missing.group_state) == (error, "Dead")
    if version == 6:
        assert consumer.error_message == "Group g is not a classic group."
        assert missing.error_message == "Group nope not found."
    assert (simple.error_code, simple.group_state, simple.protocol_type) == (0, "Empty", "")
    if version >= 3:
        assert simple.authorized_operations == 3400


@pytest.mark.parametrize("version", range(6))
def test_what_a_listing_says(version: int) -> None:
    harness = GroupHarness()
    harness.join("A")
    harness.commit("", -1, {"foo": {0: 1}}, group="simple")
    response = harness.ask(ListGroupsRequest(), version)
    groups = decode(ListGroupsResponse, version, encode(response, version)).groups
    assert [(group.group_id, group.protocol_type) for group in groups] == [
        ("g", "consumer"),
        ("simple", ""),
    ]
    states = ["Stable", "Empty"] if version >= 4 else ["", ""]
    types = ["consumer", "classic"] if version >= 5 else ["", ""]
    assert [(group.group_state, group.group_type) for group in groups] == list(
        zip(states, types, strict=True)
    )

"""Heartbeats that make no sense: rule by rule, with Kafka's words (scenario S18)."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.consumer.validation import is_blank, validate_heartbeat
from mock_coordinator.core.refused import Refused
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness

ASSIGNORS = ("uniform", "range")
SOME = (ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=bytes(16), partitions=(0,)),)


def _join(**changes: object) -> ConsumerGroupHeartbeatRequest:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="A",
        rebalance_timeout_ms=1,
        subscribed_topic_names=("foo",),
        topic_partitions=(),
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


RULES: list[tuple[dict[str, object], str]] = [
    ({"member_id": ""}, "MemberId can't be empty."),
    ({"member_id": " \t"}, "MemberId can't be empty."),
    ({"member_id": "", "group_id": ""}, "MemberId can't be empty."),
    ({"group_id": ""}, "GroupId can't be empty."),
    ({"group_id": " ", "instance_id": ""}, "GroupId can't be empty."),
    ({"instance_id": ""}, "InstanceId can't be empty."),
    ({"instance_id": " ", "rack_id": ""}, "InstanceId can't be empty."),
    ({"rack_id": ""}, "RackId can't be empty."),
    ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
    ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
    ({"topic_partitions": SOME}, "TopicPartitions must be empty when (re-)joining."),
    (
        {"subscribed_topic_names": None},
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    ),
    ({"member_epoch": -2}, "InstanceId can't be null."),
    ({"member_epoch": -3}, "MemberEpoch is invalid."),
]


@pytest.mark.parametrize(("changes", "message"), RULES)
def test_the_first_rule_that_is_broken_decides(changes: dict[str, object], message: str) -> None:
    with pytest.raises(Refused) as caught:
        validate_heartbeat(_join(**changes), 1, ASSIGNORS)
    assert (caught.value.code, caught.value.message) == (42, message)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"subscribed_topic_names": ()},
        {"subscribed_topic_names": None, "subscribed_topic_regex": ""},
        {"rebalance_timeout_ms": 0},
        {"rebalance_timeout_ms": -5},
        {"server_assignor": "range"},
        {"member_epoch": 7, "topic_partitions": SOME, "rebalance_timeout_ms": -1},
        {"member_epoch": -1, "topic_partitions": None},
        {"member_epoch": -2, "instance_id": "i"},
    ],
)
def test_what_is_accepted(changes: dict[str, object]) -> None:
    validate_heartbeat(_join(**changes), 1, ASSIGNORS)


@pytest.mark.parametrize(("epoch", "refused"), [(0, False), (-2, False), (-1, True), (3, True)])
def test_version_0_may_leave_the_member_id_to_the_broker(epoch: int, refused: bool) -> None:
    request = _join(member_id="", member_epoch=epoch, instance_id="i")
    if refused:
        with pytest.raises(Refused, match="MemberId"):
            validate_heartbeat(request, 0, ASSIGNORS)
    else:
        validate_heartbeat(request, 0, ASSIGNORS)


def test_an_assignor_that_the_broker_lacks_is_named() -> None:
    harness = GroupHarness()
    answer = harness.join("A", assignor="xyz")
    assert (answer.error, answer.message) == (
        112,
        "ServerAssignor xyz is not supported. Supported assignors: uniform, range.",
    )
    assert harness.groups.group_ids == ()


def test_a_refused_heartbeat_carries_nothing_but_the_error() -> None:
    harness = GroupHarness()
    response = harness.ask(ConsumerGroupHeartbeatRequest(group_id="g", member_id=""), 1)
    assert response == ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.INVALID_REQUEST, error_message="MemberId can't be empty."
    )


def test_blank_is_what_java_trims() -> None:
    assert is_blank("\x00\x1f \t\n")
    assert not is_blank("\u00a0")  # Python's strip would take it away

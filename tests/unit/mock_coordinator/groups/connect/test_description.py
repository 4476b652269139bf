"""ConnectGroupDescribe: what administrators see of a Connect group."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.connect import ITSELF
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupDescribeRequest,
    ConnectGroupDescribeResponseDescribedGroup,
    ConnectGroupDescribeResponseMember,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.security.acls import acls_from_data
from mock_coordinator.security import SecurityOptions
from tests.support.plain_message import message
from tests.unit.mock_coordinator.groups.connect._connect_harness import (
    INC,
    ConnectGroupHarness,
    items_of,
)
from tests.unit.mock_coordinator.nodes.cluster_harness import ClusterHarness

NOT_YET = 5
"""An error of the assignor's own."""
A, A0, A1, A2 = ("A", ITSELF, ITSELF), ("A", 7, 0), ("A", 7, 1), ("A", 7, 2)


def described(harness: ConnectGroupHarness) -> ConnectGroupDescribeResponseDescribedGroup:
    answer = harness.ask(ConnectGroupDescribeRequest(group_ids=("c",)))
    (group,) = answer.groups
    assert isinstance(group, ConnectGroupDescribeResponseDescribedGroup)
    assert (group.error_code, group.group_id) == (0, "c")
    return group


def member(
    group: ConnectGroupDescribeResponseDescribedGroup, member_id: str
) -> ConnectGroupDescribeResponseMember:
    return next(each for each in group.members if each.member_id == member_id)


def settled() -> ConnectGroupHarness:
    """W1 runs A and two of its three tasks; the third one waits for a worker to return."""
    harness = ConnectGroupHarness()
    first = harness.worker("W1", "static-1")
    harness.beat(first)
    epoch = harness.prepare(first).group_epoch
    assert harness.install(first, epoch, {"W1": {A, A0, A1}}, [A2], metadata=b"said") == 0
    harness.beat(first)
    harness.beat(first)
    return harness


def test_a_group_that_has_settled() -> None:
    group = described(settled())
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert (group.assignor_name, group.assignor_error) == (INC.name, 0)
    assert (group.computed_by, group.computing) == ("W1", None)
    assert items_of(group.deferred) == {A2}
    worker = member(group, "W1")
    assert (worker.instance_id, worker.member_epoch, worker.member_type) == ("static-1", 2, 1)
    assert (worker.client_id, worker.client_host[:1]) == ("client", "/")
    assert worker.member_state == MemberState.STABLE
    assert (worker.version, worker.metadata) == (INC.version, INC.metadata)
    for has in (worker.assignment, worker.target_assignment):
        assert items_of(has.items) == {A, A0, A1}
        assert (has.error, has.version, has.metadata) == (0, 2, b"said")
    assert worker.revoking == ()


def test_items_on_their_way_from_one_worker_to_another() -> None:
    harness = settled()
    first, second = harness.worker("W1"), harness.worker("W2")
    harness.beat(second)
    assert described(harness).computing == "W1"
    harness.beat(first)
    epoch = harness.prepare(first).group_epoch
    assert harness.install(first, epoch, {"W1": {A, A0}, "W2": {A1, A2}}) == 0
    harness.beat(first, reports=False)
    harness.beat(second)
    group = described(harness)
    assert group.group_state == "Reconciling"
    giving, waiting = member(group, "W1"), member(group, "W2")
    assert giving.member_state == MemberState.UNREVOKED_PARTITIONS
    assert items_of(giving.assignment.items) == {A, A0}
    assert items_of(giving.revoking) == {A1}
    assert waiting.member_state == MemberState.UNRELEASED_PARTITIONS
    assert items_of(waiting.assignment.items) == {A2}
    assert items_of(waiting.target_assignment.items) == {A1, A2}


def test_why_an_assignor_kept_what_there_was() -> None:
    harness = settled()
    first = harness.worker("W1")
    harness.beat(first, reason=1)
    assert harness.install(first, harness.prepare(first).group_epoch, {}, error=NOT_YET) == 0
    harness.beat(first)
    group = described(harness)
    assert (group.group_epoch, group.assignment_epoch, group.assignor_error) == (3, 3, NOT_YET)
    assert items_of(group.deferred) == {A2}
    assert member(group, "W1").target_assignment.error == NOT_YET


def test_groups_that_are_not_there_or_not_of_workers() -> None:
    harness = settled()
    harness.base.ask(
        message(
            "ConsumerGroupHeartbeat",
            group_id="consumers",
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        ),
        1,
    )
    request = ConnectGroupDescribeRequest(group_ids=("none", "consumers", "", "c"))
    rows = harness.ask(request).groups
    assert [(each.group_id, each.error_code, each.error_message) for each in rows] == [
        ("", ErrorCode.INVALID_GROUP_ID, None),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        (
            "consumers",
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Group consumers is not a connect group.",
        ),
        ("c", 0, None),
    ]


@pytest.mark.parametrize("api", ["ConnectGroupPrepareAssignment", "ConnectGroupInstallAssignment"])
def test_a_request_without_a_group_id_is_invalid(api: str) -> None:
    """INVALID_REQUEST, as the draft's list of invariants has it; see decision 40."""
    answer = settled().ask(message(api, group_id="", member_id="W1", member_epoch=1))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == "GroupId can't be empty."


def test_it_asks_for_the_right_to_describe() -> None:
    rights = [
        {"principal": "User:*", "operation": "DESCRIBE", "resource_type": "GROUP", "name": "mine"}
    ]
    options = SecurityOptions(acls=acls_from_data(rights), super_users=("User:root",))
    broker = MockBroker(security=options, clock=VirtualClock(), listen=False)

    def codes(*groups: str) -> list[Any]:
        request = ConnectGroupDescribeRequest(group_ids=groups)
        answer = broker.connect(principal="User:alice").ask(request, 0)
        return [(each.group_id, each.error_code) for each in answer.groups]

    denied, missing = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.GROUP_ID_NOT_FOUND
    assert codes("theirs") == [("theirs", denied)]
    assert codes("mine", "theirs") == [("theirs", denied), ("mine", missing)]


def test_a_broker_that_does_not_coordinate_the_group() -> None:
    cluster = ClusterHarness()
    wrong = cluster.other(cluster.coordinator("g1"))
    answer = cluster.at(wrong, ConnectGroupDescribeRequest(group_ids=("g1", "")), 0)
    assert [(each.group_id, each.error_code) for each in answer.groups] == [
        ("", ErrorCode.INVALID_GROUP_ID),
        ("g1", ErrorCode.NOT_COORDINATOR),
    ]

"""A consumer group becomes a classic group when its last consumer member goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import GroupType
from mock_coordinator.core.groups.records.consumer_protocol import read_assignment
from tests.unit.mock_coordinator.groups._group_harness import EVERY_PROFILE
from tests.unit.mock_coordinator.groups.migration._mixed_harness import MixedGroupHarness, brings


def mixed_group(profile: str = "4.4", **config: str | int) -> MixedGroupHarness:
    """N (new) and c1 (classic), each with half of the partitions."""
    harness = MixedGroupHarness(profile, **config)
    harness.consumers.join("N")
    harness.bring("c1")
    harness.consumers.settle("N")
    harness.bring("c1")
    assert harness.given("c1") == {"foo": [3, 4, 5]}
    return harness


def leaves(harness: MixedGroupHarness) -> None:
    assert harness.consumers.beat("N", -1).error == 0


def expires(harness: MixedGroupHarness) -> None:
    for _ in range(5):
        harness.pass_ms(9_000)
        harness.beat("c1")


def is_removed(harness: MixedGroupHarness) -> None:
    harness.ids["N"] = "N"
    assert harness.send("admin", leave_group("N"), 5).members[0].error_code == 0


def leave_group(*member_ids: str) -> LeaveGroupRequest:
    members = tuple(LeaveGroupRequestMemberIdentity(member_id=each) for each in member_ids)
    return LeaveGroupRequest(group_id="g", members=members)


@EVERY_PROFILE
@pytest.mark.parametrize("goes", [leaves, expires, is_removed])
def test_the_last_consumer_member_goes(
    profile: str, goes: Callable[[MixedGroupHarness], None]
) -> None:
    harness = mixed_group(profile)
    epoch = harness.snapshot.epoch
    goes(harness)
    group = harness.now.group
    assert harness.snapshot.type is GroupType.CLASSIC
    assert harness.now.state == "PreparingRebalance"
    assert group.generation == epoch  # the departure itself does not count
    member = group.members[harness.ids["c1"]]
    assert read_assignment(member.assignment)[1].assigned_partitions[0].partitions == (3, 4, 5)
    assert harness.beat("c1") == 27
    answer = harness.join("c1")
    assert answer is not None
    assert (answer.generation_id, answer.leader) == (epoch + 1, harness.ids["c1"])


def test_nobody_to_go_on_with() -> None:
    harness = mixed_group()
    harness.send("admin", leave_group("N", harness.ids["c1"]), 5)
    assert harness.snapshot.type is GroupType.CONSUMER
    assert harness.snapshot.state == "Empty"


@pytest.mark.parametrize(("policy", "max_size"), [("upgrade", 9), ("downgrade", 1)])
def test_the_broker_may_not_allow_it(policy: str, max_size: int) -> None:
    harness = mixed_group(group_consumer_migration_policy=policy, group_max_size=max_size)
    harness.bring("c2")
    leaves(harness)
    assert harness.snapshot.type is GroupType.CONSUMER
    assert harness.snapshot.state == "Assigning"


def test_a_static_member_brings_the_group_back_without_a_rebalance() -> None:
    harness = MixedGroupHarness()
    epoch = harness.consumers.join("N", inst="i1").epoch
    answer = harness.join("c1", instance="i1", id_="")
    assert answer is not None
    assert (answer.error_code, answer.generation_id) == (0, epoch)
    assert harness.now.state == "Stable"
    assert harness.beat("c1", instance="i1") == 0
    assert harness.consumers.beat("N", epoch, inst="i1").error == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_static_member_with_other_wishes_begins_a_rebalance() -> None:
    harness = MixedGroupHarness()
    harness.consumers.join("N", inst="i1")
    answer = harness.join("c1", instance="i1", id_="", metadata=brings("foo", "bar"))
    assert answer is not None
    assert (answer.error_code, answer.generation_id) == (0, 0)
    assert harness.now.state == "PreparingRebalance"


def test_a_downgrade_that_cannot_be_written_keeps_the_member() -> None:
    harness = MixedGroupHarness()
    harness.consumers.join("N")
    protocols = (
        JoinGroupRequestProtocol(name="range", metadata=brings()),
        JoinGroupRequestProtocol(name="sticky", metadata=b""),
    )
    for member_id, offered in (("c1", protocols), ("c2", (sticky(),))):
        request = JoinGroupRequest(
            group_id="g",
            member_id=member_id,
            protocol_type="consumer",
            protocols=offered,
            session_timeout_ms=50_000,
            rebalance_timeout_ms=60_000,
        )
        assert harness.send(member_id, request, 9).error_code == 0
        harness.ids[member_id] = member_id
        harness.ask_for(member_id)
    answer = harness.consumers.beat("N", -1)
    assert answer.error == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.message == (
        "Cannot downgrade the classic group g: "
        "Buffer underflow while parsing consumer protocol's header."
    )
    answer = harness.send("admin", leave_group("N"), 5)
    assert (answer.error_code, answer.members) == (69, ())
    harness.pass_ms(45_000)  # nor can its session end
    assert "N" in harness.snapshot.members


def sticky() -> JoinGroupRequestProtocol:
    return JoinGroupRequestProtocol(name="sticky", metadata=brings())


def test_a_downgrade_survives_a_crash() -> None:
    harness = mixed_group()
    leaves(harness)
    before = harness.snapshot.without_timers()
    harness.restart()
    assert harness.snapshot.without_timers() == before
    assert harness.now.state == "Stable"  # as every classic group that is loaded

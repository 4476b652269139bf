"""A consumer group becomes a classic group when its last consumer member goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
)
from mock_coordinator.core.groups import GroupType
from mock_coordinator.core.groups.classic.consumer_protocol import read_assignment
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE
from tests.unit.mock_coordinator.groups.migration._mixed import Mixed, brings


def mixed_group(profile: str = "4.4", **config: str | int) -> Mixed:
    """N (new) and c1 (classic), each with half of the partitions."""
    mixed = Mixed(profile, **config)
    mixed.world.join("N")
    mixed.bring("c1")
    mixed.world.settle("N")
    mixed.bring("c1")
    assert mixed.given("c1") == {"foo": [3, 4, 5]}
    return mixed


def leaves(mixed: Mixed) -> None:
    assert mixed.world.beat("N", -1).error == 0


def expires(mixed: Mixed) -> None:
    for _ in range(5):
        mixed.pass_ms(9_000)
        mixed.beat("c1")


def is_removed(mixed: Mixed) -> None:
    mixed.ids["N"] = "N"
    assert mixed.send("admin", leave_group("N"), 5).members[0].error_code == 0


def leave_group(*member_ids: str) -> LeaveGroupRequest:
    members = tuple(LeaveGroupRequestMemberIdentity(member_id=each) for each in member_ids)
    return LeaveGroupRequest(group_id="g", members=members)


@EVERY_PROFILE
@pytest.mark.parametrize("goes", [leaves, expires, is_removed])
def test_the_last_consumer_member_goes(profile: str, goes: Callable[[Mixed], None]) -> None:
    mixed = mixed_group(profile)
    epoch = mixed.snapshot.epoch
    goes(mixed)
    group = mixed.now.group
    assert mixed.snapshot.type is GroupType.CLASSIC
    assert mixed.now.state == "PreparingRebalance"
    assert group.generation == epoch  # the departure itself does not count
    member = group.members[mixed.ids["c1"]]
    assert read_assignment(member.assignment)[1].assigned_partitions[0].partitions == (3, 4, 5)
    assert mixed.beat("c1") == 27
    answer = mixed.join("c1")
    assert answer is not None
    assert (answer.generation_id, answer.leader) == (epoch + 1, mixed.ids["c1"])


def test_nobody_to_go_on_with() -> None:
    mixed = mixed_group()
    mixed.send("admin", leave_group("N", mixed.ids["c1"]), 5)
    assert mixed.snapshot.type is GroupType.CONSUMER
    assert mixed.snapshot.state == "Empty"


@pytest.mark.parametrize(("policy", "max_size"), [("upgrade", 9), ("downgrade", 1)])
def test_the_broker_may_not_allow_it(policy: str, max_size: int) -> None:
    mixed = mixed_group(group_consumer_migration_policy=policy, group_max_size=max_size)
    mixed.bring("c2")
    leaves(mixed)
    assert mixed.snapshot.type is GroupType.CONSUMER
    assert mixed.snapshot.state == "Assigning"


def test_a_static_member_brings_the_group_back_without_a_rebalance() -> None:
    mixed = Mixed()
    epoch = mixed.world.join("N", inst="i1").epoch
    answer = mixed.join("c1", instance="i1", id_="")
    assert answer is not None
    assert (answer.error_code, answer.generation_id) == (0, epoch)
    assert mixed.now.state == "Stable"
    assert mixed.beat("c1", instance="i1") == 0
    assert mixed.world.beat("N", epoch, inst="i1").error == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_static_member_with_other_wishes_begins_a_rebalance() -> None:
    mixed = Mixed()
    mixed.world.join("N", inst="i1")
    answer = mixed.join("c1", instance="i1", id_="", metadata=brings("foo", "bar"))
    assert answer is not None
    assert (answer.error_code, answer.generation_id) == (0, 0)
    assert mixed.now.state == "PreparingRebalance"


def test_a_downgrade_that_cannot_be_written_keeps_the_member() -> None:
    mixed = Mixed()
    mixed.world.join("N")
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
        assert mixed.send(member_id, request, 9).error_code == 0
        mixed.ids[member_id] = member_id
        mixed.ask_for(member_id)
    answer = mixed.world.beat("N", -1)
    assert answer.error == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.message == (
        "Cannot downgrade the classic group g: "
        "Buffer underflow while parsing consumer protocol's header."
    )
    answer = mixed.send("admin", leave_group("N"), 5)
    assert (answer.error_code, answer.members) == (69, ())
    mixed.pass_ms(45_000)  # nor can its session end
    assert "N" in mixed.snapshot.members


def sticky() -> JoinGroupRequestProtocol:
    return JoinGroupRequestProtocol(name="sticky", metadata=brings())


def test_a_downgrade_survives_a_crash() -> None:
    mixed = mixed_group()
    leaves(mixed)
    before = mixed.snapshot.without_timers()
    mixed.restart()
    assert mixed.snapshot.without_timers() == before
    assert mixed.now.state == "Stable"  # as every classic group that is loaded

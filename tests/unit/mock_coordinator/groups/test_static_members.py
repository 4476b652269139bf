"""Static members: leaving for a while, coming back, being replaced (scenarios S38 to S44)."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, World, parts


def _two_members(world: World) -> int:
    """A (static, i1) with foo 0-2 and B with 3-5; their epoch."""
    world.join("A", inst="i1")
    world.join("B")
    world.settle("A", "B")
    assert (world.owned("A"), world.owned("B")) == (parts(foo=range(3)), parts(foo=[3, 4, 5]))
    return world.first + 1


@EVERY_PROFILE
def test_s38_leaving_for_a_while_and_coming_back(profile: str) -> None:
    world = World(profile)
    e = _two_members(world)
    answer = world.join("A2", inst="i1")
    owned = "cannot join the group because the instance id is owned by A member."
    assert (answer.error, answer.message) == (
        111,
        f"Static member A2 with instance id i1 {owned}",
    )
    answer = world.beat("A2", 5, inst="i1")
    assert (answer.error, answer.message) == (
        82,
        "Static member A2 with instance id i1 was fenced by member A.",
    )
    answer = world.beat("A", -1, inst="iX")
    assert (answer.error, answer.message) == (25, "Instance id iX is unknown.")
    before = len(world.groups.records)
    answer = world.beat("A", -2, inst="i1")
    assert (answer.error, answer.epoch, answer.interval_ms) == (0, -2, 0)
    assert world.written(before) == ["CurrentMemberAssignment"]
    assert world.shape() == f"#G{e}/A{e} Reconciling"
    assert (world.epochs("A")[0], world.owned("A")) == (-2, parts(foo=range(3)))
    assert world.beat("A", e, inst="i1").error == ErrorCode.FENCED_MEMBER_EPOCH
    before = len(world.groups.records)
    answer = world.join("A3", inst="i1")
    assert (answer.epoch, answer.assigned) == (e, parts(foo=range(3)))
    assert world.written(before)[:6] == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "MemberMetadata",
        "TargetAssignmentMember",
        "CurrentMemberAssignment",
    ]
    assert world.shape() == f"#G{e}/A{e} Stable"
    assert world.beat("A", e, inst="i1").error == ErrorCode.FENCED_INSTANCE_ID
    assert world.beat("A", e).error == ErrorCode.UNKNOWN_MEMBER_ID


@EVERY_PROFILE
def test_s39_coming_back_with_other_topics(profile: str) -> None:
    world = World(profile)
    e = _two_members(world)
    world.beat("A", -2, inst="i1")
    answer = world.join("A4", ["foo", "bar"], inst="i1")
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=[0, 1], bar=range(3)))
    assert world.target("B") == parts(foo=[2, 3, 4, 5])


@EVERY_PROFILE
def test_s40_not_coming_back(profile: str) -> None:
    world = World(profile)
    e = _two_members(world)
    world.pass_ms(20_000)
    world.beat("A", -2, inst="i1")
    world.beat("B", e)
    assert world.join("C").epoch == e + 1
    assert [world.target(member) for member in "ABC"] == [
        parts(foo=[0, 1]),
        parts(foo=[3, 4]),
        parts(foo=[2, 5]),
    ]
    world.pass_ms(24_999)
    assert "A" in world.group().members  # the session of its last real heartbeat
    world.pass_ms(1)
    assert world.shape() == f"#G{e + 2}/A{e + 1} Assigning"
    assert world.beat("B", e).assigned == parts(foo=[3, 4])
    assert world.target("B") == parts(foo=[0, 3, 4])
    assert world.target("C") == parts(foo=[1, 2, 5])


@EVERY_PROFILE
def test_s41_leaving_during_a_revocation_frees_what_was_to_be_given_up(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A", inst="i1")
    world.join("B")
    assert world.beat("A", e).assigned == parts(foo=range(3))
    world.beat("A", -2, inst="i1")
    answer = world.beat("B", e + 1)
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=[3, 4, 5]))
    answer = world.join("A2", inst="i1")
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=range(3)))


@EVERY_PROFILE
def test_s42_a_fenced_static_member_is_stuck_until_it_says_that_it_leaves(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A", inst="i1")
    assert world.beat("A", 77, inst="i1").error == ErrorCode.FENCED_MEMBER_EPOCH
    assert world.join("A", inst="i1").error == ErrorCode.UNRELEASED_INSTANCE_ID
    assert world.beat("A", -2, inst="i1").error == 0
    assert world.beat("A", -2, inst="i1").error == 0
    answer = world.join("A", inst="i1")
    assert (answer.epoch, answer.assigned) == (e, parts(foo=range(6)))


@pytest.mark.parametrize("inst", [None, "i1"])
def test_s43_a_static_member_that_leaves_for_good(inst: str | None) -> None:
    world = World("4.2")
    world.join("A", inst="i1")
    world.join("B")
    world.settle("A", "B")
    assert world.beat("A", -1, inst=inst).error == 0
    assert world.shape() == "#G3/A2 Assigning"
    answer = world.join("A2", inst="i1")
    assert (answer.epoch, answer.assigned) == (4, parts(foo=range(3)))


@EVERY_PROFILE
def test_s44_replacing_oneself_in_a_full_group(profile: str) -> None:
    world = World(profile, group_consumer_max_size=1)
    world.join("A", inst="i")
    world.beat("A", -2, inst="i")
    assert world.join("A3", inst="i").error == (
        0 if profile == "4.4" else ErrorCode.GROUP_MAX_SIZE_REACHED
    )


def test_a_static_member_may_leave_its_instance_id_out() -> None:
    world = World("4.4")
    world.join("A", inst="i1")
    assert world.beat("A", 2).error == 0
    assert world.member("A").subscription.instance_id == "i1"


def test_a_dynamic_member_becomes_static_by_joining_again() -> None:
    world = World("4.0")
    world.join("A")
    world.join("B")
    world.settle("A", "B")
    before = len(world.groups.records)
    answer = world.join("A", inst="i1")  # no epoch check on this path, even in 4.0
    assert (answer.error, answer.epoch) == (0, 2)
    assert world.written(before)[0] == "MemberMetadata"
    assert world.join("A", inst="i1").error == ErrorCode.UNRELEASED_INSTANCE_ID


def test_the_session_timer_of_a_replaced_member_hits_nobody() -> None:
    world = World("4.4")
    e = _two_members(world)
    world.beat("A", -2, inst="i1")
    world.pass_ms(10_000)
    world.join("A2", inst="i1")
    world.beat("B", e)
    world.pass_ms(35_000)
    assert set(world.group().members) == {"A2", "B"}

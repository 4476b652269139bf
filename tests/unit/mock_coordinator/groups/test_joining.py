"""Members that join, wait, give up and receive: scenarios S01 to S11 on every profile."""

from __future__ import annotations

import pytest

from mock_coordinator.core.groups import MemberState
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, World, parts


@EVERY_PROFILE
def test_s01_a_single_member_gets_everything(profile: str) -> None:
    world = World(profile)
    e = world.first
    answer = world.join("A")
    assert (answer.epoch, answer.assigned, answer.interval_ms) == (e, parts(foo=range(6)), 5000)
    assert answer.member_id == "A"
    assert world.beat("A", e).assigned is None
    assert world.shape() == f"#G{e}/A{e} Stable"


@EVERY_PROFILE
def test_s02_version_0_lets_the_broker_choose_the_member_id(profile: str) -> None:
    world = World(profile, member_id="chosen")
    answer = world.beat("", 0, {}, names=["foo"], rto=1, version=0)
    assert (answer.error, answer.member_id) == (0, "chosen")
    refused = world.beat("", 0, {}, names=["foo"], rto=1, version=1)
    assert (refused.error, refused.message) == (42, "MemberId can't be empty.")


@EVERY_PROFILE
def test_s03_two_members_step_by_step(profile: str) -> None:
    world = World(profile)
    e = world.first
    assert world.join("A").assigned == parts(foo=range(6))
    assert world.epochs("A") == (e, 0)
    answer = world.join("B")
    assert (answer.epoch, answer.assigned) == (e + 1, {})
    assert world.target("A") == parts(foo=range(3))
    assert world.target("B") == parts(foo=[3, 4, 5])
    assert world.member("B").state is MemberState.UNRELEASED_PARTITIONS
    before = len(world.groups.records)
    assert world.beat("B", e + 1).assigned is None
    assert world.epochs("B") == (e + 1, e + 1)
    assert world.written(before) == ["CurrentMemberAssignment"]
    assert world.beat("A", e).assigned == parts(foo=range(3))
    assert world.member("A").state is MemberState.UNREVOKED_PARTITIONS
    assert world.epochs("A") == (e, e)
    assert world.beat("A", e).assigned is None
    answer = world.beat("A", e, {"foo": range(3)})
    assert (answer.epoch, answer.assigned) == (e + 1, None)
    assert world.epochs("A") == (e + 1, e)
    answer = world.beat("B", e + 1)
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=[3, 4, 5]))
    assert world.shape() == f"#G{e + 1}/A{e + 1} Stable"


def test_s04_a_waiting_member_sees_nothing_early() -> None:
    world = World("4.2")
    world.join("A")
    assert world.join("B").assigned == {}
    assert world.beat("B", 2).assigned is None
    assert world.beat("A", 1).assigned == parts(foo=range(3))
    assert world.beat("B", 2).assigned is None
    assert world.beat("A", 1, {"foo": range(3)}).epoch == 2
    assert world.beat("B", 2).assigned == parts(foo=[3, 4, 5])


@EVERY_PROFILE
def test_s05_a_member_that_has_let_go_already_moves_on_at_once(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.join("B")
    answer = world.beat("A", e, {"foo": range(3)})
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=range(3)))


def _three_members(world: World) -> int:
    """S06: A, B, C with two partitions each; the group epoch."""
    e = world.first
    world.join("A")
    world.join("B")
    world.settle("A", "B")
    assert world.join("C").epoch == e + 2
    assert [world.target(member) for member in "ABC"] == [
        parts(foo=[0, 1]),
        parts(foo=[3, 4]),
        parts(foo=[2, 5]),
    ]
    assert world.beat("A", e + 1).assigned == parts(foo=[0, 1])
    assert world.beat("A", e + 1, {"foo": [0, 1]}).epoch == e + 2
    answer = world.beat("B", e + 1)
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=[3, 4]))
    assert world.beat("B", e + 1, {"foo": [3, 4]}).epoch == e + 2
    assert world.beat("C", e + 2).assigned == parts(foo=[2, 5])
    assert world.shape() == f"#G{e + 2}/A{e + 2} Stable"
    return e + 2


@EVERY_PROFILE
def test_s06_s07_leaving_rebalances_at_the_next_heartbeat_of_anybody(profile: str) -> None:
    world = World(profile)
    epoch = _three_members(world)
    answer = world.beat("C", -1)
    assert (answer.epoch, answer.interval_ms, answer.assigned) == (-1, 0, None)
    assert world.shape() == f"#G{epoch + 1}/A{epoch} Assigning"
    answer = world.beat("B", epoch)
    assert (answer.epoch, answer.assigned) == (epoch + 1, parts(foo=[3, 4, 5]))
    assert world.shape() == f"#G{epoch + 1}/A{epoch + 1} Reconciling"
    answer = world.beat("A", epoch)
    assert (answer.epoch, answer.assigned) == (epoch + 1, parts(foo=[0, 1, 2]))
    assert world.shape() == f"#G{epoch + 1}/A{epoch + 1} Stable"


def test_s08_more_members_than_partitions() -> None:
    world = World("4.2")
    world.create("baz", 3)
    for member in "ABC":
        world.join(member, ["baz"])
        world.settle(*"ABC"[: "ABC".index(member) + 1])
    assert [world.owned(member) for member in "ABC"] == [
        parts(baz=[0]),
        parts(baz=[2]),
        parts(baz=[1]),
    ]
    answer = world.join("D", ["baz"])
    assert (answer.epoch, answer.assigned) == (4, {})
    assert world.member("D").state is MemberState.STABLE
    world.beat("A", -1)
    assert world.beat("B", 3).epoch == 5
    assert world.target("D") == parts(baz=[0])


@pytest.mark.parametrize(("profile", "kept"), [("4.0", 2), ("4.1", 2), ("4.2", 1), ("4.4", 2)])
def test_s09_a_second_revocation_before_the_first_is_done(profile: str, kept: int) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.join("B")
    assert world.beat("A", e).assigned == parts(foo=range(3))
    assert world.join("C").assigned == {}
    answer = world.beat("A", e, {"foo": range(3)})
    assert (answer.epoch, answer.assigned) == (kept, parts(foo=[0, 1]))
    assert world.epochs("A") == (kept, e)
    answer = world.beat("A", kept, {"foo": [0, 1]})
    assert (answer.epoch, answer.assigned) == (e + 2, None)
    answer = world.beat("B", e + 1)
    assert (answer.epoch, answer.assigned) == (e + 2, parts(foo=[3, 4]))
    assert world.beat("C", e + 2).assigned == parts(foo=[2, 5])


@EVERY_PROFILE
def test_s10_a_partition_comes_back_before_it_was_given_up(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.join("B")
    world.beat("A", e)
    world.beat("B", -1)
    assert world.shape() == f"#G{e + 2}/A{e + 1} Assigning"
    assert (world.beat("A", e).assigned, world.target("A")) == (None, parts(foo=range(6)))
    answer = world.beat("A", e, {"foo": range(6)})
    assert (answer.epoch, answer.assigned) == (e, None)
    answer = world.beat("A", e, {"foo": range(3)})
    assert (answer.epoch, answer.assigned) == (e + 2, parts(foo=range(6)))


@EVERY_PROFILE
def test_s11_a_leaver_frees_its_partitions(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.join("B")
    world.beat("A", -1)
    answer = world.beat("B", e + 1)
    assert (answer.epoch, answer.assigned) == (e + 2, parts(foo=range(6)))
    assert world.shape() == f"#G{e + 2}/A{e + 2} Stable"


def test_the_records_of_a_join_come_in_kafkas_order() -> None:
    world = World("4.2")
    world.join("A")
    assert world.written(0) == [
        "MemberMetadata",
        "GroupEpochMetadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
    ]
    before = len(world.groups.records)
    world.beat("A", 1)
    assert world.written(before) == []
    world.beat("A", -1)
    assert world.written(before) == [
        "-CurrentMemberAssignment",
        "-TargetAssignmentMember",
        "-MemberMetadata",
        "GroupEpochMetadata",
    ]


def test_kafka_4_0_remembers_topics_and_kafka_4_4_an_empty_target() -> None:
    old, new = World("4.0"), World("4.4")
    for world in (old, new):
        world.join("A")
        world.beat("A", -1)
    assert old.written(0)[1:3] == ["PartitionMetadata", "GroupEpochMetadata"]
    assert old.written(5)[-2:] == ["PartitionMetadata", "GroupEpochMetadata"]
    assert new.written(5)[-2:] == ["GroupEpochMetadata", "TargetAssignmentMetadata"]
    assert (old.shape(), new.shape()) == ("#G2/A1 Empty", "#G3/A3 Empty")

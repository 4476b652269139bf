"""Changes of topics and of subscriptions: scenarios S19 to S26."""

from __future__ import annotations

import pytest

from mock_coordinator.core.groups import MemberState
from mock_coordinator.core.inputs import ClientInfo
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, FROM_4_3, World, parts


@EVERY_PROFILE
def test_s19_other_topics(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    answer = world.beat("A", e, names=["bar"])
    assert (answer.epoch, answer.assigned) == (e, {})
    assert world.shape() == f"#G{e + 1}/A{e + 1} Reconciling"
    assert world.beat("A", e, {"foo": [0]}).assigned is None
    answer = world.beat("A", e, {})
    assert (answer.epoch, answer.assigned) == (e + 1, parts(bar=range(3)))


@EVERY_PROFILE
def test_s20_fewer_topics(profile: str) -> None:
    world = World(profile)
    e = world.first
    assert world.join("A", ["foo", "bar"]).assigned == parts(foo=range(6), bar=range(3))
    answer = world.beat("A", e, names=["foo"])
    assert (answer.epoch, answer.assigned) == (e, parts(foo=range(6)))
    answer = world.beat("A", e, {"foo": range(6)})
    assert (answer.epoch, answer.assigned) == (e + 1, None)


@EVERY_PROFILE
def test_s21_no_topics_any_more(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.join("B")
    answer = world.beat("A", e, names=[])
    assert (answer.epoch, answer.assigned) == (e, {})
    answer = world.beat("A", e, {})
    assert (answer.epoch, answer.assigned) == (e + 2, None)
    answer = world.beat("B", e + 1)
    assert (answer.epoch, answer.assigned) == (e + 2, parts(foo=range(6)))


@EVERY_PROFILE
def test_s22_joins_without_topics(profile: str) -> None:
    world = World(profile)
    assert (world.join("A", []).epoch, world.join("B", []).epoch) == (1, 1)
    answer = world.join("C")
    assert (answer.epoch, answer.assigned) == (2, parts(foo=range(6)))
    written = world.written(0)[:2]
    if profile in FROM_4_3:
        assert written == ["MemberMetadata", "CurrentMemberAssignment"]
    else:
        assert written[1] == "GroupEpochMetadata"


def test_s23_what_does_not_move_the_epoch() -> None:
    world = World("4.3")
    world.join("A")
    before = len(world.groups.records)
    answers = [
        world.beat("A", 2, rack="r1"),
        world.beat("A", 2, assignor="range"),
        world.beat("A", 2, rto=5),
        world.beat("A", 2, client=ClientInfo("other", "/127.0.0.2")),
    ]
    for answer in answers:
        assert (answer.error, answer.epoch, answer.assigned) == (0, 2, None)
    assert world.written(before) == ["MemberMetadata"] * 4
    assert world.group().epoch == 2


def test_s23_the_order_and_repetition_of_names_are_nothing() -> None:
    world = World("4.4")
    world.join("A", ["foo", "bar"])
    before = len(world.groups.records)
    assert world.beat("A", 2, names=["bar", "foo", "bar"]).epoch == 2
    assert world.written(before) == []


@EVERY_PROFILE
def test_s24_s25_topics_come_grow_and_go(profile: str) -> None:
    world = World(profile)
    e = world.first
    assert world.join("A", ["foo", "zzz"]).assigned == parts(foo=range(6))
    world.create("zzz", 2)
    assert world.shape() == f"#G{e}/A{e} Stable"
    answer = world.beat("A", e)
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=range(6), zzz=[0, 1]))
    world.grow("foo", 8)
    answer = world.beat("A", e + 1)
    assert (answer.epoch, answer.assigned) == (e + 2, parts(foo=range(8), zzz=[0, 1]))
    world.delete("zzz")
    answer = world.beat("A", e + 2)
    assert (answer.epoch, answer.assigned) == (e + 2, parts(foo=range(8)))
    assert world.shape() == f"#G{e + 3}/A{e + 3} Reconciling"
    answer = world.beat("A", e + 2, {"foo": range(8)})
    assert (answer.epoch, answer.assigned) == (e + 3, None)


@EVERY_PROFILE
def test_s26_a_topic_that_does_not_exist(profile: str) -> None:
    world = World(profile)
    answer = world.join("A", ["nope"])
    assert (answer.epoch, answer.assigned) == (world.first, {})
    assert world.shape().endswith("Stable")


@EVERY_PROFILE
def test_a_topic_created_again_is_another_topic(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.delete("foo")
    again = world.create("foo", 2)
    answer = world.beat("A", e)
    assert (answer.epoch, answer.assigned) == (e, {})  # the old one is to be given up first
    assert world.member("A").state is MemberState.UNREVOKED_PARTITIONS
    answer = world.beat("A", e, {})
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=[0, 1]))
    assert set(world.member("A").owned) == {again}


def test_a_change_of_an_unrelated_topic_costs_nothing() -> None:
    world = World("4.4")
    world.join("A")
    world.create("other", 1)
    before = len(world.groups.records)
    assert world.beat("A", 2).epoch == 2
    assert world.written(before) == []


@pytest.mark.parametrize("profile", ["4.2", "4.3"])
def test_two_reasons_in_one_heartbeat_move_the_epoch_once(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.grow("foo", 7)
    assert world.beat("A", e, names=["foo", "bar"]).epoch == e + 1
    assert world.group().epoch == e + 1


def test_the_vote_for_an_assignor_moves_the_epoch_from_4_4_on() -> None:
    for profile, moved in (("4.3", 2), ("4.4", 3)):
        world = World(profile)
        world.join("A")
        assert world.beat("A", 2, assignor="range").epoch == moved
        assert world.beat("A", moved, assignor="range").epoch == moved


def test_a_tie_of_votes_moves_the_epoch_with_every_heartbeat_in_4_4() -> None:
    # what Kafka 4.4.0 does: the winner as described and the winner as elected differ
    world = World("4.4")
    world.join("A", assignor="uniform")
    world.join("B", assignor="range")
    seen = {world.group().epoch}
    for _ in range(3):
        for member in "AB":
            world.beat(member, world.member(member).epoch)
            seen.add(world.group().epoch)
    assert len(seen) > 3

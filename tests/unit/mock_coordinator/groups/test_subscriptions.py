"""Changes of topics and of subscriptions: what the scenarios S19 to S26 do not show."""

from __future__ import annotations

import pytest

from mock_coordinator.core.groups import MemberState
from mock_coordinator.core.inputs import ClientInfo
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, World, parts


def test_a_client_that_calls_from_elsewhere_is_stored_and_moves_nothing() -> None:
    world = World("4.3")
    world.join("A")
    before = len(world.groups.records)
    answer = world.beat("A", 2, client=ClientInfo("other", "/127.0.0.2"))
    assert (answer.error, answer.epoch, answer.assigned) == (0, 2, None)
    assert world.written(before) == ["MemberMetadata"]
    assert world.group().epoch == 2


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

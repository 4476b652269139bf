"""Regex subscriptions: what the scenarios S27 to S31 do not show."""

from __future__ import annotations

import pytest

from tests.unit.mock_coordinator.groups._world import (
    EVERY_PROFILE,
    World,
    parts,
    topic_id,
)

FOO = parts(foo=range(6))


def _resolved(world: World, member: str = "A") -> None:
    """A member with ``foo.*`` that has got its partitions, at epoch 2."""
    answer = world.join(member, None, regex="foo.*")
    assert (answer.epoch, answer.assigned) == (1, {})
    assert world.group().resolving
    world.pass_ms(0)
    assert world.shape() == "#G2/A1 Assigning"
    answer = world.beat(member, 1)
    assert (answer.epoch, answer.assigned) == (2, FOO)


@EVERY_PROFILE
def test_new_topics_are_looked_for_after_more_than_ten_seconds(profile: str) -> None:
    world = World(profile)
    _resolved(world)
    world.join("B", None, regex="foo.*")
    world.create("foo2", 2)
    assert world.beat("A", 2).assigned == parts(foo=range(3))
    assert not world.group().resolving
    world.pass_ms(10_000)
    world.beat("A", 2, {"foo": range(3)})
    assert not world.group().resolving  # exactly 10 s is not more than 10 s
    world.pass_ms(1)
    before = world.group().epoch
    world.beat("A", 3)
    assert world.group().resolving
    world.pass_ms(0)
    assert world.shape() == f"#G{before + 1}/A{before} Assigning"
    world.beat("A", 3)
    assert world.group().assignment_epoch == before + 1
    assert world.group().resolved_regexes["foo.*"].topics == ("foo", "foo2")


@EVERY_PROFILE
def test_a_regex_that_matches_nothing_is_remembered_and_moves_nothing(profile: str) -> None:
    world = World(profile)
    world.join("A", None, regex="nothing")
    world.pass_ms(0)
    assert world.group().resolved_regexes["nothing"].topics == ()
    assert world.shape() == "#G1/A1 Stable"


def test_every_regex_is_resolved_again_after_ten_minutes_from_4_1_on() -> None:
    for profile, again in (("4.0", False), ("4.1", True), ("4.4", True)):
        world = World(profile)
        _resolved(world)
        for _ in range(60):
            world.pass_ms(10_000)
            world.beat("A", 2)
        assert not world.group().resolving
        world.pass_ms(1)
        world.beat("A", 2)
        assert world.group().resolving is again
        epoch = world.group().epoch
        world.pass_ms(0)
        assert world.group().epoch == epoch


def test_removing_a_regex_alone_moves_the_epoch_from_4_1_on() -> None:
    for profile, epoch in (("4.0", 2), ("4.1", 3)):
        world = World(profile)
        _resolved(world)
        world.beat("A", 2, regex="")
        assert world.group().epoch == epoch
        assert world.group().resolved_regexes == {}


@pytest.mark.parametrize("profile", ["4.0", "4.4"])
def test_the_last_user_of_a_regex_takes_it_along(profile: str) -> None:
    world = World(profile)
    _resolved(world)
    world.join("B", None, regex="foo.*")
    before = len(world.groups.records)
    world.beat("A", -1)
    assert "-RegularExpression" not in world.written(before)
    before = len(world.groups.records)
    world.beat("B", -1)
    assert world.written(before)[3] == "-RegularExpression"


def test_a_resolution_for_a_group_that_is_gone_does_nothing() -> None:
    world = World("4.3")
    world.join("A", None, regex="foo.*")
    world.beat("A", -1)
    before = len(world.groups.records)
    world.pass_ms(0)
    assert world.written(before) == []


def test_internal_topics_match_too() -> None:
    world = World("4.4")
    world.catalog.create("__consumer_offsets", 50, topic_id(77), internal=True)
    world.join("A", None, regex=".*")
    world.pass_ms(0)
    assert world.group().resolved_regexes[".*"].topics == ("__consumer_offsets", "bar", "foo")

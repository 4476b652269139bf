"""The least time between two targets (KIP-1263, 4.3 and later): scenarios S58 and S59."""

from __future__ import annotations

import pytest

from tests.unit.mock_coordinator.groups._world import FROM_4_3, World, parts

LATER = pytest.mark.parametrize("profile", FROM_4_3)


def _with_interval(profile: str) -> World:
    return World(profile, group_consumer_assignment_interval_ms=1000)


@LATER
def test_s58_joins_within_a_second_share_a_target(profile: str) -> None:
    world = _with_interval(profile)
    assert world.join("A").assigned == parts(foo=range(6))
    answer = world.join("B")
    assert (answer.epoch, answer.assigned) == (2, {})
    assert world.shape() == "#G3/A2 Assigning"
    assert (world.beat("A", 2).assigned, world.beat("B", 2).assigned) == (None, None)
    world.pass_ms(900)
    assert world.beat("B", 2).epoch == 2
    world.pass_ms(150)
    answer = world.beat("B", 2)
    assert (answer.epoch, answer.assigned) == (3, None)
    assert world.group().assignment_epoch == 3
    assert world.beat("A", 2).assigned == parts(foo=range(3))
    assert world.beat("A", 2, {"foo": range(3)}).epoch == 3
    assert world.beat("B", 3).assigned == parts(foo=[3, 4, 5])


@LATER
def test_the_interval_ends_with_its_last_millisecond(profile: str) -> None:
    world = _with_interval(profile)
    world.join("A")
    world.join("B")
    world.pass_ms(999)
    assert world.beat("B", 2).epoch == 2
    world.pass_ms(1)
    assert world.beat("B", 2).epoch == 3


def test_s59_an_empty_group_does_not_forget_its_last_target_in_4_3() -> None:
    world = _with_interval("4.3")
    world.join("A")
    world.beat("A", -1)
    answer = world.join("A")
    assert (answer.epoch, answer.assigned) == (2, {})
    assert world.shape() == "#G4/A2 Assigning"
    world.pass_ms(1000)
    answer = world.beat("A", 2)
    assert (answer.epoch, answer.assigned) == (4, parts(foo=range(6)))


def test_s59_it_does_in_4_4() -> None:
    world = _with_interval("4.4")
    world.join("A")
    world.beat("A", -1)
    assert world.shape() == "#G3/A3 Empty"
    answer = world.join("A")
    assert (answer.epoch, answer.assigned) == (4, parts(foo=range(6)))


@LATER
def test_a_change_of_topics_within_the_interval_takes_the_old_ones_away(profile: str) -> None:
    world = _with_interval(profile)
    world.join("A")
    answer = world.beat("A", 2, names=["bar"])
    assert (answer.epoch, answer.assigned) == (2, {})
    assert world.shape() == "#G3/A2 Assigning"
    answer = world.beat("A", 2, {})
    assert (answer.epoch, answer.assigned) == (2, None)
    world.pass_ms(1000)
    answer = world.beat("A", 2)
    assert (answer.epoch, answer.assigned) == (3, parts(bar=range(3)))


@LATER
def test_an_interval_of_zero_computes_every_time(profile: str) -> None:
    world = World(profile)
    world.join("A")
    assert world.join("B").epoch == 3


def test_there_is_no_interval_before_4_3() -> None:
    world = World("4.2")
    world.join("A")
    assert world.join("B").epoch == 2
    assert world.group().assignment_timestamp_ms == 0

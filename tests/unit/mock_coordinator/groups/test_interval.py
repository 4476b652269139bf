"""The least time between two targets (KIP-1263, 4.3 and later): what S58 and S59 do not show."""

from __future__ import annotations

import pytest

from tests.unit.mock_coordinator.groups._group_harness import FROM_4_3, GroupHarness, parts

LATER = pytest.mark.parametrize("profile", FROM_4_3)


def _with_interval(profile: str) -> GroupHarness:
    return GroupHarness(profile, group_consumer_assignment_interval_ms=1000)


@LATER
def test_the_interval_ends_with_its_last_millisecond(profile: str) -> None:
    harness = _with_interval(profile)
    harness.join("A")
    harness.join("B")
    harness.pass_ms(999)
    assert harness.beat("B", 2).epoch == 2
    harness.pass_ms(1)
    assert harness.beat("B", 2).epoch == 3


@LATER
def test_a_change_of_topics_within_the_interval_takes_the_old_ones_away(profile: str) -> None:
    harness = _with_interval(profile)
    harness.join("A")
    answer = harness.beat("A", 2, names=["bar"])
    assert (answer.epoch, answer.assigned) == (2, {})
    assert harness.shape() == "#G3/A2 Assigning"
    answer = harness.beat("A", 2, {})
    assert (answer.epoch, answer.assigned) == (2, None)
    harness.pass_ms(1000)
    answer = harness.beat("A", 2)
    assert (answer.epoch, answer.assigned) == (3, parts(bar=range(3)))


@LATER
def test_an_interval_of_zero_computes_every_time(profile: str) -> None:
    harness = GroupHarness(profile)
    harness.join("A")
    assert harness.join("B").epoch == 3


def test_there_is_no_interval_before_4_3() -> None:
    harness = GroupHarness("4.2")
    harness.join("A")
    assert harness.join("B").epoch == 2
    assert harness.group().assignment_timestamp_ms == 0

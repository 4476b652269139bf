"""Regex subscriptions: what the scenarios S27 to S31 do not show."""

from __future__ import annotations

import pytest

from tests.unit.mock_coordinator.groups._group_harness import (
    EVERY_PROFILE,
    GroupHarness,
    parts,
    topic_id,
)

FOO = parts(foo=range(6))


def _resolved(harness: GroupHarness, member: str = "A") -> None:
    """A member with ``foo.*`` that has got its partitions, at epoch 2."""
    answer = harness.join(member, None, regex="foo.*")
    assert (answer.epoch, answer.assigned) == (1, {})
    assert harness.group().resolving
    harness.pass_ms(0)
    assert harness.shape() == "#G2/A1 Assigning"
    answer = harness.beat(member, 1)
    assert (answer.epoch, answer.assigned) == (2, FOO)


@EVERY_PROFILE
def test_new_topics_are_looked_for_after_more_than_ten_seconds(profile: str) -> None:
    harness = GroupHarness(profile)
    _resolved(harness)
    harness.join("B", None, regex="foo.*")
    harness.create("foo2", 2)
    assert harness.beat("A", 2).assigned == parts(foo=range(3))
    assert not harness.group().resolving
    harness.pass_ms(10_000)
    harness.beat("A", 2, {"foo": range(3)})
    assert not harness.group().resolving  # exactly 10 s is not more than 10 s
    harness.pass_ms(1)
    before = harness.group().epoch
    harness.beat("A", 3)
    assert harness.group().resolving
    harness.pass_ms(0)
    assert harness.shape() == f"#G{before + 1}/A{before} Assigning"
    harness.beat("A", 3)
    assert harness.group().assignment_epoch == before + 1
    assert harness.group().resolved_regexes["foo.*"].topics == ("foo", "foo2")


@EVERY_PROFILE
def test_a_regex_that_matches_nothing_is_remembered_and_moves_nothing(profile: str) -> None:
    harness = GroupHarness(profile)
    harness.join("A", None, regex="nothing")
    harness.pass_ms(0)
    assert harness.group().resolved_regexes["nothing"].topics == ()
    assert harness.shape() == "#G1/A1 Stable"


def test_every_regex_is_resolved_again_after_ten_minutes_from_4_1_on() -> None:
    for profile, again in (("4.0", False), ("4.1", True), ("4.4", True)):
        harness = GroupHarness(profile)
        _resolved(harness)
        for _ in range(60):
            harness.pass_ms(10_000)
            harness.beat("A", 2)
        assert not harness.group().resolving
        harness.pass_ms(1)
        harness.beat("A", 2)
        assert harness.group().resolving is again
        epoch = harness.group().epoch
        harness.pass_ms(0)
        assert harness.group().epoch == epoch


def test_removing_a_regex_alone_moves_the_epoch_from_4_1_on() -> None:
    for profile, epoch in (("4.0", 2), ("4.1", 3)):
        harness = GroupHarness(profile)
        _resolved(harness)
        harness.beat("A", 2, regex="")
        assert harness.group().epoch == epoch
        assert harness.group().resolved_regexes == {}


@pytest.mark.parametrize("profile", ["4.0", "4.4"])
def test_the_last_user_of_a_regex_takes_it_along(profile: str) -> None:
    harness = GroupHarness(profile)
    _resolved(harness)
    harness.join("B", None, regex="foo.*")
    before = len(harness.groups.records)
    harness.beat("A", -1)
    assert "-RegularExpression" not in harness.written(before)
    before = len(harness.groups.records)
    harness.beat("B", -1)
    assert harness.written(before)[3] == "-RegularExpression"


def test_a_resolution_for_a_group_that_is_gone_does_nothing() -> None:
    harness = GroupHarness("4.3")
    harness.join("A", None, regex="foo.*")
    harness.beat("A", -1)
    before = len(harness.groups.records)
    harness.pass_ms(0)
    assert harness.written(before) == []


def test_internal_topics_match_too() -> None:
    harness = GroupHarness("4.4")
    harness.catalog.create("__consumer_offsets", 50, topic_id(77), internal=True)
    harness.join("A", None, regex=".*")
    harness.pass_ms(0)
    assert harness.group().resolved_regexes[".*"].topics == ("__consumer_offsets", "bar", "foo")

"""Changes of topics and of subscriptions: what the scenarios S19 to S26 do not show."""

from __future__ import annotations

import pytest

from mock_coordinator.core.groups import MemberState
from mock_coordinator.core.inputs import ClientInfo
from tests.unit.mock_coordinator.groups._group_harness import EVERY_PROFILE, GroupHarness, parts


def test_a_client_that_calls_from_elsewhere_is_stored_and_moves_nothing() -> None:
    harness = GroupHarness("4.3")
    harness.join("A")
    before = len(harness.groups.records)
    answer = harness.beat("A", 2, client=ClientInfo("other", "/127.0.0.2"))
    assert (answer.error, answer.epoch, answer.assigned) == (0, 2, None)
    assert harness.written(before) == ["MemberMetadata"]
    assert harness.group().epoch == 2


@EVERY_PROFILE
def test_a_topic_created_again_is_another_topic(profile: str) -> None:
    harness = GroupHarness(profile)
    e = harness.first
    harness.join("A")
    harness.delete("foo")
    again = harness.create("foo", 2)
    answer = harness.beat("A", e)
    assert (answer.epoch, answer.assigned) == (e, {})  # the old one is to be given up first
    assert harness.member("A").state is MemberState.UNREVOKED_PARTITIONS
    answer = harness.beat("A", e, {})
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=[0, 1]))
    assert set(harness.member("A").owned) == {again}


def test_a_change_of_an_unrelated_topic_costs_nothing() -> None:
    harness = GroupHarness("4.4")
    harness.join("A")
    harness.create("other", 1)
    before = len(harness.groups.records)
    assert harness.beat("A", 2).epoch == 2
    assert harness.written(before) == []


@pytest.mark.parametrize("profile", ["4.2", "4.3"])
def test_two_reasons_in_one_heartbeat_move_the_epoch_once(profile: str) -> None:
    harness = GroupHarness(profile)
    e = harness.first
    harness.join("A")
    harness.grow("foo", 7)
    assert harness.beat("A", e, names=["foo", "bar"]).epoch == e + 1
    assert harness.group().epoch == e + 1


def test_the_vote_for_an_assignor_moves_the_epoch_from_4_4_on() -> None:
    for profile, moved in (("4.3", 2), ("4.4", 3)):
        harness = GroupHarness(profile)
        harness.join("A")
        assert harness.beat("A", 2, assignor="range").epoch == moved
        assert harness.beat("A", moved, assignor="range").epoch == moved


def test_a_tie_of_votes_moves_the_epoch_with_every_heartbeat_in_4_4() -> None:
    # what Kafka 4.4.0 does: the winner as described and the winner as elected differ
    harness = GroupHarness("4.4")
    harness.join("A", assignor="uniform")
    harness.join("B", assignor="range")
    seen = {harness.group().epoch}
    for _ in range(3):
        for member in "AB":
            harness.beat(member, harness.member(member).epoch)
            seen.add(harness.group().epoch)
    assert len(seen) > 3

"""Epoch checks, lost answers and unknown members: scenarios S12 to S17."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, FROM_4_2, World, parts


def _fenced(how: str, received: int, known: int) -> tuple[int, str]:
    return 110, (
        f"The consumer group member has a {how} member epoch ({received}) than the one known by "
        f"the group coordinator ({known}). The member must abandon all its partitions and rejoin."
    )


@EVERY_PROFILE
def test_s12_a_lost_acknowledgement_may_be_repeated(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.join("B")
    world.beat("A", e)
    assert world.beat("A", e, {"foo": range(3)}).epoch == e + 1
    again = world.beat("A", e, {"foo": range(3)})
    assert (again.error, again.epoch, again.assigned) == (0, e + 1, None)
    for owned in (None, {"foo": range(4)}, {"bar": [0]}, {"nowhere": [0]}):
        refused = world.beat("A", e, owned)
        assert (refused.error, refused.message) == _fenced("smaller", e, e + 1)
        assert (refused.member_id, refused.epoch, refused.interval_ms) == (None, 0, 0)
    assert world.beat("A", e, {}).epoch == e + 1
    full = world.beat("A", e, {"foo": [0, 1]}, names=["foo"], rto=30_000)
    assert (full.epoch, full.assigned) == (e + 1, parts(foo=range(3)))
    assert "A" in world.group().members


@EVERY_PROFILE
def test_s13_a_member_from_the_future_is_fenced_and_stays(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    refused = world.beat("A", 99)
    assert (refused.error, refused.message) == _fenced("greater", 99, e)
    assert world.beat("A", e).error == 0


@EVERY_PROFILE
def test_s14_rejoining_with_epoch_0(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    assert world.join("A").assigned == parts(foo=range(6))
    world.join("B")
    world.beat("A", e)
    answer = world.join("A")
    if profile in FROM_4_2:
        assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=range(3)))
        assert world.group().epoch == e + 1
    else:
        assert (answer.error, answer.message) == _fenced("smaller", 0, e)


@EVERY_PROFILE
def test_s15_rejoining_with_other_topics(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    answer = world.join("A", ["foo", "bar"])
    assert (answer.epoch, answer.assigned) == (e + 1, parts(foo=range(6), bar=range(3)))
    answer = world.join("A", ["bar"])
    if profile in FROM_4_2:
        assert (answer.epoch, answer.assigned) == (e + 2, parts(bar=range(3)))
    else:
        assert answer.error == ErrorCode.FENCED_MEMBER_EPOCH


@EVERY_PROFILE
def test_s16_unknown_groups_and_members(profile: str) -> None:
    world = World(profile)
    answer = world.beat("A", 3)
    assert (answer.error, answer.message) == (69, "Consumer group g not found.")
    answer = world.beat("A", -1)
    assert (answer.error, answer.message) == (69, "Group g not found.")
    assert world.groups.group_ids == ()
    world.join("A")
    for epoch in (1, -1):
        answer = world.beat("Z", epoch)
        assert (answer.error, answer.message) == (25, "Member Z is not a member of group g.")
    assert world.beat("A", -1).error == 0
    assert world.beat("A", -1).error == ErrorCode.UNKNOWN_MEMBER_ID


@EVERY_PROFILE
def test_s17_a_full_request_gets_the_whole_assignment(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    every = parts(foo=range(6))
    for owned in (range(6), [0]):
        full = world.beat("A", e, {"foo": owned}, names=["foo"], rto=30_000)
        assert full.assigned == every
    assert world.beat("A", e, names=["foo"]).assigned is None
    assert world.beat("A", e, rto=10_000).assigned is None
    assert world.beat("A", e, {"foo": range(6)}, regex="", rto=30_000).assigned == every


def test_a_simple_group_is_no_group_to_a_live_member() -> None:
    world = World()
    world.commit("", -1, {"foo": {0: 7}})
    for epoch in (3, -1):
        answer = world.beat("A", epoch)
        assert (answer.error, answer.message) == (69, "Group g is not a consumer group.")


@pytest.mark.parametrize("profile", ["4.2", "4.4"])
def test_a_member_joins_in_place_of_a_simple_group_and_finds_its_offsets(profile: str) -> None:
    world = World(profile)
    world.commit("", -1, {"foo": {0: 7}})
    before = len(world.groups.records)
    assert world.join("A").epoch == world.first
    assert world.written(before)[:2] == ["-GroupMetadata", "MemberMetadata"]
    assert world.fetch({"foo": [0]}) == {"foo": {0: 7}}

"""Classic members in a consumer group: joining, catching up, and what they must do in time."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.member_state import MemberState
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, FOO, parts
from tests.unit.mock_coordinator.groups.migration._mixed import Mixed, brings

EARLY, LATE = ("4.0", "4.1", "4.2"), ("4.3", "4.4")


@EVERY_PROFILE
def test_one_join_is_one_step(profile: str) -> None:
    mixed = Mixed(profile)
    first = mixed.world.join("N").epoch
    joined = mixed.bring("c1")
    assert (joined.generation_id, joined.leader, joined.members) == (first + 1, "", ())
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert mixed.given("c1") == {}
    assert mixed.beat("c1") == 0  # what it waits for is not free yet
    mixed.world.beat("N", first)
    mixed.world.beat("N", first, {"foo": range(3)})
    assert mixed.beat("c1") == 27
    assert mixed.bring("c1").generation_id == first + 1
    assert mixed.given("c1") == {"foo": [3, 4, 5]}
    assert mixed.beat("c1") == 0


def test_a_revocation_stays_in_its_generation() -> None:
    mixed = Mixed()
    mixed.classic_group("c1", owned={"c1": {"foo": range(6)}})
    generation = mixed.generations["c1"]
    mixed.world.join("N")
    assert mixed.beat("c1") == 27
    assert mixed.bring("c1", {"foo": range(6)}).generation_id == generation
    member = mixed.snapshot.members[mixed.ids["c1"]]
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    assert member.rebalance_deadline_ms == mixed.world.now + 30_000
    kept = mixed.given("c1")
    assert len(kept["foo"]) == 3
    assert mixed.beat("c1") == 27
    assert mixed.bring("c1", kept).generation_id == generation + 1
    assert mixed.given("c1") == kept
    assert mixed.beat("c1") == 0


def test_an_eager_member_gives_up_everything_and_joins_once() -> None:
    mixed = Mixed()
    mixed.classic_group("c1", owned={"c1": {"foo": range(6)}})
    generation = mixed.generations["c1"]
    mixed.world.join("N")
    assert mixed.beat("c1") == 27
    assert mixed.bring("c1").generation_id == generation + 1
    assert len(mixed.given("c1")["foo"]) == 3
    assert mixed.beat("c1") == 0


@pytest.mark.parametrize("profile", [*EARLY, *LATE])
def test_malformed_subscriptions(profile: str) -> None:
    mixed = Mixed(profile)
    mixed.world.join("N")
    error = 23 if profile == "4.4" else -1
    for raw in (b"", b"\0", b"\0\3\0\0\0\1", b"\xff\xff\0\0\0\0"):
        answer = mixed.ask_to_join("c1", id_="c1", metadata=raw)
        assert answer is not None
        assert answer.error_code == error
    assert list(mixed.snapshot.members) == ["N"]


def test_a_newer_subscription_is_read_as_far_as_we_know_it() -> None:
    mixed = Mixed()
    mixed.world.join("N")
    said = b"\0\x09" + brings("foo")[2:] + b"what later versions bring"
    answer = mixed.join("c1", metadata=said)
    assert answer is not None
    assert answer.error_code == 0
    given = mixed.ask_for("c1")
    assert given is not None
    assert given.assignment[:2] == b"\0\3"


@pytest.mark.parametrize("profile", [*EARLY, *LATE])
def test_a_disabled_migration_keeps_classic_members_out_from_4_3_on(profile: str) -> None:
    mixed = Mixed(profile, group_consumer_migration_policy="disabled")
    mixed.world.join("N")
    answer = mixed.ask_to_join("c1", id_="c1")
    assert answer is not None
    assert answer.error_code == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL if profile in LATE else 0)


@pytest.mark.parametrize("profile", [*EARLY, *LATE])
def test_who_is_called_when_nobody_computes(profile: str) -> None:
    mixed = Mixed(profile, group_consumer_migration_policy="upgrade")
    mixed.world.join("N")
    mixed.bring("c1")
    mixed.world.settle("N")
    mixed.bring("c1")
    mixed.given("c1")
    mixed.world.beat("N", -1)
    assert mixed.world.shape().endswith("Assigning")
    assert mixed.beat("c1") == (0 if profile in LATE else 27)
    mixed.bring("c1", {"foo": [3, 4, 5]})
    assert mixed.given("c1") == {"foo": list(range(6))}


def test_joining_and_syncing_in_time() -> None:
    mixed = Mixed()
    mixed.world.join("N")
    mixed.join("c1", rebalance_ms=5_000)
    timers = mixed.snapshot.members[mixed.ids["c1"]]
    assert timers.sync_deadline_ms == mixed.world.now + 5_000
    mixed.given("c1")
    timers = mixed.snapshot.members[mixed.ids["c1"]]
    assert (timers.sync_deadline_ms, timers.join_deadline_ms) == (None, None)
    mixed.world.join("M")
    assert mixed.beat("c1") == 27
    mixed.pass_ms(1_000)
    assert mixed.beat("c1") == 27
    deadline = mixed.snapshot.members[mixed.ids["c1"]].join_deadline_ms
    assert deadline == mixed.world.now + 4_000  # being told again is no more time
    mixed.pass_ms(4_000)
    assert mixed.ids["c1"] not in mixed.snapshot.members
    assert mixed.beat("c1") == 25


def test_a_member_that_does_not_sync_is_out() -> None:
    mixed = Mixed()
    mixed.world.join("N")
    mixed.join("c1", rebalance_ms=5_000)
    mixed.pass_ms(5_000)
    assert list(mixed.snapshot.members) == ["N"]
    assert mixed.world.shape().endswith("Assigning")


def test_sessions_are_the_members_own() -> None:
    mixed = Mixed()
    mixed.world.join("N")
    mixed.join("c1", session_ms=7_000)
    mixed.given("c1")
    mixed.pass_ms(6_999)
    assert mixed.beat("c1") == 0
    mixed.pass_ms(7_000)
    assert list(mixed.snapshot.members) == ["N"]


def test_switching_the_protocol_leaves_the_join_timer_running() -> None:
    mixed = Mixed()
    mixed.world.join("N")
    mixed.join("c1", rebalance_ms=5_000)
    mixed.given("c1")
    mixed.world.join("M")
    assert mixed.beat("c1") == 27
    assert mixed.world.join(mixed.ids["c1"]).error == 0
    mixed.pass_ms(5_000)
    assert mixed.ids["c1"] not in mixed.snapshot.members


def test_commits_are_refused_in_the_words_of_the_protocol() -> None:
    mixed = Mixed("4.2")
    mixed.world.join("N")
    epoch = mixed.bring("c1").generation_id
    own_id = mixed.ids["c1"]
    assert mixed.world.commit(own_id, epoch, {"foo": {0: 1}}, version=8) == {"foo": {0: 0}}
    assert mixed.world.commit(own_id, epoch - 1, {"foo": {0: 1}}) == {"foo": {0: 22}}
    assert mixed.world.commit("N", epoch + 1, {"foo": {0: 1}}) == {"foo": {0: 113}}
    assert mixed.world.fetch({"foo": [0]}, member=own_id, epoch=epoch + 1) == 22


def test_a_static_member_takes_its_place_whatever_its_protocol() -> None:
    mixed = Mixed()
    mixed.world.join("N", inst="i1")
    mixed.world.join("M")
    mixed.world.settle("N", "M")
    owned = mixed.world.owned("N")
    answer = mixed.join("c1", instance="i1", id_="")
    assert answer is not None
    assert answer.error_code == 0
    assert mixed.given("c1") == owned
    assert "N" not in mixed.snapshot.members
    assert mixed.world.join("N2", inst="i1").assigned == parts(**owned)
    assert mixed.beat("c1", instance="i1") == 82
    assert mixed.world.member("N2").owned[FOO]


def test_a_protocol_that_is_offered_twice_suits_nobody() -> None:
    mixed = Mixed()
    mixed.world.join("N")
    mixed.join("c1", "range", "range")
    refused = mixed.ask_to_join("c2", "range", id_="c2")
    assert refused is not None
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

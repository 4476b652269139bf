"""Classic members in a consumer group: joining, catching up, and what they must do in time."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.member_state import MemberState
from tests.unit.mock_coordinator.groups._group_harness import EVERY_PROFILE, FOO, parts
from tests.unit.mock_coordinator.groups.migration._mixed_harness import MixedGroupHarness, brings

EARLY, LATE = ("4.0", "4.1", "4.2"), ("4.3", "4.4")


@EVERY_PROFILE
def test_one_join_is_one_step(profile: str) -> None:
    harness = MixedGroupHarness(profile)
    first = harness.consumers.join("N").epoch
    joined = harness.bring("c1")
    assert (joined.generation_id, joined.leader, joined.members) == (first + 1, "", ())
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert harness.given("c1") == {}
    assert harness.beat("c1") == 0  # what it waits for is not free yet
    harness.consumers.beat("N", first)
    harness.consumers.beat("N", first, {"foo": range(3)})
    assert harness.beat("c1") == 27
    assert harness.bring("c1").generation_id == first + 1
    assert harness.given("c1") == {"foo": [3, 4, 5]}
    assert harness.beat("c1") == 0


def test_a_revocation_stays_in_its_generation() -> None:
    harness = MixedGroupHarness()
    harness.classic_group("c1", owned={"c1": {"foo": range(6)}})
    generation = harness.generations["c1"]
    harness.consumers.join("N")
    assert harness.beat("c1") == 27
    assert harness.bring("c1", {"foo": range(6)}).generation_id == generation
    member = harness.snapshot.members[harness.ids["c1"]]
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    assert member.rebalance_deadline_ms == harness.consumers.now + 30_000
    kept = harness.given("c1")
    assert len(kept["foo"]) == 3
    assert harness.beat("c1") == 27
    assert harness.bring("c1", kept).generation_id == generation + 1
    assert harness.given("c1") == kept
    assert harness.beat("c1") == 0


def test_an_eager_member_gives_up_everything_and_joins_once() -> None:
    harness = MixedGroupHarness()
    harness.classic_group("c1", owned={"c1": {"foo": range(6)}})
    generation = harness.generations["c1"]
    harness.consumers.join("N")
    assert harness.beat("c1") == 27
    assert harness.bring("c1").generation_id == generation + 1
    assert len(harness.given("c1")["foo"]) == 3
    assert harness.beat("c1") == 0


@pytest.mark.parametrize("profile", [*EARLY, *LATE])
def test_malformed_subscriptions(profile: str) -> None:
    harness = MixedGroupHarness(profile)
    harness.consumers.join("N")
    error = 23 if profile in ("4.2", "4.4") else -1
    for raw in (b"", b"\0", b"\0\3\0\0\0\1", b"\xff\xff\0\0\0\0"):
        answer = harness.ask_to_join("c1", id_="c1", metadata=raw)
        assert answer is not None
        assert answer.error_code == error
    assert list(harness.snapshot.members) == ["N"]


def test_a_newer_subscription_is_read_as_far_as_we_know_it() -> None:
    harness = MixedGroupHarness()
    harness.consumers.join("N")
    said = b"\0\x09" + brings("foo")[2:] + b"what later versions bring"
    answer = harness.join("c1", metadata=said)
    assert answer is not None
    assert answer.error_code == 0
    given = harness.ask_for("c1")
    assert given is not None
    assert given.assignment[:2] == b"\0\3"


@pytest.mark.parametrize("profile", [*EARLY, *LATE])
def test_a_disabled_migration_keeps_classic_members_out_from_4_2_on(profile: str) -> None:
    harness = MixedGroupHarness(profile, group_consumer_migration_policy="disabled")
    harness.consumers.join("N")
    answer = harness.ask_to_join("c1", id_="c1")
    assert answer is not None
    assert answer.error_code == (
        0 if profile in ("4.0", "4.1") else ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )


@pytest.mark.parametrize("profile", [*EARLY, *LATE])
def test_who_is_called_when_nobody_computes(profile: str) -> None:
    harness = MixedGroupHarness(profile, group_consumer_migration_policy="upgrade")
    harness.consumers.join("N")
    harness.bring("c1")
    harness.consumers.settle("N")
    harness.bring("c1")
    harness.given("c1")
    harness.consumers.beat("N", -1)
    assert harness.consumers.shape().endswith("Assigning")
    assert harness.beat("c1") == (0 if profile in LATE else 27)
    harness.bring("c1", {"foo": [3, 4, 5]})
    assert harness.given("c1") == {"foo": list(range(6))}


def test_joining_and_syncing_in_time() -> None:
    harness = MixedGroupHarness()
    harness.consumers.join("N")
    harness.join("c1", rebalance_ms=5_000)
    timers = harness.snapshot.members[harness.ids["c1"]]
    assert timers.sync_deadline_ms == harness.consumers.now + 5_000
    harness.given("c1")
    timers = harness.snapshot.members[harness.ids["c1"]]
    assert (timers.sync_deadline_ms, timers.join_deadline_ms) == (None, None)
    harness.consumers.join("M")
    assert harness.beat("c1") == 27
    harness.pass_ms(1_000)
    assert harness.beat("c1") == 27
    deadline = harness.snapshot.members[harness.ids["c1"]].join_deadline_ms
    assert deadline == harness.consumers.now + 4_000  # being told again is no more time
    harness.pass_ms(4_000)
    assert harness.ids["c1"] not in harness.snapshot.members
    assert harness.beat("c1") == 25


def test_a_member_that_does_not_sync_is_out() -> None:
    harness = MixedGroupHarness()
    harness.consumers.join("N")
    harness.join("c1", rebalance_ms=5_000)
    harness.pass_ms(5_000)
    assert list(harness.snapshot.members) == ["N"]
    assert harness.consumers.shape().endswith("Assigning")


def test_sessions_are_the_members_own() -> None:
    harness = MixedGroupHarness()
    harness.consumers.join("N")
    harness.join("c1", session_ms=7_000)
    harness.given("c1")
    harness.pass_ms(6_999)
    assert harness.beat("c1") == 0
    harness.pass_ms(7_000)
    assert list(harness.snapshot.members) == ["N"]


def test_switching_the_protocol_leaves_the_join_timer_running() -> None:
    harness = MixedGroupHarness()
    harness.consumers.join("N")
    harness.join("c1", rebalance_ms=5_000)
    harness.given("c1")
    harness.consumers.join("M")
    assert harness.beat("c1") == 27
    assert harness.consumers.join(harness.ids["c1"]).error == 0
    harness.pass_ms(5_000)
    assert harness.ids["c1"] not in harness.snapshot.members


def test_commits_are_refused_in_the_words_of_the_protocol() -> None:
    harness = MixedGroupHarness("4.2")
    harness.consumers.join("N")
    epoch = harness.bring("c1").generation_id
    own_id = harness.ids["c1"]
    assert harness.consumers.commit(own_id, epoch, {"foo": {0: 1}}, version=8) == {"foo": {0: 0}}
    assert harness.consumers.commit(own_id, epoch - 1, {"foo": {0: 1}}) == {"foo": {0: 22}}
    assert harness.consumers.commit("N", epoch + 1, {"foo": {0: 1}}) == {"foo": {0: 113}}
    assert harness.consumers.fetch({"foo": [0]}, member=own_id, epoch=epoch + 1) == 22


def test_a_static_member_takes_its_place_whatever_its_protocol() -> None:
    harness = MixedGroupHarness()
    harness.consumers.join("N", inst="i1")
    harness.consumers.join("M")
    harness.consumers.settle("N", "M")
    owned = harness.consumers.owned("N")
    answer = harness.join("c1", instance="i1", id_="")
    assert answer is not None
    assert answer.error_code == 0
    assert harness.given("c1") == owned
    assert "N" not in harness.snapshot.members
    assert harness.consumers.join("N2", inst="i1").assigned == parts(**owned)
    assert harness.beat("c1", instance="i1") == 82
    assert harness.consumers.member("N2").owned[FOO]


def test_a_protocol_that_is_offered_twice_suits_nobody() -> None:
    harness = MixedGroupHarness()
    harness.consumers.join("N")
    harness.join("c1", "range", "range")
    refused = harness.ask_to_join("c2", "range", id_="c2")
    assert refused is not None
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

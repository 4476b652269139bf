"""A classic group becomes a consumer group: what moves over, who is told, and what prevents it."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import GroupType
from mock_coordinator.core.groups.records.member_state import MemberState
from tests.unit.mock_coordinator.groups._group_harness import EVERY_PROFILE, FOO, parts
from tests.unit.mock_coordinator.groups.migration._mixed_harness import (
    MixedGroupHarness,
    assigns,
    brings,
)

REFUSED = "Cannot upgrade classic group g to consumer group because "


@EVERY_PROFILE
def test_the_generation_is_the_epoch_and_everybody_keeps_what_they_have(profile: str) -> None:
    harness = MixedGroupHarness(profile)
    harness.classic_group("c1", "c2", owned={"c1": {"foo": range(3)}, "c2": {"foo": range(3, 6)}})
    generation = harness.generations["c1"]
    assert harness.consumers.join("N").epoch == generation + 1
    group = harness.snapshot
    assert group.type is GroupType.CONSUMER
    assert group.classic is None
    for name in ("c1", "c2"):
        member = group.members[harness.ids[name]]
        assert (member.epoch, member.previous_epoch) == (generation, generation)
        assert member.state is MemberState.STABLE
        assert len(member.owned[FOO]) == 3
        assert member.subscription.classic is not None
        assert member.subscription.classic.session_timeout_ms == 10_000
        assert member.session_deadline_ms == harness.consumers.now + 10_000
    assert harness.beat("c1") == 27


def test_whoever_waits_is_told_to_join_again() -> None:
    harness = MixedGroupHarness()
    harness.classic_group("c1", "c2", owned={"c1": {"foo": range(3)}, "c2": {"foo": range(3, 6)}})
    assert harness.join("c3") is None
    assert harness.join("c1") is None
    harness.consumers.join("N")
    harness.pass_ms(0)
    late = harness.late()
    assert sorted(late) == ["c1", "c3"]
    assert {answer.error_code for answer in late.values()} == {27}
    assert len(harness.snapshot.members) == 4
    assert harness.bring("c3").generation_id == harness.snapshot.epoch


def test_a_group_without_a_generation_stays_classic_and_forgets_who_waited() -> None:
    harness = MixedGroupHarness("4.4", group_initial_rebalance_delay_ms=3_000)
    assert harness.join("c1", version=3) is None
    answer = harness.consumers.join("N")
    assert (answer.error, answer.message) == (-1, None)
    harness.pass_ms(0)
    refused = harness.late()["c1"]
    assert refused.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.now.state == "PreparingRebalance"
    assert harness.join("c1", id_=refused.member_id) is None
    harness.pass_ms(3_000)
    assert harness.late()["c1"].generation_id == 1


@pytest.mark.parametrize(
    ("policy", "max_size", "reason"),
    [
        ("disabled", 9, "online upgrade is disabled."),
        ("downgrade", 9, "online upgrade is disabled."),
        ("upgrade", 1, "the group size exceeds the consumer group maximum size."),
    ],
)
def test_the_broker_may_not_allow_it(policy: str, max_size: int, reason: str) -> None:
    harness = MixedGroupHarness(
        group_consumer_migration_policy=policy, group_consumer_max_size=max_size
    )
    harness.classic_group("c1", "c2", owned={"c1": {"foo": range(6)}})
    before = len(harness.groups.records)
    answer = harness.consumers.join("N")
    assert (answer.error, answer.message) == (69, REFUSED + reason)
    assert len(harness.groups.records) == before
    assert harness.beat("c1") == 0


def test_the_newcomer_may_not_fit_though_the_group_does() -> None:
    harness = MixedGroupHarness(group_consumer_max_size=2)
    harness.classic_group("c1", "c2", owned={"c1": {"foo": range(6)}})
    harness.join("c1", metadata=brings("bar"))
    answer = harness.consumers.join("N")
    assert answer.error == ErrorCode.GROUP_MAX_SIZE_REACHED
    harness.pass_ms(0)
    assert harness.late()["c1"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.now.state == "PreparingRebalance"


@pytest.mark.parametrize(
    ("assignment", "reason"),
    [
        (b"\0", "the embedded consumer protocol is malformed."),
        (
            assigns({"foo": range(6)}, user_data=b"x"),
            (
                "an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade."
            ),
        ),
    ],
)
def test_an_assignment_that_cannot_be_kept(assignment: bytes, reason: str) -> None:
    harness = MixedGroupHarness()
    harness.join("c1")
    harness.ask_for("c1", {"c1": assignment})
    answer = harness.consumers.join("N")
    assert (answer.error, answer.message) == (69, REFUSED + reason)
    assert harness.now.state == "Stable"


def test_empty_user_data_is_none() -> None:
    harness = MixedGroupHarness()
    harness.join("c1")
    harness.ask_for("c1", {"c1": assigns({"foo": range(6)}, user_data=b"")})
    assert harness.consumers.join("N").error == 0


def test_other_groups_than_of_consumers_cannot_be_upgraded() -> None:
    harness = MixedGroupHarness()
    harness.join("w1", kind="connect", metadata=b"any")
    answer = harness.consumers.join("N")
    assert answer.error == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.message == REFUSED + "the group does not use the consumer embedded protocol."


def test_a_member_that_does_not_speak_the_generations_protocol() -> None:
    harness = MixedGroupHarness()
    harness.join("c1", "range", "sticky")
    harness.ask_for("c1", {"c1": assigns({"foo": range(6)})})
    assert harness.join("c2", "sticky") is None
    assert harness.consumers.join("N").error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert harness.snapshot.type is GroupType.CLASSIC


def test_topics_that_do_not_exist_are_left_behind() -> None:
    harness = MixedGroupHarness()
    harness.join("c1", metadata=brings("foo", "nope"))
    harness.ask_for("c1", {"c1": assigns({"foo": [0], "nope": [0, 1]})})
    harness.consumers.join("N")
    member = harness.snapshot.members[harness.ids["c1"]]
    assert set(member.owned) == {FOO}
    assert member.subscription.subscribed_topic_names == ("foo", "nope")


def test_the_only_member_may_be_the_one_that_switches() -> None:
    harness = MixedGroupHarness()
    harness.join("c1")
    harness.ask_for("c1", {"c1": assigns({"foo": range(3)})})
    own_id = harness.ids["c1"]
    answer = harness.consumers.join(own_id)
    assert (answer.epoch, answer.assigned) == (1, parts(foo=range(3)))
    assert harness.consumers.member(own_id).subscription.classic is None
    assert harness.consumers.shape() == "#G1/A1 Stable"


def test_an_upgrade_survives_a_crash() -> None:
    harness = MixedGroupHarness()
    harness.classic_group("c1", "c2", owned={"c1": {"foo": range(3)}, "c2": {"foo": range(3, 6)}})
    harness.consumers.join("N")
    before = harness.snapshot.without_timers()
    harness.restart()
    assert harness.snapshot.without_timers() == before
    assert harness.beat("c2") == 27
    timers = {each.session_deadline_ms for each in harness.snapshot.members.values()}
    assert timers <= {harness.consumers.now + 45_000, harness.consumers.now + 10_000}


def test_a_partition_that_was_given_twice_prevents_it() -> None:
    harness = MixedGroupHarness()
    harness.classic_group("c1", "c2", owned={"c1": {"foo": range(3)}, "c2": {"foo": range(2, 6)}})
    assert harness.join("c1") is None
    answer = harness.consumers.join("N")
    assert (answer.error, answer.message) == (-1, None)
    harness.pass_ms(0)
    assert harness.late()["c1"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.snapshot.type is GroupType.CLASSIC

"""A classic group becomes a consumer group: what moves over, who is told, and what prevents it."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import GroupType
from mock_coordinator.core.groups.member_state import MemberState
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, FOO, parts
from tests.unit.mock_coordinator.groups.migration._mixed import Mixed, assigns, brings

REFUSED = "Cannot upgrade classic group g to consumer group because "


@EVERY_PROFILE
def test_the_generation_is_the_epoch_and_everybody_keeps_what_they_have(profile: str) -> None:
    mixed = Mixed(profile)
    mixed.classic_group("c1", "c2", owned={"c1": {"foo": range(3)}, "c2": {"foo": range(3, 6)}})
    generation = mixed.generations["c1"]
    assert mixed.world.join("N").epoch == generation + 1
    group = mixed.snapshot
    assert group.type is GroupType.CONSUMER
    assert group.classic is None
    for name in ("c1", "c2"):
        member = group.members[mixed.ids[name]]
        assert (member.epoch, member.previous_epoch) == (generation, generation)
        assert member.state is MemberState.STABLE
        assert len(member.owned[FOO]) == 3
        assert member.subscription.classic is not None
        assert member.subscription.classic.session_timeout_ms == 10_000
        assert member.session_deadline_ms == mixed.world.now + 10_000
    assert mixed.beat("c1") == 27


def test_whoever_waits_is_told_to_join_again() -> None:
    mixed = Mixed()
    mixed.classic_group("c1", "c2", owned={"c1": {"foo": range(3)}, "c2": {"foo": range(3, 6)}})
    assert mixed.join("c3") is None
    assert mixed.join("c1") is None
    mixed.world.join("N")
    mixed.pass_ms(0)
    late = mixed.late()
    assert sorted(late) == ["c1", "c3"]
    assert {answer.error_code for answer in late.values()} == {27}
    assert len(mixed.snapshot.members) == 4
    assert mixed.bring("c3").generation_id == mixed.snapshot.epoch


def test_a_group_without_a_generation_stays_classic_and_forgets_who_waited() -> None:
    mixed = Mixed("4.4", group_initial_rebalance_delay_ms=3_000)
    assert mixed.join("c1", version=3) is None
    answer = mixed.world.join("N")
    assert (answer.error, answer.message) == (-1, None)
    mixed.pass_ms(0)
    refused = mixed.late()["c1"]
    assert refused.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert mixed.now.state == "PreparingRebalance"
    assert mixed.join("c1", id_=refused.member_id) is None
    mixed.pass_ms(3_000)
    assert mixed.late()["c1"].generation_id == 1


@pytest.mark.parametrize(
    ("policy", "max_size", "reason"),
    [
        ("disabled", 9, "online upgrade is disabled."),
        ("downgrade", 9, "online upgrade is disabled."),
        ("upgrade", 1, "the group size exceeds the consumer group maximum size."),
    ],
)
def test_the_broker_may_not_allow_it(policy: str, max_size: int, reason: str) -> None:
    mixed = Mixed(group_consumer_migration_policy=policy, group_consumer_max_size=max_size)
    mixed.classic_group("c1", "c2", owned={"c1": {"foo": range(6)}})
    before = len(mixed.groups.records)
    answer = mixed.world.join("N")
    assert (answer.error, answer.message) == (69, REFUSED + reason)
    assert len(mixed.groups.records) == before
    assert mixed.beat("c1") == 0


def test_the_newcomer_may_not_fit_though_the_group_does() -> None:
    mixed = Mixed(group_consumer_max_size=2)
    mixed.classic_group("c1", "c2", owned={"c1": {"foo": range(6)}})
    mixed.join("c1", metadata=brings("bar"))
    answer = mixed.world.join("N")
    assert answer.error == ErrorCode.GROUP_MAX_SIZE_REACHED
    mixed.pass_ms(0)
    assert mixed.late()["c1"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert mixed.now.state == "PreparingRebalance"


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
    mixed = Mixed()
    mixed.join("c1")
    mixed.ask_for("c1", {"c1": assignment})
    answer = mixed.world.join("N")
    assert (answer.error, answer.message) == (69, REFUSED + reason)
    assert mixed.now.state == "Stable"


def test_empty_user_data_is_none() -> None:
    mixed = Mixed()
    mixed.join("c1")
    mixed.ask_for("c1", {"c1": assigns({"foo": range(6)}, user_data=b"")})
    assert mixed.world.join("N").error == 0


def test_other_groups_than_of_consumers_cannot_be_upgraded() -> None:
    mixed = Mixed()
    mixed.join("w1", kind="connect", metadata=b"any")
    answer = mixed.world.join("N")
    assert answer.error == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.message == REFUSED + "the group does not use the consumer embedded protocol."


def test_a_member_that_does_not_speak_the_generations_protocol() -> None:
    mixed = Mixed()
    mixed.join("c1", "range", "sticky")
    mixed.ask_for("c1", {"c1": assigns({"foo": range(6)})})
    assert mixed.join("c2", "sticky") is None
    assert mixed.world.join("N").error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert mixed.snapshot.type is GroupType.CLASSIC


def test_topics_that_do_not_exist_are_left_behind() -> None:
    mixed = Mixed()
    mixed.join("c1", metadata=brings("foo", "nope"))
    mixed.ask_for("c1", {"c1": assigns({"foo": [0], "nope": [0, 1]})})
    mixed.world.join("N")
    member = mixed.snapshot.members[mixed.ids["c1"]]
    assert set(member.owned) == {FOO}
    assert member.subscription.subscribed_topic_names == ("foo", "nope")


def test_the_only_member_may_be_the_one_that_switches() -> None:
    mixed = Mixed()
    mixed.join("c1")
    mixed.ask_for("c1", {"c1": assigns({"foo": range(3)})})
    own_id = mixed.ids["c1"]
    answer = mixed.world.join(own_id)
    assert (answer.epoch, answer.assigned) == (1, parts(foo=range(3)))
    assert mixed.world.member(own_id).subscription.classic is None
    assert mixed.world.shape() == "#G1/A1 Stable"


def test_an_upgrade_survives_a_crash() -> None:
    mixed = Mixed()
    mixed.classic_group("c1", "c2", owned={"c1": {"foo": range(3)}, "c2": {"foo": range(3, 6)}})
    mixed.world.join("N")
    before = mixed.snapshot.without_timers()
    mixed.restart()
    assert mixed.snapshot.without_timers() == before
    assert mixed.beat("c2") == 27
    timers = {each.session_deadline_ms for each in mixed.snapshot.members.values()}
    assert timers <= {mixed.world.now + 45_000, mixed.world.now + 10_000}


def test_a_partition_that_was_given_twice_prevents_it() -> None:
    mixed = Mixed()
    mixed.classic_group("c1", "c2", owned={"c1": {"foo": range(3)}, "c2": {"foo": range(2, 6)}})
    assert mixed.join("c1") is None
    answer = mixed.world.join("N")
    assert (answer.error, answer.message) == (-1, None)
    mixed.pass_ms(0)
    assert mixed.late()["c1"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert mixed.snapshot.type is GroupType.CLASSIC

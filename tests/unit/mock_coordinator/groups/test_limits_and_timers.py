"""Capacity, sessions, rebalance timeouts and group settings: scenarios S32 to S37."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import MemberState
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, World, parts


@EVERY_PROFILE
def test_s32_a_full_group(profile: str) -> None:
    world = World(profile, group_consumer_max_size=1)
    world.join("A")
    for answer in (world.join("B"), world.beat("Q", 4)):
        assert (answer.error, answer.message) == (
            81,
            "The consumer group has reached its maximum capacity of 1 members.",
        )
    assert world.beat("A", world.first).error == 0


@EVERY_PROFILE
def test_s33_a_silent_member_is_removed(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.join("B")
    world.pass_ms(30_000)
    world.beat("B", e + 1)
    world.pass_ms(14_999)
    assert "A" in world.group().members
    world.pass_ms(1)
    assert world.shape() == f"#G{e + 2}/A{e + 1} Assigning"
    assert world.beat("A", e).error == ErrorCode.UNKNOWN_MEMBER_ID
    answer = world.beat("B", e + 1)
    assert (answer.epoch, answer.assigned) == (e + 2, parts(foo=range(6)))


@EVERY_PROFILE
def test_s34_a_member_that_does_not_let_go_is_removed(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A", rto=10_000)
    world.join("B")
    assert world.beat("A", e).assigned == parts(foo=range(3))
    world.pass_ms(5_000)
    assert world.beat("A", e).assigned is None  # does not start the timeout again
    assert world.beat("B", e + 1).assigned is None
    world.pass_ms(4_999)
    assert "A" in world.group().members
    world.pass_ms(1)
    assert world.shape() == f"#G{e + 2}/A{e + 1} Assigning"
    assert world.beat("A", e).error == ErrorCode.UNKNOWN_MEMBER_ID
    answer = world.beat("B", e + 1)
    assert (answer.epoch, answer.assigned) == (e + 2, parts(foo=range(6)))


@EVERY_PROFILE
def test_s35_the_last_member_expires_and_epochs_go_on(profile: str) -> None:
    world = World(profile)
    e = world.first
    world.join("A")
    world.pass_ms(45_000)
    target = e + 1 if profile == "4.4" else e
    assert world.shape() == f"#G{e + 1}/A{target} Empty"
    answer = world.join("A")
    assert (answer.epoch, answer.assigned) == (e + 2, parts(foo=range(6)))


@EVERY_PROFILE
def test_s36_members_that_expire_together_step_one_by_one(profile: str) -> None:
    world = World(profile)
    e = world.first
    for member in "ABC":
        world.join(member)
    world.pass_ms(45_000)
    target = e + 5 if profile == "4.4" else e + 2
    assert world.shape() == f"#G{e + 5}/A{target} Empty"


def test_s37_a_groups_own_settings() -> None:
    world = World("4.2", group_consumer_max_heartbeat_interval_ms=15_000)
    world.config.set_group_overrides(
        "g", {"consumer.heartbeat.interval.ms": "6000", "consumer.session.timeout.ms": "50000"}
    )
    assert world.join("A").interval_ms == 6000
    world.pass_ms(49_999)
    assert "A" in world.group().members
    world.pass_ms(1)
    assert world.group().members == {}


def test_a_refused_heartbeat_does_not_keep_a_member_alive() -> None:
    world = World("4.4")
    world.join("A")
    world.pass_ms(44_000)
    assert world.beat("A", 99).error == ErrorCode.FENCED_MEMBER_EPOCH
    world.commit("A", 2, {"foo": {0: 1}})
    world.pass_ms(1_000)
    assert world.group().members == {}


def test_an_acknowledgement_stops_the_rebalance_timeout() -> None:
    world = World("4.4")
    world.join("A", rto=10_000)
    world.join("B")
    world.beat("A", 2)
    assert world.member("A").rebalance_deadline_ms == world.now + 10_000
    world.beat("A", 2, {"foo": range(3)})
    assert world.member("A").rebalance_deadline_ms is None


def test_a_rebalance_timeout_of_an_older_epoch_has_no_effect() -> None:
    world = World("4.4")
    world.join("A", rto=10_000, inst="i")
    world.join("B")
    world.beat("A", 2)
    assert world.member("A").state is MemberState.UNREVOKED_PARTITIONS
    world.beat("A", -2, inst="i")
    world.pass_ms(10_000)
    assert world.epochs("A")[0] == -2


@pytest.mark.parametrize("timeout_ms", [0, -7])
def test_a_timeout_that_is_over_at_once(timeout_ms: int) -> None:
    world = World("4.4")
    world.join("A", rto=timeout_ms)
    world.join("B")
    world.beat("A", 2)
    world.pass_ms(0)
    assert "A" not in world.group().members


def test_the_deadline_is_that_of_the_first_member() -> None:
    world = World("4.4")
    world.join("A", rto=300_000)
    start = world.now
    world.pass_ms(1_000)
    world.join("B", rto=300_000)
    assert world.groups.deadline_ms == start + 45_000
    world.beat("A", 2)
    assert world.groups.deadline_ms == start + 46_000

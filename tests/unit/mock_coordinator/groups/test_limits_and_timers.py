"""Sessions and rebalance timeouts to the millisecond (what they lead to: scenarios S32 to S37)."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import MemberState
from tests.unit.mock_coordinator.groups._world import World, parts


def test_a_session_ends_with_its_last_millisecond() -> None:
    world = World("4.4")
    world.join("A")
    world.pass_ms(44_999)
    assert "A" in world.group().members
    world.pass_ms(1)
    assert "A" not in world.group().members


def test_a_rebalance_timeout_ends_with_its_last_millisecond_whatever_the_member_sends() -> None:
    world = World("4.4")
    world.join("A", rto=10_000)
    world.join("B")
    assert world.beat("A", 2).assigned == parts(foo=range(3))
    world.pass_ms(9_999)
    assert world.beat("A", 2).assigned is None
    assert "A" in world.group().members
    world.pass_ms(1)
    assert "A" not in world.group().members


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

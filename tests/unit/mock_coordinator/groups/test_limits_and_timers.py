"""Sessions and rebalance timeouts to the millisecond (what they lead to: scenarios S32 to S37)."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import MemberState
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness, parts


def test_a_session_ends_with_its_last_millisecond() -> None:
    harness = GroupHarness("4.4")
    harness.join("A")
    harness.pass_ms(44_999)
    assert "A" in harness.group().members
    harness.pass_ms(1)
    assert "A" not in harness.group().members


def test_a_rebalance_timeout_ends_with_its_last_millisecond_whatever_the_member_sends() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", rto=10_000)
    harness.join("B")
    assert harness.beat("A", 2).assigned == parts(foo=range(3))
    harness.pass_ms(9_999)
    assert harness.beat("A", 2).assigned is None
    assert "A" in harness.group().members
    harness.pass_ms(1)
    assert "A" not in harness.group().members


def test_a_refused_heartbeat_does_not_keep_a_member_alive() -> None:
    harness = GroupHarness("4.4")
    harness.join("A")
    harness.pass_ms(44_000)
    assert harness.beat("A", 99).error == ErrorCode.FENCED_MEMBER_EPOCH
    harness.commit("A", 2, {"foo": {0: 1}})
    harness.pass_ms(1_000)
    assert harness.group().members == {}


def test_an_acknowledgement_stops_the_rebalance_timeout() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", rto=10_000)
    harness.join("B")
    harness.beat("A", 2)
    assert harness.member("A").rebalance_deadline_ms == harness.now + 10_000
    harness.beat("A", 2, {"foo": range(3)})
    assert harness.member("A").rebalance_deadline_ms is None


def test_a_rebalance_timeout_of_an_older_epoch_has_no_effect() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", rto=10_000, inst="i")
    harness.join("B")
    harness.beat("A", 2)
    assert harness.member("A").state is MemberState.UNREVOKED_PARTITIONS
    harness.beat("A", -2, inst="i")
    harness.pass_ms(10_000)
    assert harness.epochs("A")[0] == -2


@pytest.mark.parametrize("timeout_ms", [0, -7])
def test_a_timeout_that_is_over_at_once(timeout_ms: int) -> None:
    harness = GroupHarness("4.4")
    harness.join("A", rto=timeout_ms)
    harness.join("B")
    harness.beat("A", 2)
    harness.pass_ms(0)
    assert "A" not in harness.group().members


def test_the_deadline_is_that_of_the_first_member() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", rto=300_000)
    start = harness.now
    harness.pass_ms(1_000)
    harness.join("B", rto=300_000)
    assert harness.groups.deadline_ms == start + 45_000
    harness.beat("A", 2)
    assert harness.groups.deadline_ms == start + 46_000

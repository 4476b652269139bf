"""Timers of classic groups, to the millisecond."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from tests.unit.mock_coordinator.groups.classic._circle import Circle


def test_an_id_lapses_with_the_session_timeout() -> None:
    circle = Circle()
    circle.ask_to_join("A", session_ms=6_000)
    circle.pass_ms(5_999)
    assert list(circle.now.group.pending_joins) == [circle.ids["A"]]
    circle.pass_ms(1)
    assert not circle.now.group.pending_joins
    refused = circle.ask_to_join("A")
    assert refused is not None
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_lapses_ends_the_join_phase() -> None:
    circle = Circle()
    circle.stable("A")
    circle.ask_to_join("Z", session_ms=6_000)
    circle.join("B", version=3)
    circle.join("A")
    assert circle.waiting == ["A", "B"]
    circle.pass_ms(6_000)
    assert sorted(circle.late()) == ["A", "B"]


def test_a_new_member_waits_five_minutes_at_most() -> None:
    circle = Circle()
    circle.stable("A")
    circle.join("B", version=3, session_ms=6_000, rebalance_ms=1_800_000)
    for _ in range(60):
        circle.pass_ms(4_999)
        assert circle.beat("A") == 27
    assert circle.waiting == ["B"]
    circle.pass_ms(60)
    gone = circle.late()["B"]
    assert (gone.error_code, gone.member_id) == (25, "")
    # the leader that never came has to be waited for all the same
    assert circle.now.state == "PreparingRebalance"


def test_a_member_that_waits_need_not_heartbeat() -> None:
    circle = Circle()
    circle.stable("A", "B")
    circle.join("A", rebalance_ms=60_000, session_ms=6_000)
    for _ in range(10):
        circle.pass_ms(5_000)
        assert circle.beat("B") == 27
    assert circle.waiting == ["A"]
    circle.join("B")
    assert sorted(circle.late()) == ["A"]


def test_heartbeats_and_commits_keep_a_session() -> None:
    circle = Circle()
    circle.stable("A")
    for _ in range(3):
        circle.pass_ms(9_000)
        assert circle.beat("A") == 0
    circle.pass_ms(10_000)
    assert circle.now.state == "Empty"
    assert circle.beat("A") == 25


def test_the_sync_timer_takes_only_those_who_did_not_sync() -> None:
    circle = Circle()
    for name in "ABC":
        circle.join(name, version=3, rebalance_ms=8_000, session_ms=60_000)
    for name in "AB":
        circle.join(name, rebalance_ms=8_000, session_ms=60_000)
    circle.late()
    circle.sync("A", {"A": b"a", "B": b"b", "C": b"c"})
    assert circle.now.state == "Stable"
    circle.sync("B")
    circle.pass_ms(7_999)
    assert len(circle.now.group.members) == 3
    circle.pass_ms(1)
    assert sorted(circle.now.group.members) == sorted([circle.ids["A"], circle.ids["B"]])
    assert circle.now.state == "PreparingRebalance"
    assert circle.now.group.sync_deadline_ms is None


@pytest.mark.parametrize(
    ("rebalance_ms", "arrivals", "total_ms"),
    [
        (60_000, 0, 3_000),  # nobody else
        (60_000, 1, 6_000),  # one came in the first three seconds
        (60_000, 3, 12_000),  # one in each of the first three
        (7_000, 3, 7_000),  # not longer than the rebalance timeout
        (2_000, 3, 3_000),  # but always once
    ],
)
def test_the_initial_delay(rebalance_ms: int, arrivals: int, total_ms: int) -> None:
    circle = Circle(delay_ms=3_000)
    circle.join("A", version=3, rebalance_ms=rebalance_ms)
    passed = 0
    for number in range(arrivals):
        if not circle.waiting:
            break
        circle.join(f"M{number}", version=3, rebalance_ms=rebalance_ms)
        step = min(3_000, total_ms - 1 - passed)
        circle.pass_ms(step)
        passed += step
    circle.pass_ms(total_ms - 1 - passed)
    assert "A" in circle.waiting
    circle.pass_ms(1)
    assert circle.now.state == "CompletingRebalance"
    assert not circle.waiting


def test_leaving_in_the_initial_delay_leaves_an_empty_group() -> None:
    circle = Circle(delay_ms=3_000)
    circle.join("A")
    assert circle.leave("A") == [0]
    assert circle.late()["A"].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    circle.pass_ms(3_000)
    assert circle.now.state == "Empty"
    assert circle.now.group.generation == 1

"""Timers of classic groups, to the millisecond."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from tests.unit.mock_coordinator.groups.classic._classic_harness import ClassicGroupHarness


def test_an_id_lapses_with_the_session_timeout() -> None:
    harness = ClassicGroupHarness()
    harness.ask_to_join("A", session_ms=6_000)
    harness.pass_ms(5_999)
    assert list(harness.now.group.pending_joins) == [harness.ids["A"]]
    harness.pass_ms(1)
    assert not harness.now.group.pending_joins
    refused = harness.ask_to_join("A")
    assert refused is not None
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_lapses_ends_the_join_phase() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    harness.ask_to_join("Z", session_ms=6_000)
    harness.join("B", version=3)
    harness.join("A")
    assert harness.waiting == ["A", "B"]
    harness.pass_ms(6_000)
    assert sorted(harness.late()) == ["A", "B"]


def test_a_new_member_waits_five_minutes_at_most() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    harness.join("B", version=3, session_ms=6_000, rebalance_ms=1_800_000)
    for _ in range(60):
        harness.pass_ms(4_999)
        assert harness.beat("A") == 27
    assert harness.waiting == ["B"]
    harness.pass_ms(60)
    gone = harness.late()["B"]
    assert (gone.error_code, gone.member_id) == (25, "")
    # the leader that never came has to be waited for all the same
    assert harness.now.state == "PreparingRebalance"


def test_a_member_that_waits_need_not_heartbeat() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A", "B")
    harness.join("A", rebalance_ms=60_000, session_ms=6_000)
    for _ in range(10):
        harness.pass_ms(5_000)
        assert harness.beat("B") == 27
    assert harness.waiting == ["A"]
    harness.join("B")
    assert sorted(harness.late()) == ["A"]


def test_heartbeats_and_commits_keep_a_session() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    for _ in range(3):
        harness.pass_ms(9_000)
        assert harness.beat("A") == 0
    harness.pass_ms(10_000)
    assert harness.now.state == "Empty"
    assert harness.beat("A") == 25


def test_the_sync_timer_takes_only_those_who_did_not_sync() -> None:
    harness = ClassicGroupHarness()
    for name in "ABC":
        harness.join(name, version=3, rebalance_ms=8_000, session_ms=60_000)
    for name in "AB":
        harness.join(name, rebalance_ms=8_000, session_ms=60_000)
    harness.late()
    harness.sync("A", {"A": b"a", "B": b"b", "C": b"c"})
    assert harness.now.state == "Stable"
    harness.sync("B")
    harness.pass_ms(7_999)
    assert len(harness.now.group.members) == 3
    harness.pass_ms(1)
    assert sorted(harness.now.group.members) == sorted([harness.ids["A"], harness.ids["B"]])
    assert harness.now.state == "PreparingRebalance"
    assert harness.now.group.sync_deadline_ms is None


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
    harness = ClassicGroupHarness(delay_ms=3_000)
    harness.join("A", version=3, rebalance_ms=rebalance_ms)
    passed = 0
    for number in range(arrivals):
        if not harness.waiting:
            break
        harness.join(f"M{number}", version=3, rebalance_ms=rebalance_ms)
        step = min(3_000, total_ms - 1 - passed)
        harness.pass_ms(step)
        passed += step
    harness.pass_ms(total_ms - 1 - passed)
    assert "A" in harness.waiting
    harness.pass_ms(1)
    assert harness.now.state == "CompletingRebalance"
    assert not harness.waiting


def test_leaving_in_the_initial_delay_leaves_an_empty_group() -> None:
    harness = ClassicGroupHarness(delay_ms=3_000)
    harness.join("A")
    assert harness.leave("A") == [0]
    assert harness.late()["A"].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    harness.pass_ms(3_000)
    assert harness.now.state == "Empty"
    assert harness.now.group.generation == 1

"""Metrics of a group core that is played by hand, in virtual time."""

from __future__ import annotations

import math
from typing import Any

from kip848_client.core.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitKind,
    CommitRefusal,
    CommittableOffset,
    SendCommit,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.observe.core.metrics import Metrics
from kip848_client.observe.core.watching import GroupMeter
from tests.unit.core.group._harness import GroupHarness, tps


def metered(**options: Any) -> tuple[GroupHarness, Metrics]:
    harness, metrics = GroupHarness(**options), Metrics()
    meter = GroupMeter(metrics.open({"group-id": "g"}, lambda: harness.now))
    harness.watchers.append(meter.on_step)
    return harness, metrics


def test_nothing_has_happened_yet() -> None:
    _, metrics = metered()
    names = {each.name for each in metrics.samples()}
    assert {"heartbeat-total", "rebalance-total", "failed-rebalance-total"} <= names
    assert metrics.value("stale-commit-total") == 0
    assert "last-heartbeat-seconds-ago" not in names


def test_heartbeats_are_counted_and_timed() -> None:
    harness, metrics = metered()
    harness.joined(0)
    sent = metrics.value("heartbeat-total")
    harness.advance(2_000)
    assert metrics.value("heartbeat-total") == sent + 1, "an extra one, since the target is new"
    harness.accept(1, 0)
    assert metrics.value("heartbeat-response-time-max") > 0
    harness.now += 500
    assert metrics.value("last-heartbeat-seconds-ago") >= 0.5
    assert metrics.value("member-epoch") == 1


def test_a_rebalance_lasts_from_the_target_to_its_end() -> None:
    harness, metrics = metered(auto_commit=False)
    harness.joined(0, 1)
    before = metrics.value("rebalance-latency-total")
    harness.target(1, 0)
    harness.advance(300)
    harness.came_back()
    harness.advance(200)
    harness.returned()
    harness.advance(100)
    harness.returned()
    assert metrics.value("rebalance-total") == 2
    assert metrics.value("rebalance-latency-total") - before == 600
    assert metrics.value("reconciliation-phase-time-total", phase="revoking") == 500
    assert metrics.value("reconciliation-phase-time-max", phase="assigning") == 100
    assert metrics.value("partition-revoked-latency-max") == 200
    harness.advance(2_000)
    assert metrics.value("last-rebalance-seconds-ago") == 2


def test_a_fence_during_a_rebalance_is_a_failed_one() -> None:
    harness, metrics = metered(auto_commit=False)
    harness.joined(0, 1)
    harness.target(1, 0)
    harness.fence()
    assert metrics.value("failed-rebalance-total") == 1
    assert metrics.value("rebalance-total") == 1
    assert metrics.value("fenced-total", cause="UNKNOWN_MEMBER_ID") == 1
    assert metrics.value("member-epoch") == 0


def test_a_fence_of_a_stable_member_fails_no_rebalance() -> None:
    harness, metrics = metered()
    harness.joined(0)
    harness.fence()
    assert metrics.value("failed-rebalance-total") == 0
    assert metrics.value("fenced-total") == 1


def test_commits_are_timed_and_stale_ones_counted() -> None:
    harness, metrics = metered(auto_commit=False)
    harness.joined(0)
    assert math.isnan(metrics.value("commit-latency-max")) or not metrics.value("commit-total")
    offsets = {tps(0)[0]: CommittableOffset(3)}
    harness.feed(CommitAsked(1, CommitKind.MANUAL, offsets, harness.now + 10_000))
    harness.advance(40)
    refusal = CommitRefusal(ErrorCode.STALE_MEMBER_EPOCH, "STALE_MEMBER_EPOCH")
    sent = harness.newest_of(SendCommit)
    harness.feed(CommitAnswered(sent.attempt, dict.fromkeys(sent.offsets, refusal)))
    assert metrics.value("stale-commit-total") == 1
    harness.accept(2, 0)
    harness.advance(200)
    harness.stored()
    assert metrics.value("commit-total") == 2
    assert metrics.value("stale-commit-total") == 1
    assert metrics.value("commit-latency-max") >= 40
    assert metrics.value("commit-sync-time-ns-total") == 240_000_000


def test_look_ups_of_the_application_are_timed() -> None:
    harness, metrics = GroupHarness(), Metrics()
    meter = GroupMeter(metrics.open({"group-id": "g"}, lambda: harness.now))
    assert metrics.value("committed-time-ns-total") == 0
    meter.looked_up(harness.now, 3)
    meter.looked_up(harness.now, 4)
    assert metrics.value("committed-time-ns-total") == 7_000_000

"""The events of a membership, of a group core that is played by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.member import (
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatLost,
    HeartbeatRefused,
    LossReason,
    MemberState,
    Polled,
    SendHeartbeat,
    Subscribed,
)
from kip848_client.core.offsets import CommitAnswered, CommitRefusal, SendCommit
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import broker_error
from kip848_client.observe.core import watching
from kip848_client.observe.core.watching import (
    ApplicationStalled,
    Chronicle,
    CommitFenced,
    CoordinatorBack,
    CoordinatorLost,
    CoordinatorUnreachable,
    MemberEpochChanged,
    MemberFailed,
    MemberFenced,
    MembershipEvent,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    StaleCommit,
    StateChanged,
)
from tests.unit.core.group._harness import GroupHarness, tps

ORIGIN_MS = 1_000_000


def watched(**options: Any) -> tuple[GroupHarness, list[MembershipEvent]]:
    harness, chronicle = GroupHarness(**options), Chronicle(ORIGIN_MS)
    told: list[MembershipEvent] = []
    harness.watchers.append(
        lambda now_ms, event, commands: told.extend(chronicle.of(now_ms, event, commands))
    )
    return harness, told


def but_states(told: list[MembershipEvent]) -> list[MembershipEvent]:
    return [each for each in told if not isinstance(each, StateChanged)]


def test_a_join_is_told_with_its_epoch_and_partitions() -> None:
    harness, told = watched()
    harness.joined(0, 1, epoch=3)
    time_ms = ORIGIN_MS + harness.now
    assert but_states(told) == [
        MemberEpochChanged(time_ms, 3, 0),
        PartitionsAssigned(time_ms, 3, tps(0, 1)),
    ]
    states = [each.new for each in told if isinstance(each, StateChanged)]
    assert states == [
        MemberState.JOINING,
        MemberState.RECONCILING,
        MemberState.ACKNOWLEDGING,
        MemberState.STABLE,
    ]


def test_a_heartbeat_without_news_is_no_event() -> None:
    harness, told = watched()
    harness.joined(0)
    told.clear()
    harness.target(1, 0)
    assert told == []


def test_what_is_given_up_is_revoked() -> None:
    harness, told = watched(auto_commit=False)
    harness.joined(0, 1)
    told.clear()
    harness.target(1, 0)
    harness.came_back()
    assert [each.partitions for each in told if isinstance(each, PartitionsRevoked)] == [tps(1)]


def test_a_fence_has_its_cause_and_the_loss_has_it_too() -> None:
    harness, told = watched()
    harness.joined(0, epoch=5)
    told.clear()
    harness.fence()
    time_ms = ORIGIN_MS + harness.now
    assert but_states(told) == [
        MemberFenced(time_ms, 5, "UNKNOWN_MEMBER_ID"),
        MemberEpochChanged(time_ms, 0, 5),
        PartitionsLost(time_ms, 0, tps(0), "fenced by UNKNOWN_MEMBER_ID"),
    ]


def test_what_a_leave_without_patience_takes_is_told_once() -> None:
    """The application does not come back in time; the listener is called all the same."""
    harness, told = watched(auto_commit=False)
    harness.joined(0, 1)
    harness.hand_out(0, 5, done=False)
    told.clear()
    harness.leave(final=False, within_ms=1_000)
    harness.advance(10_000)
    assert not [each for each in told if isinstance(each, PartitionsLost)]
    (revoked,) = [each for each in told if isinstance(each, PartitionsRevoked)]
    assert revoked.partitions == tps(0, 1)


def test_an_application_that_does_not_poll_is_told_twice() -> None:
    harness, told = watched()
    harness.joined(0)
    harness.advance(300_000)
    stalls = [each for each in told if isinstance(each, ApplicationStalled)]
    assert [(each.poll_age_ms, each.left_ms) for each in stalls] == [
        (150_000, 150_000),
        (300_000, 0),
    ]
    (lost,) = [each for each in told if isinstance(each, PartitionsLost)]
    assert lost.partitions == tps(0)


def test_a_coordinator_that_is_silent_and_comes_back() -> None:
    harness, told = watched()
    harness.feed(Subscribed(frozenset({"t"})), Polled())
    harness.advance(30_000)
    harness.accept(1)
    assert [type(each) for each in told if "Coordinator" in type(each).__name__] == [
        CoordinatorUnreachable,
        CoordinatorBack,
    ]


def test_a_coordinator_that_moved_is_told_with_the_reason() -> None:
    harness, told = watched()
    harness.joined(0)
    harness.target(1, 0)
    harness.advance(5_000)
    attempt = harness.newest_of(SendHeartbeat).attempt
    harness.feed(HeartbeatLost(attempt, LossReason.DISCONNECTED))
    (lost,) = [each for each in told if isinstance(each, CoordinatorLost)]
    assert lost.cause == "heartbeat disconnected"


def test_a_fatal_error_is_told() -> None:
    harness, told = watched()
    harness.feed(Subscribed(frozenset({"t"})), Polled())
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    attempt = harness.newest_of(SendHeartbeat).attempt
    harness.feed(HeartbeatAnswered(attempt, HeartbeatRefused(code, code.name)))
    (failed,) = [each for each in told if isinstance(each, MemberFailed)]
    expected = broker_error(code, code.name, None, api="ConsumerGroupHeartbeat")
    assert type(failed.error) is type(expected)
    assert "GROUP_AUTHORIZATION_FAILED" in str(failed.error)


def test_a_stale_commit_is_told_with_its_partitions() -> None:
    harness, told = watched(interval_ms=1_000)
    harness.joined(0, 1, epoch=2)
    harness.hand_out(0, 5)
    harness.advance(1_000)
    sent = harness.newest_of(SendCommit)
    refusal = CommitRefusal(ErrorCode.STALE_MEMBER_EPOCH, "STALE_MEMBER_EPOCH")
    harness.feed(CommitAnswered(sent.attempt, dict.fromkeys(sent.offsets, refusal)))
    (stale,) = [each for each in told if isinstance(each, StaleCommit)]
    assert (stale.member_epoch, stale.partitions) == (2, tps(0))


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_commit_of_a_member_that_was_put_out_is_told_with_the_reason(code: ErrorCode) -> None:
    harness, told = watched(interval_ms=1_000)
    harness.joined(0, 1, epoch=2)
    harness.hand_out(0, 5)
    harness.advance(1_000)
    sent = harness.newest_of(SendCommit)
    refusal = CommitRefusal(code, code.name)
    harness.feed(CommitAnswered(sent.attempt, dict.fromkeys(sent.offsets, refusal)))
    (fenced,) = [each for each in told if isinstance(each, CommitFenced)]
    assert (fenced.member_epoch, fenced.partitions, fenced.cause) == (2, tps(0), code.name)


def test_heartbeats_are_told_to_who_asks_for_them() -> None:
    harness, chronicle = GroupHarness(), Chronicle(ORIGIN_MS)
    told: list[MembershipEvent] = []
    wanted = [True]
    harness.watchers.append(
        lambda now_ms, event, commands: told.extend(
            chronicle.of(now_ms, event, commands, heartbeats=wanted[0])
        )
    )
    harness.feed(Subscribed(frozenset({"t"})), Polled())
    harness.advance(70)
    lost = harness.newest_of(SendHeartbeat).attempt
    harness.feed(HeartbeatLost(lost, LossReason.DISCONNECTED))
    told_lost = [each for each in told if isinstance(each, watching.HeartbeatLost)]
    assert [(each.waited_ms, each.cause) for each in told_lost] == [(70, "disconnected")]
    wanted[0] = False
    told.clear()
    harness.advance(60_000)
    assert not [each for each in told if "Heartbeat" in type(each).__name__]


def test_a_heartbeat_has_its_latency_and_epoch_or_its_error() -> None:
    harness, chronicle = GroupHarness(), Chronicle(ORIGIN_MS)
    told: list[MembershipEvent] = []
    harness.watchers.append(
        lambda now_ms, event, commands: told.extend(
            chronicle.of(now_ms, event, commands, heartbeats=True)
        )
    )
    harness.feed(Subscribed(frozenset({"t"})), Polled())
    attempt = harness.newest_of(SendHeartbeat).attempt
    harness.advance(30)
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.feed(HeartbeatAnswered(attempt, HeartbeatRefused(code, code.name, retriable=True)))
    harness.advance(10_000)
    attempt = harness.newest_of(SendHeartbeat).attempt
    sent_ago = harness.now
    harness.advance(12)
    harness.feed(HeartbeatAnswered(attempt, HeartbeatAccepted(None, 4, 5_000)))
    seen = [each for each in told if type(each).__name__.startswith("Heartbeat")]
    refused, answered = seen
    assert isinstance(refused, watching.HeartbeatRefused)
    assert (refused.latency_ms, refused.cause) == (30, "COORDINATOR_LOAD_IN_PROGRESS")
    assert isinstance(answered, watching.HeartbeatAnswered)
    assert (answered.member_epoch, answered.time_ms) == (4, ORIGIN_MS + harness.now)
    assert answered.latency_ms >= harness.now - sent_ago

"""Unsubscribe and close (KIP-848 leave, KIP-1092 close options, static membership)."""

from __future__ import annotations

import pytest

from kip848_client.core.member import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    CoordinatorLost,
    EpochChanged,
    FindCoordinator,
    FlushOffsets,
    HeartbeatFailed,
    LeaveCompleted,
    LeaveMode,
    LossReason,
    MemberState,
    PartitionsReleased,
    Polled,
    ReleasePartitions,
    Report,
    SendHeartbeat,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import Kip848Error
from tests.unit.core.member._harness import MemberHarness, T, in_state, part

ACTIVE = [
    MemberState.JOINING,
    MemberState.RECONCILING,
    MemberState.ACKNOWLEDGING,
    MemberState.STABLE,
]


def completions(harness: MemberHarness) -> list[str]:
    return [type(c.error).__name__ for c in harness.all(LeaveCompleted)]


class TestUnsubscribe:
    def test_revokes_then_leaves_then_is_done(self) -> None:
        harness = MemberHarness().stable(epoch=4)
        harness.leave()
        harness.expect(MemberState.PREPARE_LEAVING)
        release = harness.newest(ReleasePartitions)
        assert (release.partitions, release.lost, release.last) == (part(T, 0, 1, 2), False, True)
        assert harness.core.fetchable == ()
        assert harness.core.assigned == part(T, 0, 1, 2)
        assert harness.core.commit_epoch == 4, "the callback may commit"
        harness.released()
        harness.expect(MemberState.LEAVING)
        assert harness.core.assigned == ()
        assert [h.member_epoch for h in harness.heartbeats] == [-1]
        kinds = [type(c) for c in harness.last]
        assert kinds.index(EpochChanged) < kinds.index(SendHeartbeat)
        assert completions(harness) == []
        harness.accept(-1, interval=0)
        harness.expect(MemberState.UNSUBSCRIBED)
        assert completions(harness) == ["NoneType"]
        assert not harness.core.closed
        assert harness.core.deadline_ms is None

    @pytest.mark.parametrize("state", ACTIVE)
    def test_from_every_active_state(self, state: MemberState) -> None:
        harness = in_state(state)
        harness.leave()
        if harness.out(ReleasePartitions):
            harness.released()
        harness.expect(MemberState.LEAVING)
        harness.accept(-1)
        harness.expect(MemberState.UNSUBSCRIBED)

    def test_before_the_first_join_answer(self) -> None:
        """KAFKA-17116, KIP-1082: the id is ours, so the leave is effective."""
        harness = MemberHarness().join()
        harness.leave(final=True)
        assert [h.member_epoch for h in harness.heartbeats] == [-1]
        harness.accept(-1)
        assert harness.core.closed

    def test_before_anything_was_sent_there_is_nothing_to_tell(self) -> None:
        """KAFKA-18569, KAFKA-19357: without a coordinator a close is fast."""
        harness = MemberHarness()
        harness.auto_lookup = False
        harness.join()
        harness.leave(final=True)
        assert harness.core.closed
        assert harness.heartbeats == []

    def test_with_nothing_assigned_there_is_no_callback(self) -> None:
        """KAFKA-16261."""
        harness = MemberHarness().stable(t=[])
        harness.leave()
        assert harness.out(ReleasePartitions) == []
        harness.expect(MemberState.LEAVING)

    def test_when_never_subscribed_it_is_done_at_once(self) -> None:
        harness = MemberHarness()
        harness.leave()
        assert harness.last == (LeaveCompleted(),)

    def test_the_subscription_is_gone(self) -> None:
        """A subscribe that was never polled must not join after the unsubscribe."""
        harness = MemberHarness()
        harness.subscribe("t")
        harness.leave()
        harness.feed(Polled())
        harness.expect(MemberState.UNSUBSCRIBED)

    @pytest.mark.parametrize("state", [MemberState.FENCED, MemberState.STALE])
    def test_out_of_the_group_it_is_done_at_once(self, state: MemberState) -> None:
        harness = in_state(state)
        plan = harness.newest(ReleasePartitions).plan
        harness.leave()
        harness.expect(MemberState.UNSUBSCRIBED)
        assert harness.core.assigned == ()
        assert completions(harness) == ["NoneType"]
        harness.feed(PartitionsReleased(plan))
        harness.feed(Polled())
        harness.expect(MemberState.UNSUBSCRIBED)

    def test_authorization_errors_do_not_hinder_it(self) -> None:
        """KAFKA-17648, KAFKA-19300."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        harness.leave()
        harness.released()
        harness.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert completions(harness) == ["TopicAuthorizationFailed"]
        harness.expect(MemberState.UNSUBSCRIBED)
        assert len(harness.errors) == 1, "the one from before"

    def test_a_failing_callback_does_not_hinder_it(self) -> None:
        """KAFKA-16933."""
        harness = MemberHarness().stable()
        harness.leave()
        harness.released(failed=True)
        assert [h.member_epoch for h in harness.heartbeats] == [-1]

    def test_the_session_survives_a_slow_callback(self) -> None:
        harness = MemberHarness().stable(epoch=2)
        harness.leave(within=60_000)
        for _ in range(5):
            assert harness.next_heartbeat().member_epoch == 2
            harness.accept(2)
        harness.expect(MemberState.PREPARE_LEAVING)

    def test_a_second_leave_shares_the_first(self) -> None:
        harness = MemberHarness().stable()
        harness.leave(within=60_000)
        harness.leave(LeaveMode.LEAVE_GROUP, within=10_000, final=True)
        harness.released()
        harness.accept(-1)
        assert completions(harness) == ["NoneType"]
        assert harness.core.closed

    def test_running_work_is_replaced(self) -> None:
        harness = MemberHarness(auto_commit=False).stable()
        harness.target(1, t=[0])
        harness.leave()
        assert harness.newest(ReleasePartitions).partitions == part(T, 0), (
            "1 and 2 are being revoked"
        )
        harness.released()
        harness.expect(MemberState.LEAVING)


class TestSubscribingAgain:
    def test_is_kept_until_the_old_membership_is_gone(self) -> None:
        """librdkafka 5015: subscribe, unsubscribe, subscribe; the last one counts. KAFKA-19335: the
        echo of the leave (-1) meets no JOINING member."""
        harness = MemberHarness().stable(t=[])
        harness.leave()
        harness.subscribe("u")
        harness.subscribe("v")
        harness.feed(Polled())
        harness.expect(MemberState.LEAVING)
        harness.accept(-1)
        harness.expect(MemberState.JOINING)
        assert harness.intent.subscribed_topic_names == ("v",)
        assert harness.intent.member_epoch == 0

    def test_waits_for_a_poll(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.leave()
        harness.subscribe("u")
        harness.accept(-1)
        harness.expect(MemberState.UNSUBSCRIBED)
        harness.feed(Polled())
        harness.expect(MemberState.JOINING)

    def test_a_poll_before_the_subscribe_does_not_count(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.leave()
        harness.feed(Polled())
        harness.subscribe("u")
        harness.accept(-1)
        harness.expect(MemberState.UNSUBSCRIBED)

    def test_a_poll_that_waits_meanwhile_counts(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.feed(Polled(waiting=True))
        harness.leave()
        harness.subscribe("u")
        harness.accept(-1)
        harness.expect(MemberState.JOINING)

    def test_after_a_leave_the_old_success_resurrects_nothing(self) -> None:
        """An answer that comes while LEAVING is ignored; the leave carries -1."""
        harness = MemberHarness().stable(t=[], epoch=3)
        harness.next_heartbeat()
        old = harness.attempt
        harness.leave()
        assert harness.intent.member_epoch == -1
        assert old != harness.attempt
        harness.history = [
            c for c in harness.history if getattr(c, "attempt", 0) != harness.attempt
        ]
        harness.accept(9)
        assert harness.core.commit_epoch is None
        harness.expect(MemberState.LEAVING)

    def test_a_second_unsubscribe_takes_it_back(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.leave()
        harness.subscribe("u")
        harness.leave(final=True)
        harness.accept(-1)
        harness.feed(Polled())
        harness.expect(MemberState.UNSUBSCRIBED)
        assert harness.core.closed

    def test_a_fatal_error_meanwhile_ends_it(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.leave()
        harness.subscribe("u")
        harness.feed(Polled())
        harness.refuse(ErrorCode.FENCED_INSTANCE_ID)
        harness.expect(MemberState.FATAL)
        assert completions(harness) == ["FencedInstanceId"]


class TestFencedWhileLeaving:
    @pytest.mark.parametrize(
        "code",
        [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND],
    )
    def test_the_goal_is_reached(self, code: int) -> None:
        """KAFKA-16933: no leave is sent, nothing rejoins, the callback may finish."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.leave()
        plan = harness.newest(ReleasePartitions).plan
        harness.refuse(code)
        harness.expect(MemberState.UNSUBSCRIBED)
        assert harness.heartbeats == []
        assert completions(harness) == ["NoneType"]
        harness.feed(PartitionsReleased(plan))
        harness.feed(Polled())
        harness.advance(60_000)
        harness.expect(MemberState.UNSUBSCRIBED)

    @pytest.mark.parametrize(
        "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED]
    )
    def test_during_the_commit_the_partitions_are_still_taken(self, code: int) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.leave(flush=True, final=True)
        plan = harness.newest(FlushOffsets).plan
        harness.refuse(code)
        release = harness.newest(ReleasePartitions)
        assert (release.plan, release.lost, release.last) == (plan, True, True)
        assert release.partitions == part(T, 0, 1, 2)
        assert harness.core.closed

    def test_a_fatal_error_completes_the_leave(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.leave(final=True)
        before = len(harness.all(ReleasePartitions))
        harness.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        harness.expect(MemberState.FATAL)
        assert isinstance(harness.last[0], Report)
        assert completions(harness) == ["GroupAuthorizationFailed"]
        assert len(harness.all(ReleasePartitions)) == before
        assert harness.core.closed


class TestCloseModes:
    @pytest.mark.parametrize(
        ("mode", "instance", "epoch"),
        [
            (LeaveMode.DEFAULT, None, -1),
            (LeaveMode.DEFAULT, "i1", -2),
            (LeaveMode.LEAVE_GROUP, None, -1),
            (LeaveMode.LEAVE_GROUP, "i1", -1),
            (LeaveMode.REMAIN_IN_GROUP, "i1", -2),
            (LeaveMode.REMAIN_IN_GROUP, None, None),
        ],
    )
    def test_what_the_coordinator_is_told(
        self, mode: LeaveMode, instance: str | None, epoch: int | None
    ) -> None:
        """franz-go 197bf424: a static member says -2 and keeps its place. KIP-1092."""
        harness = MemberHarness(instance_id=instance).stable()
        harness.leave(mode, final=True)
        harness.released()
        if epoch is None:
            assert harness.heartbeats == []
        else:
            assert [h.member_epoch for h in harness.heartbeats] == [epoch]
            assert harness.intent.instance_id == instance
            harness.accept(epoch)
        assert harness.core.closed
        harness.expect(MemberState.UNSUBSCRIBED)

    def test_close_commits_first(self) -> None:
        """What is to be committed goes while the epoch is still valid."""
        harness = MemberHarness().stable()
        harness.leave(flush=True, final=True, within=10_000)
        flush = harness.newest(FlushOffsets)
        assert (flush.revoked, flush.deadline_ms) == (part(T, 0, 1, 2), harness.now + 10_000)
        assert harness.core.commit_epoch == 1
        assert harness.all(ReleasePartitions) == []
        harness.flushed()
        assert harness.newest(ReleasePartitions).partitions == part(T, 0, 1, 2)
        harness.released()
        assert harness.core.commit_epoch is None

    def test_with_nothing_assigned_there_is_nothing_to_commit(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.leave(flush=True, final=True)
        assert harness.out(FlushOffsets) == []


class TestBudget:
    def test_no_time_at_all_still_leaves(self) -> None:
        """KAFKA-17403, KAFKA-16985: close(0) or a cancelled close."""
        harness = MemberHarness().stable()
        harness.leave(within=0, flush=True, final=True)
        assert harness.out(FlushOffsets) == []
        assert harness.newest(ReleasePartitions).partitions == part(T, 0, 1, 2)
        assert [h.member_epoch for h in harness.heartbeats] == [-1]
        assert completions(harness) == ["RequestTimedOut"]
        assert harness.core.closed
        assert harness.accept(-1) == ()

    def test_a_deadline_in_the_past_is_one_that_is_over(self) -> None:
        harness = MemberHarness().stable()
        harness.leave(within=-500, final=True)
        assert [h.member_epoch for h in harness.heartbeats] == [-1]
        assert harness.core.closed

    def test_a_callback_that_never_returns_is_cut_short(self) -> None:
        harness = MemberHarness().stable()
        harness.leave(within=12_000, final=True)
        harness.advance(11_999)
        harness.expect(MemberState.PREPARE_LEAVING)
        harness.advance(1)
        assert harness.heartbeats[-1].member_epoch == -1
        assert harness.core.closed

    def test_a_commit_that_never_returns_is_cut_short(self) -> None:
        harness = MemberHarness().stable()
        harness.leave(within=12_000, flush=True, final=True)
        harness.advance(12_000)
        assert harness.newest(ReleasePartitions).last
        assert harness.intent.member_epoch == -1
        assert harness.core.closed

    def test_an_answer_that_never_comes_is_not_waited_for_longer(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.leave(within=8_000)
        assert harness.newest(SendHeartbeat).timeout_ms == 8_000
        harness.advance(7_999)
        assert completions(harness) == []
        harness.advance(1)
        assert completions(harness) == ["RequestTimedOut"]
        harness.expect(MemberState.UNSUBSCRIBED)

    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
        ],
    )
    def test_a_moved_coordinator_is_found_and_told(self, code: int) -> None:
        """franz-go 88cf835c: leaves are idempotent and retried."""
        harness = MemberHarness().stable(t=[])
        harness.leave()
        harness.refuse(code)
        assert bool(harness.out(FindCoordinator)) == (
            code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
        assert harness.next_heartbeat().member_epoch == -1
        harness.accept(-1)
        assert completions(harness) == ["NoneType"]

    @pytest.mark.parametrize("reason", LossReason)
    def test_a_lost_leave_is_repeated(self, reason: LossReason) -> None:
        harness = MemberHarness().stable(t=[])
        harness.leave()
        harness.lose(reason)
        assert harness.next_heartbeat().member_epoch == -1
        harness.expect(MemberState.LEAVING)

    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.STALE_MEMBER_EPOCH,
        ],
    )
    def test_not_being_a_member_is_success(self, code: int) -> None:
        """GROUP_ID_NOT_FOUND when the group was never created."""
        harness = MemberHarness().stable(t=[])
        harness.leave()
        harness.refuse(code)
        assert completions(harness) == ["NoneType"]
        assert harness.errors == []

    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.UNSUPPORTED_VERSION,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ],
    )
    def test_another_refusal_ends_it_with_the_reason(self, code: int) -> None:
        harness = MemberHarness().stable(t=[])
        harness.leave()
        harness.refuse(code)
        assert completions(harness) != ["NoneType"]
        harness.expect(MemberState.UNSUBSCRIBED)
        assert harness.errors == [], "it is told by the completion, and raised nowhere"

    def test_a_client_side_failure_ends_it_with_the_reason(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.leave()
        harness.feed(HeartbeatFailed(harness.attempt, Kip848Error("authentication failed")))
        assert completions(harness) == ["Kip848Error"]

    def test_a_coordinator_that_cannot_be_found_is_not_sought_for_long(self) -> None:
        """The budget of the user is not spent on a cluster that is gone."""
        harness = MemberHarness().stable(t=[])
        harness.auto_lookup = False
        harness.feed(CoordinatorLost("gone"))
        harness.leave(within=60_000)
        harness.feed(CoordinatorLookupFailed(harness.newest(FindCoordinator).lookup))
        start = harness.now
        while harness.state is MemberState.LEAVING:
            deadline = harness.core.deadline_ms
            assert deadline is not None
            harness.advance(deadline - harness.now)
            for lookup in harness.out(FindCoordinator):
                harness.feed(CoordinatorLookupFailed(lookup.lookup))
        assert harness.now == start + 5_000
        assert completions(harness) == ["CoordinatorUnavailable"]

    def test_a_coordinator_that_is_found_in_time_is_told(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.auto_lookup = False
        harness.feed(CoordinatorLost("moved"))
        harness.leave()
        harness.feed(CoordinatorFound(harness.newest(FindCoordinator).lookup), after=2_000)
        assert [h.member_epoch for h in harness.heartbeats] == [-1]

    def test_a_coordinator_that_is_lost_late_is_sought_from_then_on(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.auto_lookup = False
        harness.leave()
        harness.lose(LossReason.TIMED_OUT, after=20_000)
        harness.advance(4_999)
        harness.expect(MemberState.LEAVING)
        harness.advance(1)
        assert completions(harness) == ["CoordinatorUnavailable"]

    def test_after_the_deadline_no_lookup_is_started(self) -> None:
        """KAFKA-18569: while closing, stop discovering."""
        harness = MemberHarness().stable(t=[])
        harness.auto_lookup = False
        harness.feed(CoordinatorLost("gone"))
        harness.feed(CoordinatorLookupFailed(harness.newest(FindCoordinator).lookup))
        harness.advance(50)
        harness.leave(within=0)
        assert harness.out(FindCoordinator) == []
        assert completions(harness) == ["RequestTimedOut"]

"""Unsubscribe and close (KIP-848 leave, KIP-1092 close options, static membership)."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import Kip848Error
from kip848_client.member import (
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
from tests.unit.member._harness import Rig, T, in_state, part

ACTIVE = [
    MemberState.JOINING,
    MemberState.RECONCILING,
    MemberState.ACKNOWLEDGING,
    MemberState.STABLE,
]


def completions(rig: Rig) -> list[str]:
    return [type(c.error).__name__ for c in rig.all(LeaveCompleted)]


class TestUnsubscribe:
    def test_revokes_then_leaves_then_is_done(self) -> None:
        rig = Rig().stable(epoch=4)
        rig.leave()
        rig.expect(MemberState.PREPARE_LEAVING)
        release = rig.newest(ReleasePartitions)
        assert (release.partitions, release.lost, release.last) == (part(T, 0, 1, 2), False, True)
        assert rig.core.fetchable == ()
        assert rig.core.assigned == part(T, 0, 1, 2)
        assert rig.core.commit_epoch == 4, "the callback may commit"
        rig.released()
        rig.expect(MemberState.LEAVING)
        assert rig.core.assigned == ()
        assert [h.member_epoch for h in rig.heartbeats] == [-1]
        kinds = [type(c) for c in rig.last]
        assert kinds.index(EpochChanged) < kinds.index(SendHeartbeat)
        assert completions(rig) == []
        rig.accept(-1, interval=0)
        rig.expect(MemberState.UNSUBSCRIBED)
        assert completions(rig) == ["NoneType"]
        assert not rig.core.closed
        assert rig.core.deadline_ms is None

    @pytest.mark.parametrize("state", ACTIVE)
    def test_from_every_active_state(self, state: MemberState) -> None:
        rig = in_state(state)
        rig.leave()
        if rig.out(ReleasePartitions):
            rig.released()
        rig.expect(MemberState.LEAVING)
        rig.accept(-1)
        rig.expect(MemberState.UNSUBSCRIBED)

    def test_before_the_first_join_answer(self) -> None:
        """KAFKA-17116, KIP-1082: the id is ours, so the leave is effective."""
        rig = Rig().join()
        rig.leave(final=True)
        assert [h.member_epoch for h in rig.heartbeats] == [-1]
        rig.accept(-1)
        assert rig.core.closed

    def test_before_anything_was_sent_there_is_nothing_to_tell(self) -> None:
        """KAFKA-18569, KAFKA-19357: without a coordinator a close is fast."""
        rig = Rig()
        rig.auto_lookup = False
        rig.join()
        rig.leave(final=True)
        assert rig.core.closed
        assert rig.heartbeats == []

    def test_with_nothing_assigned_there_is_no_callback(self) -> None:
        """KAFKA-16261."""
        rig = Rig().stable(t=[])
        rig.leave()
        assert rig.out(ReleasePartitions) == []
        rig.expect(MemberState.LEAVING)

    def test_when_never_subscribed_it_is_done_at_once(self) -> None:
        rig = Rig()
        rig.leave()
        assert rig.last == (LeaveCompleted(),)

    def test_the_subscription_is_gone(self) -> None:
        """A subscribe that was never polled must not join after the unsubscribe."""
        rig = Rig()
        rig.subscribe("t")
        rig.leave()
        rig.feed(Polled())
        rig.expect(MemberState.UNSUBSCRIBED)

    @pytest.mark.parametrize("state", [MemberState.FENCED, MemberState.STALE])
    def test_out_of_the_group_it_is_done_at_once(self, state: MemberState) -> None:
        rig = in_state(state)
        plan = rig.newest(ReleasePartitions).plan
        rig.leave()
        rig.expect(MemberState.UNSUBSCRIBED)
        assert rig.core.assigned == ()
        assert completions(rig) == ["NoneType"]
        rig.feed(PartitionsReleased(plan))
        rig.feed(Polled())
        rig.expect(MemberState.UNSUBSCRIBED)

    def test_authorization_errors_do_not_hinder_it(self) -> None:
        """KAFKA-17648, KAFKA-19300."""
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        rig.leave()
        rig.released()
        rig.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert completions(rig) == ["TopicAuthorizationFailed"]
        rig.expect(MemberState.UNSUBSCRIBED)
        assert len(rig.errors) == 1, "the one from before"

    def test_a_failing_callback_does_not_hinder_it(self) -> None:
        """KAFKA-16933."""
        rig = Rig().stable()
        rig.leave()
        rig.released(failed=True)
        assert [h.member_epoch for h in rig.heartbeats] == [-1]

    def test_the_session_survives_a_slow_callback(self) -> None:
        rig = Rig().stable(epoch=2)
        rig.leave(within=60_000)
        for _ in range(5):
            assert rig.next_heartbeat().member_epoch == 2
            rig.accept(2)
        rig.expect(MemberState.PREPARE_LEAVING)

    def test_a_second_leave_shares_the_first(self) -> None:
        rig = Rig().stable()
        rig.leave(within=60_000)
        rig.leave(LeaveMode.LEAVE_GROUP, within=10_000, final=True)
        rig.released()
        rig.accept(-1)
        assert completions(rig) == ["NoneType"]
        assert rig.core.closed

    def test_running_work_is_replaced(self) -> None:
        rig = Rig(auto_commit=False).stable()
        rig.target(1, t=[0])
        rig.leave()
        assert rig.newest(ReleasePartitions).partitions == part(T, 0), "1 and 2 are being revoked"
        rig.released()
        rig.expect(MemberState.LEAVING)


class TestSubscribingAgain:
    def test_is_kept_until_the_old_membership_is_gone(self) -> None:
        """librdkafka 5015: subscribe, unsubscribe, subscribe; the last one counts. KAFKA-19335: the
        echo of the leave (-1) meets no JOINING member."""
        rig = Rig().stable(t=[])
        rig.leave()
        rig.subscribe("u")
        rig.subscribe("v")
        rig.feed(Polled())
        rig.expect(MemberState.LEAVING)
        rig.accept(-1)
        rig.expect(MemberState.JOINING)
        assert rig.intent.subscribed_topic_names == ("v",)
        assert rig.intent.member_epoch == 0

    def test_waits_for_a_poll(self) -> None:
        rig = Rig().stable(t=[])
        rig.leave()
        rig.subscribe("u")
        rig.accept(-1)
        rig.expect(MemberState.UNSUBSCRIBED)
        rig.feed(Polled())
        rig.expect(MemberState.JOINING)

    def test_a_poll_before_the_subscribe_does_not_count(self) -> None:
        rig = Rig().stable(t=[])
        rig.leave()
        rig.feed(Polled())
        rig.subscribe("u")
        rig.accept(-1)
        rig.expect(MemberState.UNSUBSCRIBED)

    def test_a_poll_that_waits_meanwhile_counts(self) -> None:
        rig = Rig().stable(t=[])
        rig.feed(Polled(waiting=True))
        rig.leave()
        rig.subscribe("u")
        rig.accept(-1)
        rig.expect(MemberState.JOINING)

    def test_after_a_leave_the_old_success_resurrects_nothing(self) -> None:
        """An answer that comes while LEAVING is ignored; the leave carries -1."""
        rig = Rig().stable(t=[], epoch=3)
        rig.next_heartbeat()
        old = rig.attempt
        rig.leave()
        assert rig.intent.member_epoch == -1
        assert old != rig.attempt
        rig.history = [c for c in rig.history if getattr(c, "attempt", 0) != rig.attempt]
        rig.accept(9)
        assert rig.core.commit_epoch is None
        rig.expect(MemberState.LEAVING)

    def test_a_second_unsubscribe_takes_it_back(self) -> None:
        rig = Rig().stable(t=[])
        rig.leave()
        rig.subscribe("u")
        rig.leave(final=True)
        rig.accept(-1)
        rig.feed(Polled())
        rig.expect(MemberState.UNSUBSCRIBED)
        assert rig.core.closed

    def test_a_fatal_error_meanwhile_ends_it(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.leave()
        rig.subscribe("u")
        rig.feed(Polled())
        rig.refuse(ErrorCode.FENCED_INSTANCE_ID)
        rig.expect(MemberState.FATAL)
        assert completions(rig) == ["FencedInstanceId"]


class TestFencedWhileLeaving:
    @pytest.mark.parametrize(
        "code",
        [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND],
    )
    def test_the_goal_is_reached(self, code: int) -> None:
        """KAFKA-16933: no leave is sent, nothing rejoins, the callback may finish."""
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.leave()
        plan = rig.newest(ReleasePartitions).plan
        rig.refuse(code)
        rig.expect(MemberState.UNSUBSCRIBED)
        assert rig.heartbeats == []
        assert completions(rig) == ["NoneType"]
        rig.feed(PartitionsReleased(plan))
        rig.feed(Polled())
        rig.advance(60_000)
        rig.expect(MemberState.UNSUBSCRIBED)

    @pytest.mark.parametrize(
        "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED]
    )
    def test_during_the_commit_the_partitions_are_still_taken(self, code: int) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.leave(flush=True, final=True)
        plan = rig.newest(FlushOffsets).plan
        rig.refuse(code)
        release = rig.newest(ReleasePartitions)
        assert (release.plan, release.lost, release.last) == (plan, True, True)
        assert release.partitions == part(T, 0, 1, 2)
        assert rig.core.closed

    def test_a_fatal_error_completes_the_leave(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.leave(final=True)
        before = len(rig.all(ReleasePartitions))
        rig.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        rig.expect(MemberState.FATAL)
        assert isinstance(rig.last[0], Report)
        assert completions(rig) == ["GroupAuthorizationFailed"]
        assert len(rig.all(ReleasePartitions)) == before
        assert rig.core.closed


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
        rig = Rig(instance_id=instance).stable()
        rig.leave(mode, final=True)
        rig.released()
        if epoch is None:
            assert rig.heartbeats == []
        else:
            assert [h.member_epoch for h in rig.heartbeats] == [epoch]
            assert rig.intent.instance_id == instance
            rig.accept(epoch)
        assert rig.core.closed
        rig.expect(MemberState.UNSUBSCRIBED)

    def test_close_commits_first(self) -> None:
        """What is to be committed goes while the epoch is still valid."""
        rig = Rig().stable()
        rig.leave(flush=True, final=True, within=10_000)
        flush = rig.newest(FlushOffsets)
        assert (flush.revoked, flush.deadline_ms) == (part(T, 0, 1, 2), rig.now + 10_000)
        assert rig.core.commit_epoch == 1
        assert rig.all(ReleasePartitions) == []
        rig.flushed()
        assert rig.newest(ReleasePartitions).partitions == part(T, 0, 1, 2)
        rig.released()
        assert rig.core.commit_epoch is None

    def test_with_nothing_assigned_there_is_nothing_to_commit(self) -> None:
        rig = Rig().stable(t=[])
        rig.leave(flush=True, final=True)
        assert rig.out(FlushOffsets) == []


class TestBudget:
    def test_no_time_at_all_still_leaves(self) -> None:
        """KAFKA-17403, KAFKA-16985: close(0) or a cancelled close."""
        rig = Rig().stable()
        rig.leave(within=0, flush=True, final=True)
        assert rig.out(FlushOffsets) == []
        assert rig.newest(ReleasePartitions).partitions == part(T, 0, 1, 2)
        assert [h.member_epoch for h in rig.heartbeats] == [-1]
        assert completions(rig) == ["RequestTimedOut"]
        assert rig.core.closed
        assert rig.accept(-1) == ()

    def test_a_deadline_in_the_past_is_one_that_is_over(self) -> None:
        rig = Rig().stable()
        rig.leave(within=-500, final=True)
        assert [h.member_epoch for h in rig.heartbeats] == [-1]
        assert rig.core.closed

    def test_a_callback_that_never_returns_is_cut_short(self) -> None:
        rig = Rig().stable()
        rig.leave(within=12_000, final=True)
        rig.advance(11_999)
        rig.expect(MemberState.PREPARE_LEAVING)
        rig.advance(1)
        assert rig.heartbeats[-1].member_epoch == -1
        assert rig.core.closed

    def test_a_commit_that_never_returns_is_cut_short(self) -> None:
        rig = Rig().stable()
        rig.leave(within=12_000, flush=True, final=True)
        rig.advance(12_000)
        assert rig.newest(ReleasePartitions).last
        assert rig.intent.member_epoch == -1
        assert rig.core.closed

    def test_an_answer_that_never_comes_is_not_waited_for_longer(self) -> None:
        rig = Rig().stable(t=[])
        rig.leave(within=8_000)
        assert rig.newest(SendHeartbeat).timeout_ms == 8_000
        rig.advance(7_999)
        assert completions(rig) == []
        rig.advance(1)
        assert completions(rig) == ["RequestTimedOut"]
        rig.expect(MemberState.UNSUBSCRIBED)

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
        rig = Rig().stable(t=[])
        rig.leave()
        rig.refuse(code)
        assert bool(rig.out(FindCoordinator)) == (code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert rig.next_heartbeat().member_epoch == -1
        rig.accept(-1)
        assert completions(rig) == ["NoneType"]

    @pytest.mark.parametrize("reason", LossReason)
    def test_a_lost_leave_is_repeated(self, reason: LossReason) -> None:
        rig = Rig().stable(t=[])
        rig.leave()
        rig.lose(reason)
        assert rig.next_heartbeat().member_epoch == -1
        rig.expect(MemberState.LEAVING)

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
        rig = Rig().stable(t=[])
        rig.leave()
        rig.refuse(code)
        assert completions(rig) == ["NoneType"]
        assert rig.errors == []

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
        rig = Rig().stable(t=[])
        rig.leave()
        rig.refuse(code)
        assert completions(rig) != ["NoneType"]
        rig.expect(MemberState.UNSUBSCRIBED)
        assert rig.errors == [], "it is told by the completion, and raised nowhere"

    def test_a_client_side_failure_ends_it_with_the_reason(self) -> None:
        rig = Rig().stable(t=[])
        rig.leave()
        rig.feed(HeartbeatFailed(rig.attempt, Kip848Error("authentication failed")))
        assert completions(rig) == ["Kip848Error"]

    def test_a_coordinator_that_cannot_be_found_is_not_sought_for_long(self) -> None:
        """The budget of the user is not spent on a cluster that is gone."""
        rig = Rig().stable(t=[])
        rig.auto_lookup = False
        rig.feed(CoordinatorLost("gone"))
        rig.leave(within=60_000)
        rig.feed(CoordinatorLookupFailed(rig.newest(FindCoordinator).lookup))
        start = rig.now
        while rig.state is MemberState.LEAVING:
            deadline = rig.core.deadline_ms
            assert deadline is not None
            rig.advance(deadline - rig.now)
            for lookup in rig.out(FindCoordinator):
                rig.feed(CoordinatorLookupFailed(lookup.lookup))
        assert rig.now == start + 5_000
        assert completions(rig) == ["CoordinatorUnavailable"]

    def test_a_coordinator_that_is_found_in_time_is_told(self) -> None:
        rig = Rig().stable(t=[])
        rig.auto_lookup = False
        rig.feed(CoordinatorLost("moved"))
        rig.leave()
        rig.feed(CoordinatorFound(rig.newest(FindCoordinator).lookup), after=2_000)
        assert [h.member_epoch for h in rig.heartbeats] == [-1]

    def test_a_coordinator_that_is_lost_late_is_sought_from_then_on(self) -> None:
        rig = Rig().stable(t=[])
        rig.auto_lookup = False
        rig.leave()
        rig.lose(LossReason.TIMED_OUT, after=20_000)
        rig.advance(4_999)
        rig.expect(MemberState.LEAVING)
        rig.advance(1)
        assert completions(rig) == ["CoordinatorUnavailable"]

    def test_after_the_deadline_no_lookup_is_started(self) -> None:
        """KAFKA-18569: while closing, stop discovering."""
        rig = Rig().stable(t=[])
        rig.auto_lookup = False
        rig.feed(CoordinatorLost("gone"))
        rig.feed(CoordinatorLookupFailed(rig.newest(FindCoordinator).lookup))
        rig.advance(50)
        rig.leave(within=0)
        assert rig.out(FindCoordinator) == []
        assert completions(rig) == ["RequestTimedOut"]

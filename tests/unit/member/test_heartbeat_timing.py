"""When heartbeats go: interval, backoff, urgency, the poll interval, the silent coordinator."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import GroupAuthorizationFailed
from kip848_client.member import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    CoordinatorLost,
    CoordinatorRecovered,
    FindCoordinator,
    ForgetCoordinator,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatWanted,
    LossReason,
    MemberState,
    Polled,
    PollEnded,
    ReleasePartitions,
    Report,
    SendHeartbeat,
    Severity,
    TimerFired,
)
from kip848_client.member._heartbeat import backoff_ms
from tests.unit.member._harness import Rig, assignment, exact, in_state


class TestInterval:
    def test_subscribing_alone_sends_nothing(self) -> None:
        """KAFKA-17154: the member joins at the first poll."""
        rig = Rig()
        rig.subscribe("t")
        assert rig.advance(60_000) == ()
        rig.expect(MemberState.UNSUBSCRIBED)
        rig.feed(Polled())
        assert len(rig.heartbeats) == 1

    def test_polling_alone_does_nothing(self) -> None:
        rig = Rig()
        assert rig.feed(Polled()) == ()
        rig.expect(MemberState.UNSUBSCRIBED)

    def test_subscribing_inside_a_waiting_poll_joins_at_once(self) -> None:
        rig = Rig()
        rig.feed(Polled(waiting=True))
        rig.subscribe("t")
        rig.expect(MemberState.JOINING)

    def test_the_interval_runs_from_when_a_heartbeat_is_built(self) -> None:
        rig = Rig().stable().calm()
        sent_at = rig.now
        rig.next_heartbeat()
        assert rig.now == sent_at + 5_000
        rig.accept(1, after=1_200)
        rig.next_heartbeat()
        assert rig.now == sent_at + 10_000

    def test_a_new_interval_counts_from_the_answer(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.accept(1, interval=700, after=100)
        answered_at = rig.now
        rig.next_heartbeat()
        assert rig.now == answered_at + 700

    @pytest.mark.parametrize("interval", [0, -1])
    def test_an_interval_that_is_not_positive_is_not_adopted(self, interval: int) -> None:
        """franz-go f0d0655d: leaves and errors carry 0."""
        rig = Rig().stable().calm()
        rig.next_heartbeat()
        rig.accept(1, interval=interval)
        assert rig.core.snapshot().heartbeat_interval_ms == 5_000
        before = rig.now
        rig.next_heartbeat()
        assert rig.now == before + 5_000

    def test_one_heartbeat_at_a_time(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.advance(60_000)
        assert rig.heartbeats == []

    def test_an_answer_in_the_same_millisecond_ends_the_flight(self) -> None:
        """KAFKA-16555: in flight is a fact, not a comparison of times."""
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.accept(1)
        rig.next_heartbeat()
        assert len(rig.heartbeats) == 1

    def test_events_of_other_timers_cause_no_heartbeat(self) -> None:
        """librdkafka 5114: a shorter auto-commit timer must not drive heartbeats."""
        rig = Rig().stable()
        for _ in range(40):
            assert rig.feed(TimerFired(), after=100) == ()

    def test_early_timers_are_harmless(self) -> None:
        rig = Rig().stable()
        deadline = rig.core.deadline_ms
        assert rig.feed(TimerFired()) == ()
        assert rig.core.deadline_ms == deadline


class TestUrgency:
    def test_an_acknowledgement_waits_for_the_heartbeat_under_way(self) -> None:
        rig = in_state(MemberState.ACKNOWLEDGING)
        assert rig.heartbeats == []
        rig.accept(1)
        assert rig.heartbeats[0].owned is not None
        rig.expect(MemberState.STABLE)

    def test_a_subscription_change_is_sent_at_once(self) -> None:
        rig = Rig().stable()
        rig.subscribe("u")
        assert len(rig.heartbeats) == 1

    def test_changes_during_a_flight_are_sent_together(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.subscribe("u")
        rig.subscribe("t", "u")
        assert rig.heartbeats == []
        rig.accept(1)
        assert [h.subscribed_topic_names for h in rig.heartbeats] == [("t", "u")]

    def test_a_stale_commit_asks_for_the_epoch_at_once(self) -> None:
        rig = Rig().stable()
        rig.feed(HeartbeatWanted())
        assert len(rig.heartbeats) == 1

    def test_outside_of_the_group_nobody_can_ask(self) -> None:
        rig = in_state(MemberState.FENCED)
        rig.feed(HeartbeatWanted())
        assert rig.heartbeats == []

    def test_urgent_heartbeats_have_a_budget(self) -> None:
        """Neither a broker nor an application can turn the member into a busy loop."""
        rig = Rig().stable()
        sent = 0
        for turn in range(500):
            rig.subscribe("u" if turn % 2 else "v")
            rig.advance(1)
            sent += len(rig.heartbeats)
            if rig.core.snapshot().consecutive_failures == 0 and rig.history:
                rig.accept(1, after=1)
                sent += len(rig.heartbeats)
        assert sent <= 25

    def test_a_broker_that_changes_its_mind_at_every_answer_is_slowed_down(self) -> None:
        rig = Rig(auto_commit=False).stable(t=[0])
        before = len(rig.all(SendHeartbeat))
        start = rig.now
        rig.next_heartbeat()
        epoch = 1
        while rig.now < start + 20_000:
            epoch += 1
            rig.accept(epoch, assignment(t=[0, epoch]), after=1)
            if rig.out(ReleasePartitions):
                rig.released()
            rig.started()
            if not rig.heartbeats:
                rig.next_heartbeat()
        assert len(rig.all(SendHeartbeat)) - before <= 20 * 11


class TestExtraHeartbeats:
    """Others give up for us what they hear of by their next heartbeat only (KIP-1263, too)."""

    def pauses(self, rig: Rig, epoch: int) -> list[int]:
        """The pauses between the heartbeats of the next 30 s, without the interval's."""
        pauses: list[int] = []
        end, before = rig.now + 30_000, rig.now
        while rig.now < end:
            rig.next_heartbeat()
            rig.accept(epoch)
            pauses.append(rig.now - before)
            before = rig.now
        return [pause for pause in pauses if pause != 5_000]

    def test_a_member_that_joined_and_got_nothing_asks_again_soon(self) -> None:
        rig = Rig().stable(t=[])
        assert self.pauses(rig, 1) == [200, 400, 800, *[1_000] * 8]

    def test_they_begin_anew_with_each_change_of_the_assignment(self) -> None:
        rig = Rig(auto_commit=False).stable(t=[0]).calm()
        assert self.pauses(rig, 1) == []
        rig.target(2, t=[0, 1])
        rig.started()
        rig.accept(2)
        assert self.pauses(rig, 2) == [200, 400, 800, *[1_000] * 8]

    def test_they_go_on_while_the_listener_works(self) -> None:
        """What is taken from others for us waits for our acknowledgement, and they for ours."""
        rig = Rig(auto_commit=False).stable(t=[0]).calm()
        rig.target(2, t=[0, 1])
        before = rig.now
        rig.next_heartbeat()
        assert rig.now == before + 100

    def test_an_error_is_followed_by_the_backoff_alone(self) -> None:
        rig = Rig().stable(t=[])
        rig.next_heartbeat()
        before = rig.now
        rig.lose(LossReason.TIMED_OUT)
        rig.next_heartbeat()
        assert rig.now == before + 100

    def test_a_member_that_was_put_out_begins_again(self) -> None:
        rig = Rig().stable(t=[]).calm()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        rig.accept(1, ())
        rig.started()
        rig.accept(1)
        assert self.pauses(rig, 1) == [200, 400, 800, *[1_000] * 8]


class TestBackoff:
    def test_doubles_is_capped_and_varies_by_a_fifth(self) -> None:
        assert [backoff_ms(n, 100, 1_000, exact) for n in range(6)] == [
            *(100, 200, 400, 800, 1_000, 1_000)
        ]
        assert backoff_ms(10_000, 100, 1_000, exact) == 1_000

    @pytest.mark.parametrize("wild", [-1, 0, 300_000, 10**9])
    def test_a_wild_jitter_is_tamed(self, wild: int) -> None:
        """KAFKA-19813: a jitter taken from max.poll.interval.ms made pauses of minutes."""
        assert 80 <= backoff_ms(0, 100, 1_000, lambda _: wild) <= 120

    def test_retries_follow_the_backoff_and_not_the_interval(self) -> None:
        """franz-go 90bcc2bb: retries a full interval apart always met a dead connection."""
        rig = Rig().stable().calm()
        rig.next_heartbeat()
        pauses: list[int] = []
        for _ in range(5):
            rig.lose(LossReason.TIMED_OUT)
            before = rig.now
            rig.next_heartbeat()
            pauses.append(rig.now - before)
        assert pauses == [100, 200, 400, 800, 1_000]
        rig.accept(1)
        before = rig.now
        rig.next_heartbeat()
        assert rig.now == before + 5_000

    def test_a_loading_coordinator_is_asked_with_backoff_while_joining(self) -> None:
        """JOINING is urgent, and still respects the backoff."""
        rig = Rig().join()
        times: list[int] = []
        for _ in range(4):
            rig.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            assert rig.heartbeats == []
            before = rig.now
            rig.next_heartbeat()
            times.append(rig.now - before)
        assert times == [100, 200, 400, 800]

    def test_a_new_join_does_not_inherit_old_failures(self) -> None:
        rig = Rig().join()
        for _ in range(4):
            rig.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            rig.next_heartbeat()
        rig.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        rig.leave()
        rig.accept(-1)
        rig.subscribe("t")
        rig.feed(Polled())
        assert [h.member_epoch for h in rig.heartbeats] == [0]

    def test_an_acknowledgement_respects_the_backoff(self) -> None:
        rig = in_state(MemberState.ACKNOWLEDGING)
        rig.lose(LossReason.TIMED_OUT)
        assert rig.heartbeats == []
        before = rig.now
        rig.next_heartbeat()
        assert rig.now == before + 100
        rig.expect(MemberState.STABLE)


class TestCoordinator:
    def test_is_looked_up_when_something_is_to_be_sent(self) -> None:
        rig = Rig()
        rig.auto_lookup = False
        rig.subscribe("t")
        assert rig.out(FindCoordinator) == []
        rig.feed(Polled())
        assert [c.lookup for c in rig.out(FindCoordinator)] == [1]
        assert rig.heartbeats == []
        rig.feed(CoordinatorFound(1))
        assert len(rig.heartbeats) == 1

    def test_failed_lookups_are_repeated_with_backoff(self) -> None:
        rig = Rig()
        rig.auto_lookup = False
        rig.join()
        pauses: list[int] = []
        for number in range(1, 6):
            rig.feed(CoordinatorLookupFailed(number))
            assert rig.out(FindCoordinator) == []
            before = rig.now
            deadline = rig.core.deadline_ms
            assert deadline is not None
            rig.advance(deadline - before)
            assert rig.out(FindCoordinator) == [FindCoordinator(number + 1)]
            pauses.append(rig.now - before)
        assert pauses == [100, 200, 400, 800, 1_000]

    def test_a_forbidden_lookup_is_reported_and_goes_on(self) -> None:
        """KAFKA-18034: an authorization failure of the lookup reaches the user; the member
        is not FATAL, so granting the right cures it."""
        rig = Rig()
        rig.auto_lookup = False
        rig.join()
        error = GroupAuthorizationFailed(30, "GROUP_AUTHORIZATION_FAILED")
        rig.feed(CoordinatorLookupFailed(1, error))
        assert rig.out(Report) == [Report(error, Severity.RAISE)]
        rig.advance(100)
        rig.feed(CoordinatorLookupFailed(2, error))
        assert rig.out(Report) == []
        rig.advance(200)
        rig.feed(CoordinatorFound(3))
        assert len(rig.heartbeats) == 1

    @pytest.mark.parametrize("reason", [LossReason.DISCONNECTED, LossReason.TIMED_OUT])
    def test_a_dead_connection_means_looking_up_again(self, reason: LossReason) -> None:
        """KAFKA-17293; franz-go e8c0ea50: and it is retriable, never fatal."""
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.lose(reason)
        assert len(rig.out(ForgetCoordinator)) == 1
        assert len(rig.out(FindCoordinator)) == 1
        rig.expect(MemberState.STABLE)

    def test_what_was_not_sent_says_nothing_about_the_coordinator(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.lose(LossReason.NOT_SENT)
        assert rig.out(FindCoordinator) == []
        assert rig.next_heartbeat().is_complete

    @pytest.mark.parametrize(
        "code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]
    )
    def test_a_moved_coordinator_is_asked_as_soon_as_it_is_found(self, code: int) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.refuse(code)
        assert len(rig.out(FindCoordinator)) == 1
        assert len(rig.heartbeats) == 1

    def test_a_coordinator_that_moves_all_the_time_is_asked_with_backoff(self) -> None:
        """The same stale address again and again must not spin."""
        rig = Rig().stable()
        rig.next_heartbeat()
        start, sent = rig.now, 0
        while rig.now < start + 10_000:
            rig.refuse(ErrorCode.NOT_COORDINATOR, after=1)
            rig.next_heartbeat()
            sent += 1
        assert sent < 20

    def test_another_request_may_lose_the_coordinator(self) -> None:
        rig = Rig().stable()
        rig.feed(CoordinatorLost("OffsetCommit said NOT_COORDINATOR"))
        assert len(rig.out(FindCoordinator)) == 1
        assert rig.out(ForgetCoordinator) == []
        rig.expect(MemberState.STABLE)
        assert rig.core.fetchable != ()

    def test_an_unknown_coordinator_never_makes_a_busy_loop(self) -> None:
        """KAFKA-20253, KAFKA-20426, KAFKA-20854: wake-ups are bounded."""
        rig = Rig()
        rig.auto_lookup = False
        rig.join()
        wakeups = 0
        end = rig.now + 400_000
        while rig.now < end:
            deadline = rig.core.deadline_ms
            assert deadline is not None
            rig.advance(deadline - rig.now)
            wakeups += 1
            for lookup in rig.out(FindCoordinator):
                rig.feed(CoordinatorLookupFailed(lookup.lookup))
        assert wakeups < 500


class TestSilence:
    """Decision: a coordinator that cannot be reached surfaces within 30 s."""

    def test_an_unanswered_lookup_surfaces(self) -> None:
        """franz-go aae08a38, 0e698966: a consumer could be out of its group for ever without
        a word."""
        rig = Rig()
        rig.auto_lookup = False
        rig.join()
        rig.advance(29_999)
        assert rig.errors == []
        rig.advance(1)
        assert rig.errors == ["CoordinatorUnavailable"]
        assert rig.newest(Report).severity is Severity.NOTICE
        rig.advance(60_000)
        assert len(rig.errors) == 3

    def test_unanswered_heartbeats_surface(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        start = rig.now
        while rig.now < start + 28_000:
            rig.lose(LossReason.TIMED_OUT, after=7_000)
            rig.next_heartbeat()
        assert rig.errors == []
        rig.advance(start + 30_000 - rig.now)
        assert "not answered for 30 s" in str(rig.newest(Report).error)
        rig.accept(1)
        assert [c.silent_ms for c in rig.out(CoordinatorRecovered)] == [rig.now - start]

    def test_a_coordinator_that_only_loads_counts_as_silent(self) -> None:
        rig = Rig().join()
        for _ in range(60):
            rig.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            rig.next_heartbeat()
        assert "CoordinatorUnavailable" in rig.errors

    def test_long_intervals_are_not_silence(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.accept(1, interval=200_000)
        rig.feed(Polled(waiting=True))
        rig.advance(150_000)
        assert rig.errors == []
        assert rig.core.snapshot().coordinator_silent_ms == 0

    def test_a_lookup_that_is_open_across_two_memberships_counts(self) -> None:
        rig = Rig().stable(t=[])
        rig.auto_lookup = False
        rig.feed(CoordinatorLost("x"))
        rig.leave(within=0)
        rig.subscribe("t")
        rig.feed(Polled(waiting=True))
        rig.expect(MemberState.JOINING)
        rig.advance(30_000)
        assert rig.errors == ["CoordinatorUnavailable"]

    def test_a_last_word_of_the_old_coordinator_does_not_end_the_search(self) -> None:
        rig = Rig().stable()
        rig.auto_lookup = False
        rig.next_heartbeat()
        rig.feed(CoordinatorLost("x"))
        rig.accept(1)
        rig.advance(30_000)
        assert rig.errors == ["CoordinatorUnavailable"]

    def test_leaving_ends_the_expectation(self) -> None:
        rig = Rig()
        rig.auto_lookup = False
        rig.join()
        rig.leave()
        rig.advance(100_000)
        assert rig.errors == []


class TestPollInterval:
    def test_an_idle_application_leaves(self) -> None:
        """KAFKA-16258: STALE releases through the lost callback and waits for a poll."""
        rig = Rig(max_poll_interval_ms=10_000).stable()
        rig.next_heartbeat()
        rig.accept(1)
        rig.feed(Polled())
        rig.advance(4_999)
        rig.accept(1)
        rig.advance(5_001)
        rig.expect(MemberState.STALE)
        assert rig.heartbeats[-1].member_epoch == -1
        lost = rig.newest(ReleasePartitions)
        assert lost.lost
        assert len(lost.partitions) == 3
        assert rig.core.fetchable == ()
        rig.released()
        rig.expect(MemberState.STALE)
        assert rig.core.assigned == ()
        rig.feed(Polled())
        rig.expect(MemberState.JOINING)
        assert rig.heartbeats[0].is_complete

    def test_the_fetch_stops_before_the_leave_goes_out(self) -> None:
        rig = in_state(MemberState.STALE)
        kinds = [type(c) for c in rig.last]
        leave = max(i for i, kind in enumerate(kinds) if kind is SendHeartbeat)
        assert kinds.index(ReleasePartitions) < leave

    def test_a_poll_that_comes_during_the_lost_callback_is_not_forgotten(self) -> None:
        rig = in_state(MemberState.STALE)
        rig.feed(Polled())
        rig.expect(MemberState.STALE)
        rig.released()
        rig.expect(MemberState.JOINING)

    def test_a_static_member_keeps_its_place(self) -> None:
        rig = in_state(MemberState.STALE, instance_id="i1")
        assert rig.heartbeats[-1].member_epoch == -2

    def test_the_answer_to_that_leave_is_of_no_interest(self) -> None:
        """Whatever it says, it belongs to a membership that is over."""
        rig = in_state(MemberState.STALE)
        rig.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        rig.expect(MemberState.STALE)
        rig.released()
        rig.feed(Polled())
        rig.expect(MemberState.JOINING)

    def test_every_poll_restarts_the_timer(self) -> None:
        """KAFKA-15818, KAFKA-16026."""
        rig = Rig(max_poll_interval_ms=10_000).stable()
        for _ in range(20):
            rig.feed(Polled(), after=9_999)
        rig.expect(MemberState.STABLE)

    def test_waiting_inside_a_poll_is_not_idling(self) -> None:
        """A long poll may wait for records for as long as it likes."""
        rig = Rig(max_poll_interval_ms=10_000).stable()
        rig.feed(Polled(waiting=True))
        rig.advance(100_000)
        rig.expect(MemberState.STABLE)
        rig.feed(PollEnded())
        rig.advance(9_999)
        rig.expect(MemberState.STABLE)
        rig.advance(1)
        rig.expect(MemberState.STALE)

    def test_without_a_coordinator_nobody_could_be_told(self) -> None:
        rig = Rig(max_poll_interval_ms=10_000).stable()
        rig.auto_lookup = False
        rig.feed(CoordinatorLost("x"))
        rig.advance(20_000)
        rig.expect(MemberState.STABLE)
        rig.feed(CoordinatorFound(rig.newest(FindCoordinator).lookup))
        rig.expect(MemberState.STALE)

    def test_a_member_that_leaves_is_left_alone(self) -> None:
        """KAFKA-16165: the timer fires while leaving; the leave goes on."""
        rig = Rig(max_poll_interval_ms=10_000).stable()
        rig.leave(within=60_000)
        rig.advance(20_000)
        rig.expect(MemberState.PREPARE_LEAVING)
        rig.released()
        rig.expect(MemberState.LEAVING)


class TestIncarnation:
    """Dekaf 2364: a late answer must not touch the membership that came after."""

    def test_a_success_from_before_the_leave_is_ignored(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        old = rig.attempt
        rig.leave()
        rig.released()
        rig.accept(-1)
        rig.subscribe("t")
        rig.feed(Polled())
        before = rig.core.snapshot()
        accepted = HeartbeatAccepted(None, 9, 5_000, assignment(t=[5]))
        rig.feed(HeartbeatAnswered(old, accepted))
        after = rig.core.snapshot()
        assert after.stale_answers == before.stale_answers + 1
        assert (after.state, after.member_epoch, after.target) == (MemberState.JOINING, 0, None)

    def test_a_late_failure_does_not_lose_the_new_coordinator(self) -> None:
        rig = in_state(MemberState.STALE)
        rig.released()
        leave = rig.attempt
        rig.feed(Polled())
        rig.feed(HeartbeatAnswered(leave, HeartbeatAccepted(None, -1, 0)))
        assert rig.core.snapshot().coordinator_known
        rig.accept(4, assignment(t=[0]))
        assert rig.core.commit_epoch == 4

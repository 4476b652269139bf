"""When heartbeats go: interval, backoff, urgency, the poll interval, the silent coordinator."""

from __future__ import annotations

import pytest

from kip848_client.core.backoff import backoff_ms
from kip848_client.core.member import (
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
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import GroupAuthorizationFailed, broker_error
from tests.unit.core.member._harness import MemberHarness, assignment, exact, in_state


class TestInterval:
    def test_subscribing_alone_sends_nothing(self) -> None:
        """KAFKA-17154: the member joins at the first poll."""
        harness = MemberHarness()
        harness.subscribe("t")
        assert harness.advance(60_000) == ()
        harness.expect(MemberState.UNSUBSCRIBED)
        harness.feed(Polled())
        assert len(harness.heartbeats) == 1

    def test_polling_alone_does_nothing(self) -> None:
        harness = MemberHarness()
        assert harness.feed(Polled()) == ()
        harness.expect(MemberState.UNSUBSCRIBED)

    def test_subscribing_inside_a_waiting_poll_joins_at_once(self) -> None:
        harness = MemberHarness()
        harness.feed(Polled(waiting=True))
        harness.subscribe("t")
        harness.expect(MemberState.JOINING)

    def test_the_interval_runs_from_when_a_heartbeat_is_built(self) -> None:
        harness = MemberHarness().stable().calm()
        sent_at = harness.now
        harness.next_heartbeat()
        assert harness.now == sent_at + 5_000
        harness.accept(1, after=1_200)
        harness.next_heartbeat()
        assert harness.now == sent_at + 10_000

    def test_a_new_interval_counts_from_the_answer(self) -> None:
        harness = MemberHarness().stable().calm()
        harness.next_heartbeat()
        harness.accept(1, interval=700, after=100)
        answered_at = harness.now
        harness.next_heartbeat()
        assert harness.now == answered_at + 700

    @pytest.mark.parametrize("interval", [0, -1])
    def test_an_interval_that_is_not_positive_is_not_adopted(self, interval: int) -> None:
        """franz-go f0d0655d: leaves and errors carry 0."""
        harness = MemberHarness().stable().calm()
        harness.next_heartbeat()
        harness.accept(1, interval=interval)
        assert harness.core.snapshot().heartbeat_interval_ms == 5_000
        before = harness.now
        harness.next_heartbeat()
        assert harness.now == before + 5_000

    def test_one_heartbeat_at_a_time(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.advance(60_000)
        assert harness.heartbeats == []

    def test_an_answer_in_the_same_millisecond_ends_the_flight(self) -> None:
        """KAFKA-16555: in flight is a fact, not a comparison of times."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.accept(1)
        harness.next_heartbeat()
        assert len(harness.heartbeats) == 1

    def test_events_of_other_timers_cause_no_heartbeat(self) -> None:
        """librdkafka 5114: a shorter auto-commit timer must not drive heartbeats."""
        harness = MemberHarness().stable()
        for _ in range(40):
            assert harness.feed(TimerFired(), after=100) == ()

    def test_early_timers_are_harmless(self) -> None:
        harness = MemberHarness().stable()
        deadline = harness.core.deadline_ms
        assert harness.feed(TimerFired()) == ()
        assert harness.core.deadline_ms == deadline


class TestUrgency:
    def test_an_acknowledgement_waits_for_the_heartbeat_under_way(self) -> None:
        harness = in_state(MemberState.ACKNOWLEDGING)
        assert harness.heartbeats == []
        harness.accept(1)
        assert harness.heartbeats[0].owned is not None
        harness.expect(MemberState.STABLE)

    def test_a_subscription_change_is_sent_at_once(self) -> None:
        harness = MemberHarness().stable()
        harness.subscribe("u")
        assert len(harness.heartbeats) == 1

    def test_changes_during_a_flight_are_sent_together(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.subscribe("u")
        harness.subscribe("t", "u")
        assert harness.heartbeats == []
        harness.accept(1)
        assert [h.subscribed_topic_names for h in harness.heartbeats] == [("t", "u")]

    def test_a_stale_commit_asks_for_the_epoch_at_once(self) -> None:
        harness = MemberHarness().stable()
        harness.feed(HeartbeatWanted())
        assert len(harness.heartbeats) == 1

    def test_outside_of_the_group_nobody_can_ask(self) -> None:
        harness = in_state(MemberState.FENCED)
        harness.feed(HeartbeatWanted())
        assert harness.heartbeats == []

    def test_urgent_heartbeats_have_a_budget(self) -> None:
        """Neither a broker nor an application can turn the member into a busy loop."""
        harness = MemberHarness().stable()
        sent = 0
        for turn in range(500):
            harness.subscribe("u" if turn % 2 else "v")
            harness.advance(1)
            sent += len(harness.heartbeats)
            if harness.core.snapshot().consecutive_failures == 0 and harness.history:
                harness.accept(1, after=1)
                sent += len(harness.heartbeats)
        assert sent <= 25

    def test_a_broker_that_changes_its_mind_at_every_answer_is_slowed_down(self) -> None:
        harness = MemberHarness(auto_commit=False).stable(t=[0])
        before = len(harness.all(SendHeartbeat))
        start = harness.now
        harness.next_heartbeat()
        epoch = 1
        while harness.now < start + 20_000:
            epoch += 1
            harness.accept(epoch, assignment(t=[0, epoch]), after=1)
            if harness.out(ReleasePartitions):
                harness.released()
            harness.started()
            if not harness.heartbeats:
                harness.next_heartbeat()
        assert len(harness.all(SendHeartbeat)) - before <= 20 * 11


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
        harness = MemberHarness().stable().calm()
        harness.next_heartbeat()
        pauses: list[int] = []
        for _ in range(5):
            harness.lose(LossReason.TIMED_OUT)
            before = harness.now
            harness.next_heartbeat()
            pauses.append(harness.now - before)
        assert pauses == [100, 200, 400, 800, 1_000]
        harness.accept(1)
        before = harness.now
        harness.next_heartbeat()
        assert harness.now == before + 5_000

    def test_a_loading_coordinator_is_asked_with_backoff_while_joining(self) -> None:
        """JOINING is urgent, and still respects the backoff."""
        harness = MemberHarness().join()
        times: list[int] = []
        for _ in range(4):
            harness.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            assert harness.heartbeats == []
            before = harness.now
            harness.next_heartbeat()
            times.append(harness.now - before)
        assert times == [100, 200, 400, 800]

    def test_a_new_join_does_not_inherit_old_failures(self) -> None:
        harness = MemberHarness().join()
        for _ in range(4):
            harness.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            harness.next_heartbeat()
        harness.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        harness.leave()
        harness.accept(-1)
        harness.subscribe("t")
        harness.feed(Polled())
        assert [h.member_epoch for h in harness.heartbeats] == [0]

    def test_an_acknowledgement_respects_the_backoff(self) -> None:
        harness = in_state(MemberState.ACKNOWLEDGING)
        harness.lose(LossReason.TIMED_OUT)
        assert harness.heartbeats == []
        before = harness.now
        harness.next_heartbeat()
        assert harness.now == before + 100
        harness.expect(MemberState.STABLE)


class TestCoordinator:
    def test_is_looked_up_when_something_is_to_be_sent(self) -> None:
        harness = MemberHarness()
        harness.auto_lookup = False
        harness.subscribe("t")
        assert harness.out(FindCoordinator) == []
        harness.feed(Polled())
        assert [c.lookup for c in harness.out(FindCoordinator)] == [1]
        assert harness.heartbeats == []
        harness.feed(CoordinatorFound(1))
        assert len(harness.heartbeats) == 1

    def test_failed_lookups_are_repeated_with_backoff(self) -> None:
        harness = MemberHarness()
        harness.auto_lookup = False
        harness.join()
        pauses: list[int] = []
        for number in range(1, 6):
            harness.feed(CoordinatorLookupFailed(number))
            assert harness.out(FindCoordinator) == []
            before = harness.now
            deadline = harness.core.deadline_ms
            assert deadline is not None
            harness.advance(deadline - before)
            assert harness.out(FindCoordinator) == [FindCoordinator(number + 1)]
            pauses.append(harness.now - before)
        assert pauses == [100, 200, 400, 800, 1_000]

    def test_a_forbidden_lookup_is_reported_and_goes_on(self) -> None:
        """KAFKA-18034: an authorization failure of the lookup reaches the user; the member
        is not FATAL, so granting the right cures it."""
        harness = MemberHarness()
        harness.auto_lookup = False
        harness.join()
        error = GroupAuthorizationFailed(30, "GROUP_AUTHORIZATION_FAILED")
        harness.feed(CoordinatorLookupFailed(1, error))
        assert harness.out(Report) == [Report(error, Severity.RAISE)]
        harness.advance(100)
        harness.feed(CoordinatorLookupFailed(2, error))
        assert harness.out(Report) == []
        harness.advance(200)
        harness.feed(CoordinatorFound(3))
        assert len(harness.heartbeats) == 1

    @pytest.mark.parametrize(
        "code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR]
    )
    def test_a_lookup_that_may_pass_is_repeated_in_silence(self, code: ErrorCode) -> None:
        harness = MemberHarness()
        harness.auto_lookup = False
        harness.join()
        error = broker_error(code, code.name)
        harness.feed(CoordinatorLookupFailed(1, error))
        harness.advance(100)
        assert harness.out(Report) == []
        assert harness.newest(FindCoordinator).lookup == 2

    @pytest.mark.parametrize("reason", LossReason)
    def test_a_dead_connection_means_looking_up_again(self, reason: LossReason) -> None:
        """KAFKA-17293; franz-go e8c0ea50: and it is retriable, never fatal. One that could not be
        opened, too: another broker may be the coordinator meanwhile."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.lose(reason)
        assert len(harness.out(ForgetCoordinator)) == 1
        assert len(harness.out(FindCoordinator)) == 1
        harness.expect(MemberState.STABLE)
        assert harness.next_heartbeat().is_complete

    @pytest.mark.parametrize(
        "code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]
    )
    def test_a_moved_coordinator_is_asked_as_soon_as_it_is_found(self, code: int) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(code)
        assert len(harness.out(FindCoordinator)) == 1
        assert len(harness.heartbeats) == 1

    def test_a_coordinator_that_moves_all_the_time_is_asked_with_backoff(self) -> None:
        """The same stale address again and again must not spin."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        start, sent = harness.now, 0
        while harness.now < start + 10_000:
            harness.refuse(ErrorCode.NOT_COORDINATOR, after=1)
            harness.next_heartbeat()
            sent += 1
        assert sent < 20

    def test_another_request_may_lose_the_coordinator(self) -> None:
        harness = MemberHarness().stable()
        harness.feed(CoordinatorLost("OffsetCommit said NOT_COORDINATOR"))
        assert len(harness.out(FindCoordinator)) == 1
        assert harness.out(ForgetCoordinator) == []
        harness.expect(MemberState.STABLE)
        assert harness.core.fetchable != ()

    def test_an_unknown_coordinator_never_makes_a_busy_loop(self) -> None:
        """KAFKA-20253, KAFKA-20426, KAFKA-20854: wake-ups are bounded."""
        harness = MemberHarness()
        harness.auto_lookup = False
        harness.join()
        wakeups = 0
        end = harness.now + 400_000
        while harness.now < end:
            deadline = harness.core.deadline_ms
            assert deadline is not None
            harness.advance(deadline - harness.now)
            wakeups += 1
            for lookup in harness.out(FindCoordinator):
                harness.feed(CoordinatorLookupFailed(lookup.lookup))
        assert wakeups < 500


class TestSilence:
    """Decision: a coordinator that cannot be reached surfaces within 30 s."""

    def test_an_unanswered_lookup_surfaces(self) -> None:
        """franz-go aae08a38, 0e698966: a consumer could be out of its group for ever without
        a word."""
        harness = MemberHarness()
        harness.auto_lookup = False
        harness.join()
        harness.advance(29_999)
        assert harness.errors == []
        harness.advance(1)
        assert harness.errors == ["CoordinatorUnavailable"]
        assert harness.newest(Report).severity is Severity.NOTICE
        harness.advance(60_000)
        assert len(harness.errors) == 3

    def test_unanswered_heartbeats_surface(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        start = harness.now
        while harness.now < start + 28_000:
            harness.lose(LossReason.TIMED_OUT, after=7_000)
            harness.next_heartbeat()
        assert harness.errors == []
        harness.advance(start + 30_000 - harness.now)
        assert "not answered for 30 s" in str(harness.newest(Report).error)
        harness.accept(1)
        assert [c.silent_ms for c in harness.out(CoordinatorRecovered)] == [harness.now - start]

    def test_a_coordinator_that_only_loads_counts_as_silent(self) -> None:
        harness = MemberHarness().join()
        for _ in range(60):
            harness.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            harness.next_heartbeat()
        assert "CoordinatorUnavailable" in harness.errors

    def test_long_intervals_are_not_silence(self) -> None:
        harness = MemberHarness().stable().calm()
        harness.next_heartbeat()
        harness.accept(1, interval=200_000)
        harness.feed(Polled(waiting=True))
        harness.advance(150_000)
        assert harness.errors == []
        assert harness.core.snapshot().coordinator_silent_ms == 0

    def test_a_lookup_that_is_open_across_two_memberships_counts(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.auto_lookup = False
        harness.feed(CoordinatorLost("x"))
        harness.leave(within=0)
        harness.subscribe("t")
        harness.feed(Polled(waiting=True))
        harness.expect(MemberState.JOINING)
        harness.advance(30_000)
        assert harness.errors == ["CoordinatorUnavailable"]

    def test_a_last_word_of_the_old_coordinator_does_not_end_the_search(self) -> None:
        harness = MemberHarness().stable()
        harness.auto_lookup = False
        harness.next_heartbeat()
        harness.feed(CoordinatorLost("x"))
        harness.accept(1)
        harness.advance(30_000)
        assert harness.errors == ["CoordinatorUnavailable"]

    def test_leaving_ends_the_expectation(self) -> None:
        harness = MemberHarness()
        harness.auto_lookup = False
        harness.join()
        harness.leave()
        harness.advance(100_000)
        assert harness.errors == []


class TestPollInterval:
    def test_an_idle_application_leaves(self) -> None:
        """KAFKA-16258: STALE releases through the lost callback and waits for a poll."""
        harness = MemberHarness(max_poll_interval_ms=10_000).stable()
        harness.next_heartbeat()
        harness.accept(1)
        harness.feed(Polled())
        harness.advance(4_999)
        harness.accept(1)
        harness.advance(5_001)
        harness.expect(MemberState.STALE)
        assert harness.heartbeats[-1].member_epoch == -1
        lost = harness.newest(ReleasePartitions)
        assert lost.lost
        assert len(lost.partitions) == 3
        assert harness.core.fetchable == ()
        harness.released()
        harness.expect(MemberState.STALE)
        assert harness.core.assigned == ()
        harness.feed(Polled())
        harness.expect(MemberState.JOINING)
        assert harness.heartbeats[0].is_complete

    def test_the_fetch_stops_before_the_leave_goes_out(self) -> None:
        harness = in_state(MemberState.STALE)
        kinds = [type(c) for c in harness.last]
        leave = max(i for i, kind in enumerate(kinds) if kind is SendHeartbeat)
        assert kinds.index(ReleasePartitions) < leave

    def test_a_poll_that_comes_during_the_lost_callback_is_not_forgotten(self) -> None:
        harness = in_state(MemberState.STALE)
        harness.feed(Polled())
        harness.expect(MemberState.STALE)
        harness.released()
        harness.expect(MemberState.JOINING)

    def test_a_static_member_keeps_its_place(self) -> None:
        harness = in_state(MemberState.STALE, instance_id="i1")
        assert harness.heartbeats[-1].member_epoch == -2

    def test_the_answer_to_that_leave_is_of_no_interest(self) -> None:
        """Whatever it says, it belongs to a membership that is over."""
        harness = in_state(MemberState.STALE)
        harness.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        harness.expect(MemberState.STALE)
        harness.released()
        harness.feed(Polled())
        harness.expect(MemberState.JOINING)

    def test_every_poll_restarts_the_timer(self) -> None:
        """KAFKA-15818, KAFKA-16026."""
        harness = MemberHarness(max_poll_interval_ms=10_000).stable()
        for _ in range(20):
            harness.feed(Polled(), after=9_999)
        harness.expect(MemberState.STABLE)

    def test_waiting_inside_a_poll_is_not_idling(self) -> None:
        """A long poll may wait for records for as long as it likes."""
        harness = MemberHarness(max_poll_interval_ms=10_000).stable()
        harness.feed(Polled(waiting=True))
        harness.advance(100_000)
        harness.expect(MemberState.STABLE)
        harness.feed(PollEnded())
        harness.advance(9_999)
        harness.expect(MemberState.STABLE)
        harness.advance(1)
        harness.expect(MemberState.STALE)

    def test_without_a_coordinator_nobody_could_be_told(self) -> None:
        harness = MemberHarness(max_poll_interval_ms=10_000).stable()
        harness.auto_lookup = False
        harness.feed(CoordinatorLost("x"))
        harness.advance(20_000)
        harness.expect(MemberState.STABLE)
        harness.feed(CoordinatorFound(harness.newest(FindCoordinator).lookup))
        harness.expect(MemberState.STALE)

    def test_a_member_that_leaves_is_left_alone(self) -> None:
        """KAFKA-16165: the timer fires while leaving; the leave goes on."""
        harness = MemberHarness(max_poll_interval_ms=10_000).stable()
        harness.leave(within=60_000)
        harness.advance(20_000)
        harness.expect(MemberState.PREPARE_LEAVING)
        harness.released()
        harness.expect(MemberState.LEAVING)


class TestIncarnation:
    """Dekaf 2364: a late answer must not touch the membership that came after."""

    def test_a_success_from_before_the_leave_is_ignored(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        old = harness.attempt
        harness.leave()
        harness.released()
        harness.accept(-1)
        harness.subscribe("t")
        harness.feed(Polled())
        before = harness.core.snapshot()
        accepted = HeartbeatAccepted(None, 9, 5_000, assignment(t=[5]))
        harness.feed(HeartbeatAnswered(old, accepted))
        after = harness.core.snapshot()
        assert after.stale_answers == before.stale_answers + 1
        assert (after.state, after.member_epoch, after.target) == (MemberState.JOINING, 0, None)

    def test_a_late_failure_does_not_lose_the_new_coordinator(self) -> None:
        harness = in_state(MemberState.STALE)
        harness.released()
        leave = harness.attempt
        harness.feed(Polled())
        harness.feed(HeartbeatAnswered(leave, HeartbeatAccepted(None, -1, 0)))
        assert harness.core.snapshot().coordinator_known
        harness.accept(4, assignment(t=[0]))
        assert harness.core.commit_epoch == 4

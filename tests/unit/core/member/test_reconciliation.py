"""From target to acknowledgement (KIP-848, reconciliation of the assignment on the client)."""

from __future__ import annotations

import pytest

from kip848_client.core.member import (
    AssignedPartition,
    Command,
    FlushOffsets,
    HeartbeatAccepted,
    HeartbeatAnswered,
    MemberState,
    OffsetsFlushed,
    PartitionsReleased,
    PartitionsStarted,
    Polled,
    ReleasePartitions,
    ResolveTopics,
    SendHeartbeat,
    StartPartitions,
    TopicsResolved,
)
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.error_codes import ErrorCode
from tests.unit.core.member._harness import MemberHarness, T, U, assignment, part

WORK = (FlushOffsets, ReleasePartitions, StartPartitions)


def work(harness: MemberHarness) -> list[Command]:
    """The work for the application that the last feeding asked for."""
    return [c for c in harness.last if isinstance(c, WORK)]


def kinds(harness: MemberHarness) -> list[str]:
    return [type(c).__name__ for c in work(harness)]


class TestWorkedSequences:
    def test_first_member_one_topic(self) -> None:
        """Join, assigned callback, acknowledgement, steady."""
        harness = MemberHarness().join()
        harness.accept(1, assignment(t=[0, 1, 2]))
        harness.expect(MemberState.RECONCILING)
        assert work(harness) == [StartPartitions(1, part(T, 0, 1, 2), part(T, 0, 1, 2))]
        assert harness.core.assigned == part(T, 0, 1, 2)
        assert harness.core.fetchable == ()
        harness.started()
        assert harness.core.fetchable == part(T, 0, 1, 2)
        assert [h.owned for h in harness.heartbeats] == [((T, (0, 1, 2)),)]
        harness.expect(MemberState.STABLE)

    def test_second_member_joins(self) -> None:
        """Shrink at an unchanged epoch: hold back, commit, revoke, start, acknowledge; the epoch
        moves without an assignment."""
        harness = MemberHarness().stable()
        harness.target(1, t=[0, 1])
        flush = harness.newest(FlushOffsets)
        assert flush.revoked == part(T, 2)
        assert flush.deadline_ms == harness.now + 300_000
        assert harness.core.fetchable == part(T, 0, 1)
        assert harness.core.assigned == part(T, 0, 1, 2)
        harness.flushed()
        assert work(harness) == [ReleasePartitions(flush.plan, part(T, 2), lost=False)]
        assert harness.core.assigned == part(T, 0, 1, 2)
        harness.released()
        assert work(harness) == [StartPartitions(flush.plan, (), part(T, 0, 1))]
        harness.started()
        assert [h.owned for h in harness.heartbeats] == [((T, (0, 1)),)]
        harness.accept(2)
        assert (harness.state, harness.core.commit_epoch) == (MemberState.STABLE, 2)

    def test_growing_commits_first_too(self) -> None:
        harness = MemberHarness().stable(t=[0])
        harness.target(2, t=[0, 1])
        assert kinds(harness) == ["FlushOffsets"]
        assert harness.newest(FlushOffsets).revoked == ()
        assert harness.core.fetchable == part(T, 0)
        harness.flushed()
        assert work(harness) == [StartPartitions(2, part(T, 1), part(T, 0, 1))]
        assert harness.core.fetchable == part(T, 0)

    def test_shrink_and_grow_in_one(self) -> None:
        harness = MemberHarness(auto_commit=False).stable(t=[0, 1])
        harness.target(3, t=[1, 2], u=[0])
        assert work(harness) == [ReleasePartitions(2, part(T, 0), lost=False)]
        harness.released()
        start = harness.newest(StartPartitions)
        assert start.partitions == part(T, 2) + part(U, 0)
        assert start.assignment == part(T, 1, 2) + part(U, 0)

    def test_without_auto_commit_nothing_is_flushed(self) -> None:
        harness = MemberHarness(auto_commit=False).stable()
        harness.target(1, t=[0])
        assert kinds(harness) == ["ReleasePartitions"]

    def test_heartbeats_go_on_while_the_application_works(self) -> None:
        harness = MemberHarness().stable()
        harness.target(1, t=[0])
        for finish in (harness.flushed, harness.released, harness.started):
            assert harness.next_heartbeat().owned is None
            harness.accept(1)
            finish()
        harness.expect(MemberState.STABLE)

    def test_a_first_empty_assignment_calls_back_too(self) -> None:
        """KAFKA-16312."""
        harness = MemberHarness().join()
        harness.accept(1, ())
        assert work(harness) == [StartPartitions(1, (), ())]
        harness.started()
        harness.expect(MemberState.STABLE)

    def test_an_explicit_empty_assignment_takes_everything(self) -> None:
        """44 (franz-go 0af2689c): () is "you own nothing", None is "no news"."""
        harness = MemberHarness(auto_commit=False).stable()
        harness.next_heartbeat()
        harness.accept(2, ())
        assert work(harness) == [ReleasePartitions(2, part(T, 0, 1, 2), lost=False)]
        harness.released()
        harness.started()
        assert [h.owned for h in harness.heartbeats] == [()]
        assert harness.core.assigned == ()

    def test_an_equal_target_is_no_news(self) -> None:
        """A complete request after an error always brings one."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        assert harness.accept(1, assignment(t=[2, 1, 0])) == ()
        harness.expect(MemberState.STABLE)


class TestNames:
    def test_unknown_topics_wait_for_one_answer_before_a_part_is_taken(self) -> None:
        harness = MemberHarness()
        harness.auto_names = False
        harness.join().accept(1, assignment(t=[0], u=[0]))
        assert harness.out(ResolveTopics) == [ResolveTopics(1, (T, U))]
        assert work(harness) == []
        harness.feed(TopicsResolved(1, {T: "t", U: "u"}))
        assert work(harness) == [
            StartPartitions(1, part(T, 0) + part(U, 0), part(T, 0) + part(U, 0))
        ]

    def test_a_part_is_taken_and_acknowledged(self) -> None:
        """KAFKA-16198: T now, U later; T is never revoked for it. franz-go 9b92299f:
        a topic of a server-side pattern that metadata does not know yet is kept."""
        harness = MemberHarness()
        del harness.names[U]
        harness.join().accept(3, assignment(t=[0], u=[0]))
        assert harness.newest(StartPartitions).assignment == part(T, 0)
        harness.started()
        assert [h.owned for h in harness.heartbeats] == [((T, (0,)), (U, (0,)))]
        harness.expect(MemberState.RECONCILING)
        harness.accept(3)
        harness.names[U] = "u"
        harness.advance(200)
        harness.accept(3)  # the extra heartbeat
        harness.flushed()
        assert harness.newest(StartPartitions).partitions == part(U, 0)
        harness.started()
        assert [h.owned for h in harness.heartbeats] == [((T, (0,)), (U, (0,)))]
        harness.expect(MemberState.STABLE)
        assert harness.all(ReleasePartitions) == []

    def test_one_acknowledgement_for_one_part(self) -> None:
        """KAFKA-20145: an unresolved topic must not cause one per loop."""
        harness = MemberHarness()
        del harness.names[U]
        harness.join().accept(3, assignment(t=[0], u=[0]))
        harness.started()
        harness.accept(3)
        acks = len([c for c in harness.all(SendHeartbeat) if c.intent.owned])
        end = harness.now + 60_000
        while harness.now < end:
            harness.next_heartbeat()
            harness.accept(3)
        assert len([c for c in harness.all(SendHeartbeat) if c.intent.owned]) == acks
        assert len(harness.all(StartPartitions)) == 1

    def test_asking_has_a_growing_pause(self) -> None:
        harness = MemberHarness()
        harness.names.clear()
        harness.join().accept(3, assignment(u=[0]))
        harness.started()
        harness.accept(3)
        start = harness.now
        before = len(harness.all(ResolveTopics))
        while harness.now < start + 60_000:
            harness.next_heartbeat()
            harness.accept(3)
        assert 10 <= len(harness.all(ResolveTopics)) - before <= 20

    def test_an_unresolved_newcomer_is_acknowledged_without_callback(self) -> None:
        harness = MemberHarness().stable(t=[0])
        del harness.names[U]
        harness.target(4, t=[0], u=[0])
        assert work(harness) == []
        assert [h.owned for h in harness.heartbeats] == [((T, (0,)), (U, (0,)))]
        harness.expect(MemberState.RECONCILING)

    def test_giving_up_does_not_wait_for_names(self) -> None:
        harness = MemberHarness(auto_commit=False).stable(t=[0, 1])
        harness.auto_names = False
        harness.target(4, t=[0], u=[0])
        assert work(harness) == [ReleasePartitions(2, part(T, 1), lost=False)]
        assert len(harness.out(ResolveTopics)) == 1

    def test_a_deleted_topic_is_revoked_under_its_known_name(self) -> None:
        harness = MemberHarness(auto_commit=False).stable(t=[0])
        harness.names.clear()
        harness.target(5, t=[])
        assert harness.newest(ReleasePartitions).partitions == part(T, 0)

    def test_a_recreated_topic_is_another_topic(self) -> None:
        """Same name, new id: revoked and assigned anew, positions looked up again."""
        again = TopicId(b"T" * 16)
        harness = MemberHarness(auto_commit=False).stable(t=[0])
        harness.names[again] = "t"
        harness.next_heartbeat()
        harness.accept(2, ((again, (0,)),))
        assert harness.newest(ReleasePartitions).partitions == part(T, 0)
        harness.released()
        new = (AssignedPartition(again, TopicPartition("t", 0)),)
        assert harness.newest(StartPartitions).partitions == new
        assert new[0].tp == part(T, 0)[0].tp
        harness.started()
        assert [h.owned for h in harness.heartbeats] == [((again, (0,)),)]

    def test_names_of_a_former_question_are_not_taken_for_an_answer(self) -> None:
        harness = MemberHarness()
        harness.auto_names = False
        harness.join().accept(1, assignment(u=[0]))
        harness.next_heartbeat()
        harness.accept(1, assignment(t=[0], u=[0]))
        harness.feed(TopicsResolved(1, {}))
        assert harness.out(ResolveTopics) == []
        assert work(harness) == [], "t was never asked for yet"
        harness.advance(100)
        assert harness.out(ResolveTopics) == [ResolveTopics(2, (T, U))]
        harness.feed(TopicsResolved(2, {T: "t"}))
        assert harness.newest(StartPartitions).partitions == part(T, 0)

    def test_a_new_target_is_asked_for_without_the_pause_of_the_old(self) -> None:
        harness = MemberHarness()
        del harness.names[U]
        harness.join().accept(1, assignment(u=[0]))
        harness.started()
        harness.accept(1)
        harness.calm()
        harness.advance(4_000)
        harness.names.update({U: "u"})
        harness.next_heartbeat()
        harness.accept(2, assignment(t=[0], u=[0]))
        assert harness.newest(StartPartitions).assignment == part(T, 0) + part(U, 0)

    def test_a_question_of_a_former_membership_is_asked_again(self) -> None:
        harness = MemberHarness()
        harness.auto_names = False
        harness.join().accept(1, assignment(t=[0]))
        harness.next_heartbeat()
        harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        harness.accept(2, assignment(t=[0]))
        assert harness.out(ResolveTopics) == [ResolveTopics(2, (T,))]
        harness.feed(TopicsResolved(1, {T: "wrong"}))
        assert harness.core.snapshot().stale_answers == 1
        harness.feed(TopicsResolved(2, {T: "t"}))
        assert harness.newest(StartPartitions).partitions == part(T, 0)

    def test_names_that_nobody_asked_for_are_not_kept(self) -> None:
        harness = MemberHarness()
        harness.auto_names = False
        harness.join().accept(1, assignment(t=[0]))
        harness.feed(TopicsResolved(1, {T: "t", U: "u"}))
        harness.started()
        harness.accept(1)
        harness.target(2, t=[0], u=[0])
        assert harness.out(ResolveTopics) == [ResolveTopics(2, (U,))]


class TestMovingTargets:
    def test_the_running_plan_ends_then_the_newest_target_counts(self) -> None:
        """KAFKA-15832: applied afterwards without another message of the broker. franz-go 6536e4f3:
        the revocation in it is not missed."""
        harness = MemberHarness(auto_commit=False).stable(t=[0])
        harness.target(2, t=[0, 1, 2])
        harness.next_heartbeat()
        harness.accept(2, assignment(t=[0, 1]))
        harness.next_heartbeat()
        harness.accept(2, assignment(t=[1]))
        harness.started()
        assert [h.owned for h in harness.heartbeats] == [((T, (0, 1, 2)),)]
        harness.expect(MemberState.RECONCILING)
        assert work(harness) == [ReleasePartitions(3, part(T, 0, 2), lost=False)]
        harness.released()
        harness.started()
        harness.expect(MemberState.ACKNOWLEDGING)
        harness.accept(2)
        assert [h.owned for h in harness.heartbeats] == [((T, (1,)),)]
        harness.expect(MemberState.STABLE)

    def test_there_and_back_again_is_acknowledged(self) -> None:
        """KAFKA-16185: A, B, A in quick succession."""
        harness = MemberHarness().stable(t=[0])
        harness.next_heartbeat()
        before = len(harness.all(SendHeartbeat))
        harness.auto_names = False
        harness.accept(2, assignment(t=[0], u=[0]))
        harness.expect(MemberState.RECONCILING)
        harness.next_heartbeat()
        harness.accept(3, assignment(t=[0]))
        harness.expect(MemberState.STABLE)
        assert [h.owned for h in harness.heartbeats] == [((T, (0,)),)]
        assert len(harness.all(SendHeartbeat)) == before + 2

    def test_a_target_that_returns_during_the_revocation_is_taken_back_properly(self) -> None:
        harness = MemberHarness().stable(t=[0, 1])
        harness.target(1, t=[0])
        harness.next_heartbeat()
        harness.accept(1, assignment(t=[0, 1]))
        harness.flushed()
        harness.released()
        harness.started()
        assert [h.owned for h in harness.heartbeats] == [((T, (0, 1)),)]
        harness.accept(1)
        harness.flushed()
        assert harness.newest(StartPartitions).partitions == part(T, 1)


class TestAbort:
    """KAFKA-16375: fence and rejoin while a part is pending; its old end means nothing."""

    @pytest.mark.parametrize("stage", ["flush", "release", "start"])
    def test_an_old_end_is_ignored_at_each_point(self, stage: str) -> None:
        harness = MemberHarness().stable(t=[0, 1])
        harness.target(1, t=[0])
        old = harness.newest(FlushOffsets).plan
        if stage != "flush":
            harness.flushed()
        if stage == "start":
            harness.released()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        lost = harness.newest(ReleasePartitions)
        assert lost.lost
        expected = {"flush": part(T, 0, 1), "release": part(T, 0), "start": part(T, 0)}
        assert lost.partitions == expected[stage]
        harness.released()
        harness.accept(5, assignment(t=[0, 1]))
        before = harness.core.snapshot()
        for event in (OffsetsFlushed(old), PartitionsReleased(old), PartitionsStarted(old)):
            assert harness.feed(event) == ()
        after = harness.core.snapshot()
        assert after.stale_answers == before.stale_answers + 3
        assert after.current is None
        harness.started()
        assert [h.owned for h in harness.heartbeats] == [((T, (0, 1)),)]

    def test_a_fence_during_the_assigned_callback_loses_what_was_applied(self) -> None:
        harness = MemberHarness().join()
        harness.accept(1, assignment(t=[0, 1]))
        harness.next_heartbeat()
        harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert harness.newest(ReleasePartitions).partitions == part(T, 0, 1)

    def test_a_revocation_that_took_too_long(self) -> None:
        """The broker removed the member; lost callback, rejoin, late end ignored. What is in
        the revoked callback already gets no second one."""
        harness = MemberHarness(auto_commit=False).stable(t=[0, 1])
        harness.target(1, t=[0])
        revoking = harness.newest(ReleasePartitions)
        harness.next_heartbeat()
        harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert harness.newest(ReleasePartitions).partitions == part(T, 0)
        harness.feed(PartitionsReleased(revoking.plan))
        harness.expect(MemberState.FENCED)
        harness.released()
        harness.expect(MemberState.JOINING)

    def test_everything_in_the_revoked_callback_still_waits_for_its_end(self) -> None:
        harness = MemberHarness(auto_commit=False).stable(t=[0])
        harness.target(1, t=[])
        harness.next_heartbeat()
        harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert harness.newest(ReleasePartitions).partitions == ()
        harness.expect(MemberState.FENCED)
        harness.released()
        harness.expect(MemberState.JOINING)

    def test_a_fatal_error_while_committing_abandons_the_revocation(self) -> None:
        harness = MemberHarness().stable(t=[0, 1])
        harness.target(1, t=[0])
        harness.next_heartbeat()
        harness.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        releases = harness.all(ReleasePartitions)
        assert [(r.lost, r.partitions) for r in releases] == [(True, part(T, 0, 1))]

    def test_an_assignment_that_is_queued_when_the_user_leaves_is_not_applied(self) -> None:
        """KAFKA-20428."""
        harness = MemberHarness()
        harness.auto_names = False
        harness.join().accept(1, assignment(t=[0]))
        harness.leave()
        harness.feed(TopicsResolved(1, {T: "t"}))
        assert work(harness) == []
        harness.expect(MemberState.LEAVING)


class TestFlush:
    def test_is_bounded_by_the_rebalance_timeout(self) -> None:
        """KAFKA-16133: a wrong unit or a deadline that overflows. KAFKA-16224: a topic
        that is gone blocks nothing."""
        harness = MemberHarness(max_poll_interval_ms=20_000).stable()
        harness.feed(Polled(waiting=True))
        harness.target(1, t=[0])
        assert harness.newest(FlushOffsets).deadline_ms == harness.now + 20_000
        harness.advance(19_999)
        assert harness.all(ReleasePartitions) == []
        harness.advance(1)
        assert harness.newest(ReleasePartitions).partitions == part(T, 1, 2)
        late = harness.core.snapshot().stale_answers
        harness.flushed()
        assert harness.core.snapshot().stale_answers == late + 1
        harness.released()
        harness.started()
        assert harness.core.assigned == part(T, 0)

    def test_nothing_is_handed_out_of_what_goes(self) -> None:
        """KAFKA-20332, KAFKA-19781: from the first command on."""
        harness = MemberHarness().stable()
        harness.target(1, t=[0])
        assert harness.core.fetchable == part(T, 0)
        harness.flushed()
        assert harness.core.fetchable == part(T, 0)

    def test_lost_partitions_are_held_back_at_once(self) -> None:
        """KAFKA-20321."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert harness.core.fetchable == ()

    def test_the_new_ones_wait_for_the_callback(self) -> None:
        """KAFKA-16107."""
        harness = MemberHarness(auto_commit=False).stable(t=[0])
        harness.target(2, t=[0, 1])
        assert harness.core.assigned == part(T, 0, 1)
        assert harness.core.fetchable == part(T, 0)
        harness.started()
        assert harness.core.fetchable == part(T, 0, 1)


class TestFailingCallbacks:
    def test_revoked_is_called_again_at_the_next_poll(self) -> None:
        harness = MemberHarness(auto_commit=False).stable()
        harness.target(1, t=[0])
        harness.released(failed=True)
        harness.expect(MemberState.RECONCILING)
        assert work(harness) == []
        assert harness.core.assigned == part(T, 0, 1, 2)
        assert harness.core.fetchable == part(T, 0)
        harness.next_heartbeat()
        assert harness.intent.owned is None
        harness.accept(1)
        harness.feed(Polled())
        assert work(harness) == [ReleasePartitions(3, part(T, 1, 2), lost=False)]
        harness.released()
        harness.started()
        assert [h.owned for h in harness.heartbeats] == [((T, (0,)),)]

    def test_assigned_is_called_again_with_the_same_partitions(self) -> None:
        """Who seeks in the callback must not start anywhere else because of one failure
        (KAFKA-16460: afterwards everything is fetchable)."""
        harness = MemberHarness(auto_commit=False).join()
        harness.accept(1, assignment(t=[0, 1]))
        harness.started(failed=True)
        assert harness.core.assigned == part(T, 0, 1)
        assert harness.core.fetchable == ()
        assert harness.heartbeats == []
        harness.feed(Polled())
        assert work(harness) == [StartPartitions(2, part(T, 0, 1), part(T, 0, 1))]
        harness.started()
        assert harness.core.fetchable == part(T, 0, 1)

    def test_what_was_prepared_before_is_not_named_again(self) -> None:
        harness = MemberHarness(auto_commit=False).stable(t=[0])
        harness.target(2, t=[0, 1])
        harness.started(failed=True)
        assert harness.core.fetchable == part(T, 0)
        harness.target(3, t=[0, 1, 2])
        harness.feed(Polled())
        assert work(harness) == [StartPartitions(3, part(T, 1, 2), part(T, 0, 1, 2))]
        harness.started()
        assert harness.core.fetchable == part(T, 0, 1, 2)

    def test_what_is_taken_back_before_the_repetition_is_not_named_again(self) -> None:
        harness = MemberHarness(auto_commit=False).join()
        harness.accept(1, assignment(t=[0, 1]))
        harness.started(failed=True)
        harness.target(2, t=[0])
        harness.feed(Polled())
        assert work(harness) == [ReleasePartitions(2, part(T, 1), lost=False)]
        harness.released()
        assert work(harness) == [StartPartitions(2, part(T, 0), part(T, 0))]

    def test_a_target_that_returns_after_a_failed_revocation_frees_the_partition(self) -> None:
        harness = MemberHarness(auto_commit=False).stable(t=[0, 1])
        harness.target(1, t=[0])
        harness.released(failed=True)
        harness.next_heartbeat()
        harness.accept(1, assignment(t=[0, 1]))
        harness.feed(Polled())
        assert work(harness) == [StartPartitions(3, (), part(T, 0, 1))]
        harness.started()
        assert harness.core.fetchable == part(T, 0, 1)
        harness.expect(MemberState.STABLE)

    def test_a_callback_that_always_fails_runs_once_a_poll(self) -> None:
        """KAFKA-18160, KAFKA-20382: each end is reported, also a cancelled one."""
        harness = MemberHarness(auto_commit=False).join()
        harness.accept(1, assignment(t=[0]))
        for attempt in range(2, 12):
            harness.started(failed=True)
            assert work(harness) == []
            harness.feed(Polled(waiting=True))
            assert harness.newest(StartPartitions).plan == attempt

    def test_a_failed_member_can_be_fenced(self) -> None:
        harness = MemberHarness(auto_commit=False).stable(t=[0, 1])
        harness.target(1, t=[0])
        harness.released(failed=True)
        harness.next_heartbeat()
        harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert harness.newest(ReleasePartitions).partitions == part(T, 0, 1)
        harness.released()
        harness.accept(2, assignment(t=[0]))
        assert harness.newest(StartPartitions).partitions == part(T, 0)


def test_an_assignment_is_ignored_while_preparing_to_leave_but_the_epoch_is_not() -> None:
    """librdkafka 4672: commits of the callbacks must carry the newest epoch."""
    harness = MemberHarness().stable()
    harness.next_heartbeat()
    harness.leave()
    answer = HeartbeatAccepted(None, 9, 5_000, assignment(t=[7]))
    harness.feed(HeartbeatAnswered(harness.attempt, answer))
    harness.expect(MemberState.PREPARE_LEAVING)
    assert harness.core.commit_epoch == 9
    assert harness.core.snapshot().target == ((T, (0, 1, 2)),)

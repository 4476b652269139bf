"""From target to acknowledgement (KIP-848, reconciliation of the assignment on the client)."""

from __future__ import annotations

import pytest

from kip848_client._types import TopicId
from kip848_client.error_codes import ErrorCode
from kip848_client.member import (
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
from tests.unit.member._harness import Rig, T, U, assignment, part

WORK = (FlushOffsets, ReleasePartitions, StartPartitions)


def work(rig: Rig) -> list[Command]:
    """The work for the application that the last feeding asked for."""
    return [c for c in rig.last if isinstance(c, WORK)]


def kinds(rig: Rig) -> list[str]:
    return [type(c).__name__ for c in work(rig)]


class TestWorkedSequences:
    def test_first_member_one_topic(self) -> None:
        """Join, assigned callback, acknowledgement, steady."""
        rig = Rig().join()
        rig.accept(1, assignment(t=[0, 1, 2]))
        rig.expect(MemberState.RECONCILING)
        assert work(rig) == [StartPartitions(1, part(T, 0, 1, 2), part(T, 0, 1, 2))]
        assert rig.core.assigned == part(T, 0, 1, 2)
        assert rig.core.fetchable == ()
        rig.started()
        assert rig.core.fetchable == part(T, 0, 1, 2)
        assert [h.owned for h in rig.heartbeats] == [((T, (0, 1, 2)),)]
        rig.expect(MemberState.STABLE)

    def test_second_member_joins(self) -> None:
        """Shrink at an unchanged epoch: hold back, commit, revoke, start, acknowledge; the epoch
        moves without an assignment."""
        rig = Rig().stable()
        rig.target(1, t=[0, 1])
        flush = rig.newest(FlushOffsets)
        assert flush.revoked == part(T, 2)
        assert flush.deadline_ms == rig.now + 300_000
        assert rig.core.fetchable == part(T, 0, 1)
        assert rig.core.assigned == part(T, 0, 1, 2)
        rig.flushed()
        assert work(rig) == [ReleasePartitions(flush.plan, part(T, 2), lost=False)]
        assert rig.core.assigned == part(T, 0, 1, 2)
        rig.released()
        assert work(rig) == [StartPartitions(flush.plan, (), part(T, 0, 1))]
        rig.started()
        assert [h.owned for h in rig.heartbeats] == [((T, (0, 1)),)]
        rig.accept(2)
        assert (rig.state, rig.core.commit_epoch) == (MemberState.STABLE, 2)

    def test_growing_commits_first_too(self) -> None:
        rig = Rig().stable(t=[0])
        rig.target(2, t=[0, 1])
        assert kinds(rig) == ["FlushOffsets"]
        assert rig.newest(FlushOffsets).revoked == ()
        assert rig.core.fetchable == part(T, 0)
        rig.flushed()
        assert work(rig) == [StartPartitions(2, part(T, 1), part(T, 0, 1))]
        assert rig.core.fetchable == part(T, 0)

    def test_shrink_and_grow_in_one(self) -> None:
        rig = Rig(auto_commit=False).stable(t=[0, 1])
        rig.target(3, t=[1, 2], u=[0])
        assert work(rig) == [ReleasePartitions(2, part(T, 0), lost=False)]
        rig.released()
        start = rig.newest(StartPartitions)
        assert start.partitions == part(T, 2) + part(U, 0)
        assert start.assignment == part(T, 1, 2) + part(U, 0)

    def test_without_auto_commit_nothing_is_flushed(self) -> None:
        rig = Rig(auto_commit=False).stable()
        rig.target(1, t=[0])
        assert kinds(rig) == ["ReleasePartitions"]

    def test_heartbeats_go_on_while_the_application_works(self) -> None:
        rig = Rig().stable()
        rig.target(1, t=[0])
        for finish in (rig.flushed, rig.released, rig.started):
            assert rig.next_heartbeat().owned is None
            rig.accept(1)
            finish()
        rig.expect(MemberState.STABLE)

    def test_a_first_empty_assignment_calls_back_too(self) -> None:
        """KAFKA-16312."""
        rig = Rig().join()
        rig.accept(1, ())
        assert work(rig) == [StartPartitions(1, (), ())]
        rig.started()
        rig.expect(MemberState.STABLE)

    def test_an_explicit_empty_assignment_takes_everything(self) -> None:
        """44 (franz-go 0af2689c): () is "you own nothing", None is "no news"."""
        rig = Rig(auto_commit=False).stable()
        rig.next_heartbeat()
        rig.accept(2, ())
        assert work(rig) == [ReleasePartitions(2, part(T, 0, 1, 2), lost=False)]
        rig.released()
        rig.started()
        assert [h.owned for h in rig.heartbeats] == [()]
        assert rig.core.assigned == ()

    def test_an_equal_target_is_no_news(self) -> None:
        """A complete request after an error always brings one."""
        rig = Rig().stable()
        rig.next_heartbeat()
        assert rig.accept(1, assignment(t=[2, 1, 0])) == ()
        rig.expect(MemberState.STABLE)


class TestNames:
    def test_unknown_topics_wait_for_one_answer_before_a_part_is_taken(self) -> None:
        rig = Rig()
        rig.auto_names = False
        rig.join().accept(1, assignment(t=[0], u=[0]))
        assert rig.out(ResolveTopics) == [ResolveTopics(1, (T, U))]
        assert work(rig) == []
        rig.feed(TopicsResolved(1, {T: "t", U: "u"}))
        assert work(rig) == [StartPartitions(1, part(T, 0) + part(U, 0), part(T, 0) + part(U, 0))]

    def test_a_part_is_taken_and_acknowledged(self) -> None:
        """KAFKA-16198: T now, U later; T is never revoked for it. franz-go 9b92299f:
        a topic of a server-side pattern that metadata does not know yet is kept."""
        rig = Rig()
        del rig.names[U]
        rig.join().accept(3, assignment(t=[0], u=[0]))
        assert rig.newest(StartPartitions).assignment == part(T, 0)
        rig.started()
        assert [h.owned for h in rig.heartbeats] == [((T, (0,)), (U, (0,)))]
        rig.expect(MemberState.RECONCILING)
        rig.accept(3)
        rig.names[U] = "u"
        rig.advance(200)
        rig.accept(3)  # the extra heartbeat
        rig.flushed()
        assert rig.newest(StartPartitions).partitions == part(U, 0)
        rig.started()
        assert [h.owned for h in rig.heartbeats] == [((T, (0,)), (U, (0,)))]
        rig.expect(MemberState.STABLE)
        assert rig.all(ReleasePartitions) == []

    def test_one_acknowledgement_for_one_part(self) -> None:
        """KAFKA-20145: an unresolved topic must not cause one per loop."""
        rig = Rig()
        del rig.names[U]
        rig.join().accept(3, assignment(t=[0], u=[0]))
        rig.started()
        rig.accept(3)
        acks = len([c for c in rig.all(SendHeartbeat) if c.intent.owned])
        end = rig.now + 60_000
        while rig.now < end:
            rig.next_heartbeat()
            rig.accept(3)
        assert len([c for c in rig.all(SendHeartbeat) if c.intent.owned]) == acks
        assert len(rig.all(StartPartitions)) == 1

    def test_asking_has_a_growing_pause(self) -> None:
        rig = Rig()
        rig.names.clear()
        rig.join().accept(3, assignment(u=[0]))
        rig.started()
        rig.accept(3)
        start = rig.now
        before = len(rig.all(ResolveTopics))
        while rig.now < start + 60_000:
            rig.next_heartbeat()
            rig.accept(3)
        assert 10 <= len(rig.all(ResolveTopics)) - before <= 20

    def test_an_unresolved_newcomer_is_acknowledged_without_callback(self) -> None:
        rig = Rig().stable(t=[0])
        del rig.names[U]
        rig.target(4, t=[0], u=[0])
        assert work(rig) == []
        assert [h.owned for h in rig.heartbeats] == [((T, (0,)), (U, (0,)))]
        rig.expect(MemberState.RECONCILING)

    def test_giving_up_does_not_wait_for_names(self) -> None:
        rig = Rig(auto_commit=False).stable(t=[0, 1])
        rig.auto_names = False
        rig.target(4, t=[0], u=[0])
        assert work(rig) == [ReleasePartitions(2, part(T, 1), lost=False)]
        assert len(rig.out(ResolveTopics)) == 1

    def test_a_deleted_topic_is_revoked_under_its_known_name(self) -> None:
        rig = Rig(auto_commit=False).stable(t=[0])
        rig.names.clear()
        rig.target(5, t=[])
        assert rig.newest(ReleasePartitions).partitions == part(T, 0)

    def test_a_recreated_topic_is_another_topic(self) -> None:
        """Same name, new id: revoked and assigned anew, positions looked up again."""
        again = TopicId(b"T" * 16)
        rig = Rig(auto_commit=False).stable(t=[0])
        rig.names[again] = "t"
        rig.next_heartbeat()
        rig.accept(2, ((again, (0,)),))
        assert rig.newest(ReleasePartitions).partitions == part(T, 0)
        rig.released()
        new = (AssignedPartition(again, 0, "t"),)
        assert rig.newest(StartPartitions).partitions == new
        assert new[0].tp == part(T, 0)[0].tp
        rig.started()
        assert [h.owned for h in rig.heartbeats] == [((again, (0,)),)]

    def test_names_of_a_former_question_are_not_taken_for_an_answer(self) -> None:
        rig = Rig()
        rig.auto_names = False
        rig.join().accept(1, assignment(u=[0]))
        rig.next_heartbeat()
        rig.accept(1, assignment(t=[0], u=[0]))
        rig.feed(TopicsResolved(1, {}))
        assert rig.out(ResolveTopics) == []
        assert work(rig) == [], "t was never asked for yet"
        rig.advance(100)
        assert rig.out(ResolveTopics) == [ResolveTopics(2, (T, U))]
        rig.feed(TopicsResolved(2, {T: "t"}))
        assert rig.newest(StartPartitions).partitions == part(T, 0)

    def test_a_new_target_is_asked_for_without_the_pause_of_the_old(self) -> None:
        rig = Rig()
        del rig.names[U]
        rig.join().accept(1, assignment(u=[0]))
        rig.started()
        rig.accept(1)
        rig.calm()
        rig.advance(4_000)
        rig.names.update({U: "u"})
        rig.next_heartbeat()
        rig.accept(2, assignment(t=[0], u=[0]))
        assert rig.newest(StartPartitions).assignment == part(T, 0) + part(U, 0)

    def test_a_question_of_a_former_membership_is_asked_again(self) -> None:
        rig = Rig()
        rig.auto_names = False
        rig.join().accept(1, assignment(t=[0]))
        rig.next_heartbeat()
        rig.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        rig.accept(2, assignment(t=[0]))
        assert rig.out(ResolveTopics) == [ResolveTopics(2, (T,))]
        rig.feed(TopicsResolved(1, {T: "wrong"}))
        assert rig.core.snapshot().stale_answers == 1
        rig.feed(TopicsResolved(2, {T: "t"}))
        assert rig.newest(StartPartitions).partitions == part(T, 0)

    def test_names_that_nobody_asked_for_are_not_kept(self) -> None:
        rig = Rig()
        rig.auto_names = False
        rig.join().accept(1, assignment(t=[0]))
        rig.feed(TopicsResolved(1, {T: "t", U: "u"}))
        rig.started()
        rig.accept(1)
        rig.target(2, t=[0], u=[0])
        assert rig.out(ResolveTopics) == [ResolveTopics(2, (U,))]


class TestMovingTargets:
    def test_the_running_plan_ends_then_the_newest_target_counts(self) -> None:
        """KAFKA-15832: applied afterwards without another message of the broker. franz-go 6536e4f3:
        the revocation in it is not missed."""
        rig = Rig(auto_commit=False).stable(t=[0])
        rig.target(2, t=[0, 1, 2])
        rig.next_heartbeat()
        rig.accept(2, assignment(t=[0, 1]))
        rig.next_heartbeat()
        rig.accept(2, assignment(t=[1]))
        rig.started()
        assert [h.owned for h in rig.heartbeats] == [((T, (0, 1, 2)),)]
        rig.expect(MemberState.RECONCILING)
        assert work(rig) == [ReleasePartitions(3, part(T, 0, 2), lost=False)]
        rig.released()
        rig.started()
        rig.expect(MemberState.ACKNOWLEDGING)
        rig.accept(2)
        assert [h.owned for h in rig.heartbeats] == [((T, (1,)),)]
        rig.expect(MemberState.STABLE)

    def test_there_and_back_again_is_acknowledged(self) -> None:
        """KAFKA-16185: A, B, A in quick succession."""
        rig = Rig().stable(t=[0])
        rig.next_heartbeat()
        before = len(rig.all(SendHeartbeat))
        rig.auto_names = False
        rig.accept(2, assignment(t=[0], u=[0]))
        rig.expect(MemberState.RECONCILING)
        rig.next_heartbeat()
        rig.accept(3, assignment(t=[0]))
        rig.expect(MemberState.STABLE)
        assert [h.owned for h in rig.heartbeats] == [((T, (0,)),)]
        assert len(rig.all(SendHeartbeat)) == before + 2

    def test_a_target_that_returns_during_the_revocation_is_taken_back_properly(self) -> None:
        rig = Rig().stable(t=[0, 1])
        rig.target(1, t=[0])
        rig.next_heartbeat()
        rig.accept(1, assignment(t=[0, 1]))
        rig.flushed()
        rig.released()
        rig.started()
        assert [h.owned for h in rig.heartbeats] == [((T, (0, 1)),)]
        rig.accept(1)
        rig.flushed()
        assert rig.newest(StartPartitions).partitions == part(T, 1)


class TestAbort:
    """KAFKA-16375: fence and rejoin while a part is pending; its old end means nothing."""

    @pytest.mark.parametrize("stage", ["flush", "release", "start"])
    def test_an_old_end_is_ignored_at_each_point(self, stage: str) -> None:
        rig = Rig().stable(t=[0, 1])
        rig.target(1, t=[0])
        old = rig.newest(FlushOffsets).plan
        if stage != "flush":
            rig.flushed()
        if stage == "start":
            rig.released()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        lost = rig.newest(ReleasePartitions)
        assert lost.lost
        expected = {"flush": part(T, 0, 1), "release": part(T, 0), "start": part(T, 0)}
        assert lost.partitions == expected[stage]
        rig.released()
        rig.accept(5, assignment(t=[0, 1]))
        before = rig.core.snapshot()
        for event in (OffsetsFlushed(old), PartitionsReleased(old), PartitionsStarted(old)):
            assert rig.feed(event) == ()
        after = rig.core.snapshot()
        assert after.stale_answers == before.stale_answers + 3
        assert after.current is None
        rig.started()
        assert [h.owned for h in rig.heartbeats] == [((T, (0, 1)),)]

    def test_a_fence_during_the_assigned_callback_loses_what_was_applied(self) -> None:
        rig = Rig().join()
        rig.accept(1, assignment(t=[0, 1]))
        rig.next_heartbeat()
        rig.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert rig.newest(ReleasePartitions).partitions == part(T, 0, 1)

    def test_a_revocation_that_took_too_long(self) -> None:
        """The broker removed the member; lost callback, rejoin, late end ignored. What is in
        the revoked callback already gets no second one."""
        rig = Rig(auto_commit=False).stable(t=[0, 1])
        rig.target(1, t=[0])
        revoking = rig.newest(ReleasePartitions)
        rig.next_heartbeat()
        rig.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert rig.newest(ReleasePartitions).partitions == part(T, 0)
        rig.feed(PartitionsReleased(revoking.plan))
        rig.expect(MemberState.FENCED)
        rig.released()
        rig.expect(MemberState.JOINING)

    def test_everything_in_the_revoked_callback_still_waits_for_its_end(self) -> None:
        rig = Rig(auto_commit=False).stable(t=[0])
        rig.target(1, t=[])
        rig.next_heartbeat()
        rig.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert rig.newest(ReleasePartitions).partitions == ()
        rig.expect(MemberState.FENCED)
        rig.released()
        rig.expect(MemberState.JOINING)

    def test_a_fatal_error_while_committing_abandons_the_revocation(self) -> None:
        rig = Rig().stable(t=[0, 1])
        rig.target(1, t=[0])
        rig.next_heartbeat()
        rig.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        releases = rig.all(ReleasePartitions)
        assert [(r.lost, r.partitions) for r in releases] == [(True, part(T, 0, 1))]

    def test_an_assignment_that_is_queued_when_the_user_leaves_is_not_applied(self) -> None:
        """KAFKA-20428."""
        rig = Rig()
        rig.auto_names = False
        rig.join().accept(1, assignment(t=[0]))
        rig.leave()
        rig.feed(TopicsResolved(1, {T: "t"}))
        assert work(rig) == []
        rig.expect(MemberState.LEAVING)


class TestFlush:
    def test_is_bounded_by_the_rebalance_timeout(self) -> None:
        """KAFKA-16133: a wrong unit or a deadline that overflows. KAFKA-16224: a topic
        that is gone blocks nothing."""
        rig = Rig(max_poll_interval_ms=20_000).stable()
        rig.feed(Polled(waiting=True))
        rig.target(1, t=[0])
        assert rig.newest(FlushOffsets).deadline_ms == rig.now + 20_000
        rig.advance(19_999)
        assert rig.all(ReleasePartitions) == []
        rig.advance(1)
        assert rig.newest(ReleasePartitions).partitions == part(T, 1, 2)
        late = rig.core.snapshot().stale_answers
        rig.flushed()
        assert rig.core.snapshot().stale_answers == late + 1
        rig.released()
        rig.started()
        assert rig.core.assigned == part(T, 0)

    def test_nothing_is_handed_out_of_what_goes(self) -> None:
        """KAFKA-20332, KAFKA-19781: from the first command on."""
        rig = Rig().stable()
        rig.target(1, t=[0])
        assert rig.core.fetchable == part(T, 0)
        rig.flushed()
        assert rig.core.fetchable == part(T, 0)

    def test_lost_partitions_are_held_back_at_once(self) -> None:
        """KAFKA-20321."""
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert rig.core.fetchable == ()

    def test_the_new_ones_wait_for_the_callback(self) -> None:
        """KAFKA-16107."""
        rig = Rig(auto_commit=False).stable(t=[0])
        rig.target(2, t=[0, 1])
        assert rig.core.assigned == part(T, 0, 1)
        assert rig.core.fetchable == part(T, 0)
        rig.started()
        assert rig.core.fetchable == part(T, 0, 1)


class TestFailingCallbacks:
    def test_revoked_is_called_again_at_the_next_poll(self) -> None:
        rig = Rig(auto_commit=False).stable()
        rig.target(1, t=[0])
        rig.released(failed=True)
        rig.expect(MemberState.RECONCILING)
        assert work(rig) == []
        assert rig.core.assigned == part(T, 0, 1, 2)
        assert rig.core.fetchable == part(T, 0)
        rig.next_heartbeat()
        assert rig.intent.owned is None
        rig.accept(1)
        rig.feed(Polled())
        assert work(rig) == [ReleasePartitions(3, part(T, 1, 2), lost=False)]
        rig.released()
        rig.started()
        assert [h.owned for h in rig.heartbeats] == [((T, (0,)),)]

    def test_assigned_is_called_again_with_the_same_partitions(self) -> None:
        """Who seeks in the callback must not start anywhere else because of one failure
        (KAFKA-16460: afterwards everything is fetchable)."""
        rig = Rig(auto_commit=False).join()
        rig.accept(1, assignment(t=[0, 1]))
        rig.started(failed=True)
        assert rig.core.assigned == part(T, 0, 1)
        assert rig.core.fetchable == ()
        assert rig.heartbeats == []
        rig.feed(Polled())
        assert work(rig) == [StartPartitions(2, part(T, 0, 1), part(T, 0, 1))]
        rig.started()
        assert rig.core.fetchable == part(T, 0, 1)

    def test_what_was_prepared_before_is_not_named_again(self) -> None:
        rig = Rig(auto_commit=False).stable(t=[0])
        rig.target(2, t=[0, 1])
        rig.started(failed=True)
        assert rig.core.fetchable == part(T, 0)
        rig.target(3, t=[0, 1, 2])
        rig.feed(Polled())
        assert work(rig) == [StartPartitions(3, part(T, 1, 2), part(T, 0, 1, 2))]
        rig.started()
        assert rig.core.fetchable == part(T, 0, 1, 2)

    def test_what_is_taken_back_before_the_repetition_is_not_named_again(self) -> None:
        rig = Rig(auto_commit=False).join()
        rig.accept(1, assignment(t=[0, 1]))
        rig.started(failed=True)
        rig.target(2, t=[0])
        rig.feed(Polled())
        assert work(rig) == [ReleasePartitions(2, part(T, 1), lost=False)]
        rig.released()
        assert work(rig) == [StartPartitions(2, part(T, 0), part(T, 0))]

    def test_a_target_that_returns_after_a_failed_revocation_frees_the_partition(self) -> None:
        rig = Rig(auto_commit=False).stable(t=[0, 1])
        rig.target(1, t=[0])
        rig.released(failed=True)
        rig.next_heartbeat()
        rig.accept(1, assignment(t=[0, 1]))
        rig.feed(Polled())
        assert work(rig) == [StartPartitions(3, (), part(T, 0, 1))]
        rig.started()
        assert rig.core.fetchable == part(T, 0, 1)
        rig.expect(MemberState.STABLE)

    def test_a_callback_that_always_fails_runs_once_a_poll(self) -> None:
        """KAFKA-18160, KAFKA-20382: each end is reported, also a cancelled one."""
        rig = Rig(auto_commit=False).join()
        rig.accept(1, assignment(t=[0]))
        for attempt in range(2, 12):
            rig.started(failed=True)
            assert work(rig) == []
            rig.feed(Polled(waiting=True))
            assert rig.newest(StartPartitions).plan == attempt

    def test_a_failed_member_can_be_fenced(self) -> None:
        rig = Rig(auto_commit=False).stable(t=[0, 1])
        rig.target(1, t=[0])
        rig.released(failed=True)
        rig.next_heartbeat()
        rig.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        assert rig.newest(ReleasePartitions).partitions == part(T, 0, 1)
        rig.released()
        rig.accept(2, assignment(t=[0]))
        assert rig.newest(StartPartitions).partitions == part(T, 0)


def test_an_assignment_is_ignored_while_preparing_to_leave_but_the_epoch_is_not() -> None:
    """librdkafka 4672: commits of the callbacks must carry the newest epoch."""
    rig = Rig().stable()
    rig.next_heartbeat()
    rig.leave()
    answer = HeartbeatAccepted(None, 9, 5_000, assignment(t=[7]))
    rig.feed(HeartbeatAnswered(rig.attempt, answer))
    rig.expect(MemberState.PREPARE_LEAVING)
    assert rig.core.commit_epoch == 9
    assert rig.core.snapshot().target == ((T, (0, 1, 2)),)

"""Commits of the user: retried by the rules of KIP-848."""

from __future__ import annotations

import pytest

from kip848_client.errors import (
    GroupAuthorizationFailed,
    Kip848Error,
    RequestTimedOut,
    StaleMemberEpoch,
    TopicAuthorizationFailed,
    UnknownMemberId,
)
from kip848_client.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitDone,
    CommitImpossible,
    CommitKind,
    CommitLost,
    CommitRefusal,
    CommittableOffset,
    CoordinatorSuspect,
    EpochNoted,
    RefreshEpoch,
    SendCommit,
)
from tests.unit.offsets._harness import (
    LOADING,
    MOVED,
    STALE,
    UNKNOWN_MEMBER,
    UNKNOWN_TOPIC,
    UNKNOWN_TOPIC_ID,
    A,
    B,
    C,
    Rig,
    names,
)


class TestManual:
    def test_stored(self) -> None:
        rig = Rig()
        ticket = rig.ask({A: 10, C: 3})
        assert rig.last == (
            SendCommit(1, 5, {A: CommittableOffset(10), C: CommittableOffset(3)}, 30_000),
        )
        rig.answer()
        everything = {A: CommittableOffset(10), C: CommittableOffset(3)}
        assert rig.done == CommitDone(ticket, everything, {})
        assert rig.tracker.last_committed(A) == 10
        assert rig.core.open_tickets == 0

    def test_offsets_are_copied(self) -> None:
        """KAFKA-17480, KAFKA-19351."""
        rig = Rig()
        rig.ask({B: 1})
        mine = {A: CommittableOffset(10)}
        rig.feed(CommitAsked(77, CommitKind.MANUAL, mine, rig.now + 1_000))
        mine[A] = CommittableOffset(99)
        rig.answer()
        assert rig.sends == [{A: 10}]

    def test_nothing_to_commit_is_done_at_once(self) -> None:
        rig = Rig()
        ticket = rig.ask({})
        assert rig.last == (CommitDone(ticket, {}, {}),)

    @pytest.mark.parametrize("refusal", [LOADING, MOVED, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID])
    def test_retried_with_backoff_for_what_was_refused(self, refusal: CommitRefusal) -> None:
        rig = Rig()
        rig.ask({A: 10, B: 20})
        pauses: list[int] = []
        for _ in range(6):
            rig.answer((B, refusal))
            assert rig.sends == []
            before = rig.now
            rig.advance((rig.core.deadline_ms or 0) - rig.now)
            assert rig.sends == [{B: 20}]
            pauses.append(rig.now - before)
        assert pauses == [100, 200, 400, 800, 1_000, 1_000]
        rig.answer()
        assert rig.done.committed == {A: CommittableOffset(10), B: CommittableOffset(20)}

    def test_a_moved_coordinator_is_passed_on(self) -> None:
        rig = Rig()
        rig.ask({A: 10})
        rig.answer((A, MOVED))
        assert rig.last == (CoordinatorSuspect("NOT_COORDINATOR"),)

    def test_the_deadline_ends_it_with_the_last_reason(self) -> None:
        rig = Rig()
        rig.ask({A: 10, B: 20}, within=1_000)
        rig.answer((B, LOADING))
        while rig.count(CommitDone) == 0:
            rig.advance((rig.core.deadline_ms or 0) - rig.now)
            if rig.sends:
                rig.answer((B, LOADING))
        assert rig.now == 2_000
        assert rig.done.committed == {A: CommittableOffset(10)}
        error = rig.done.failed[B]
        assert isinstance(error, RequestTimedOut)
        assert "COORDINATOR_LOAD_IN_PROGRESS (14)" in str(error)

    def test_a_lost_attempt_is_repeated(self) -> None:
        rig = Rig()
        rig.ask({A: 10})
        rig.feed(CommitLost(rig.sent.attempt, "disconnected"))
        assert rig.sends == []
        rig.advance(100)
        assert rig.sends == [{A: 10}]

    def test_an_attempt_that_outlives_its_ticket_is_not_overtaken(self) -> None:
        """franz-go 416e8269: a cancelled request may be read after the next one."""
        rig = Rig()
        rig.ask({A: 10}, within=500)
        rig.advance(500)
        assert isinstance(rig.done.failed[A], RequestTimedOut)
        rig.ask({A: 20})
        assert rig.sends == []
        rig.feed(CommitAnswered(1, {A: None}))
        assert rig.sends == [{A: 20}]
        assert rig.tracker.last_committed(A) == 10

    @pytest.mark.parametrize(
        ("code", "name", "error"),
        [
            (25, "UNKNOWN_MEMBER_ID", UnknownMemberId),
            (29, "TOPIC_AUTHORIZATION_FAILED", TopicAuthorizationFailed),
            (30, "GROUP_AUTHORIZATION_FAILED", GroupAuthorizationFailed),
            (12, "OFFSET_METADATA_TOO_LARGE", Kip848Error),
            (82, "FENCED_INSTANCE_ID", Kip848Error),
        ],
    )
    def test_other_refusals_fail_at_once(
        self, code: int, name: str, error: type[Kip848Error]
    ) -> None:
        rig = Rig()
        rig.ask({A: 10, B: 20})
        rig.answer((A, CommitRefusal(code, name, "why")))
        assert rig.done.committed == {B: CommittableOffset(20)}
        assert isinstance(rig.done.failed[A], error)
        assert "why" in str(rig.done.failed[A])

    def test_an_answer_that_leaves_a_partition_out_is_no_success(self) -> None:
        """franz-go bbc88fe2."""
        rig = Rig()
        rig.ask({A: 10, B: 20}, within=1_000)
        rig.feed(CommitAnswered(rig.sent.attempt, {A: None, C: None}))
        rig.advance(100)
        assert rig.sends == [{B: 20}]
        rig.advance(1_000)
        assert "did not answer for b-0" in str(rig.done.failed[B])
        assert C not in rig.done.committed

    def test_what_cannot_succeed_fails_with_its_error(self) -> None:
        """KAFKA-18034: no right to find the coordinator fails what waits for it."""
        rig = Rig()
        rig.ask({A: 10})
        error = GroupAuthorizationFailed(30, "GROUP_AUTHORIZATION_FAILED")
        rig.feed(CommitImpossible(rig.sent.attempt, error))
        assert rig.done.failed == {A: error}


class TestStaleEpoch:
    """Retried with the refreshed epoch while the partition is still owned."""

    def test_waits_for_the_epoch_then_repeats(self) -> None:
        rig = Rig()
        rig.ask({A: 10})
        rig.answer((A, STALE))
        assert rig.last == (RefreshEpoch(),)
        rig.advance(10_000)
        assert rig.sends == []
        rig.feed(EpochNoted(6))
        assert [
            (c.member_epoch, dict(c.offsets)) for c in rig.history if isinstance(c, SendCommit)
        ][-1] == (6, {A: CommittableOffset(10)})
        rig.answer()
        assert rig.done.failed == {}

    def test_an_epoch_that_came_meanwhile_needs_no_heartbeat(self) -> None:
        rig = Rig()
        rig.ask({A: 10})
        rig.feed(EpochNoted(6))
        rig.answer((A, STALE))
        assert rig.count(RefreshEpoch) == 0
        rig.advance(100)
        assert rig.sends == [{A: 10}]

    def test_what_is_no_longer_owned_is_reported_and_left_out(self) -> None:
        """One bad partition would fail the whole request (KIP-1251)."""
        rig = Rig()
        rig.ask({A: 10, B: 20})
        rig.tracker.forget([B])
        rig.answer((A, STALE), (B, STALE))
        rig.feed(EpochNoted(6), after=100)
        assert rig.sends == [{A: 10}]
        rig.answer()
        assert rig.done.committed == {A: CommittableOffset(10)}
        assert names(rig.done) == {B: "NotAssigned"}

    def test_what_is_lost_while_waiting_is_left_out_too(self) -> None:
        rig = Rig()
        rig.ask({A: 10, B: 20})
        rig.answer((A, STALE), (B, STALE))
        rig.tracker.forget([B])
        rig.tracker.assign([B])
        rig.feed(EpochNoted(6), after=100)
        assert rig.sends == [{A: 10}], "b-0 came back, but as another assignment"
        rig.answer()
        assert names(rig.done) == {B: "NotAssigned"}

    def test_the_deadline_bounds_the_wait(self) -> None:
        rig = Rig()
        rig.ask({A: 10}, within=2_000)
        rig.answer((A, STALE))
        rig.advance(2_000)
        assert "STALE_MEMBER_EPOCH" in str(rig.done.failed[A])

    def test_losing_the_membership_ends_the_wait(self) -> None:
        rig = Rig()
        rig.ask({A: 10})
        rig.answer((A, STALE))
        rig.feed(EpochNoted(None))
        assert names(rig.done) == {A: "NotAssigned"}

    def test_a_partition_that_was_never_owned_fails_at_once(self) -> None:
        rig = Rig()
        rig.ask({C: 10})
        rig.answer((C, STALE))
        assert isinstance(rig.done.failed[C], StaleMemberEpoch)

    def test_the_member_is_not_told_to_rejoin(self) -> None:
        """franz-go 2f945862: a stale commit never changes the membership."""
        rig = Rig()
        rig.ask({A: 10})
        rig.answer((A, STALE))
        assert {type(c) for c in rig.last} == {RefreshEpoch}

    def test_a_waiting_commit_does_not_hold_up_another(self) -> None:
        rig = Rig()
        rig.ask({A: 10})
        rig.answer((A, STALE))
        rig.ask({B: 20})
        assert rig.sends == [{B: 20}]


class TestNotAMember:
    def test_commits_without_an_epoch(self) -> None:
        rig = Rig()
        rig.feed(EpochNoted(None))
        rig.ask({A: 10})
        assert rig.sent.member_epoch is None
        rig.answer((A, UNKNOWN_MEMBER))
        assert isinstance(rig.done.failed[A], UnknownMemberId)

    def test_what_a_member_asked_for_is_not_sent_without_its_epoch(self) -> None:
        """It could overwrite the offsets of whoever owns the partition now."""
        rig = Rig()
        rig.ask({A: 10})
        rig.ask({B: 20})
        rig.feed(EpochNoted(None))
        assert names(rig.done) == {B: "NotAssigned"}
        assert rig.count(SendCommit) == 1

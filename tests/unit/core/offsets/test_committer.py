"""Commits of the user: retried by the rules of KIP-848."""

from __future__ import annotations

import pytest

from kip848_client.core.offsets import (
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
from kip848_client.core.offsets._error_rules import Reaction, reaction
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    GroupAuthorizationFailed,
    Kip848Error,
    RequestTimedOut,
    StaleMemberEpoch,
    TopicAuthorizationFailed,
    UnknownMemberId,
)
from tests.unit.core.offsets._harness import (
    LOADING,
    MOVED,
    STALE,
    UNKNOWN_MEMBER,
    UNKNOWN_TOPIC,
    UNKNOWN_TOPIC_ID,
    A,
    B,
    C,
    CommitterHarness,
    names,
)


class TestManual:
    def test_stored(self) -> None:
        harness = CommitterHarness()
        ticket = harness.ask({A: 10, C: 3})
        assert harness.last == (
            SendCommit(1, 5, {A: CommittableOffset(10), C: CommittableOffset(3)}, 30_000),
        )
        harness.answer()
        everything = {A: CommittableOffset(10), C: CommittableOffset(3)}
        assert harness.done == CommitDone(ticket, everything, {})
        assert harness.tracker.last_committed(A) == 10
        assert harness.core.open_tickets == 0

    def test_offsets_are_copied(self) -> None:
        """KAFKA-17480, KAFKA-19351."""
        harness = CommitterHarness()
        harness.ask({B: 1})
        mine = {A: CommittableOffset(10)}
        harness.feed(CommitAsked(77, CommitKind.MANUAL, mine, harness.now + 1_000))
        mine[A] = CommittableOffset(99)
        harness.answer()
        assert harness.sends == [{A: 10}]

    def test_nothing_to_commit_is_done_at_once(self) -> None:
        harness = CommitterHarness()
        ticket = harness.ask({})
        assert harness.last == (CommitDone(ticket, {}, {}),)

    @pytest.mark.parametrize("refusal", [LOADING, MOVED, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID])
    def test_retried_with_backoff_for_what_was_refused(self, refusal: CommitRefusal) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10, B: 20})
        pauses: list[int] = []
        for _ in range(6):
            harness.answer((B, refusal))
            assert harness.sends == []
            before = harness.now
            harness.advance((harness.core.deadline_ms or 0) - harness.now)
            assert harness.sends == [{B: 20}]
            pauses.append(harness.now - before)
        assert pauses == [100, 200, 400, 800, 1_000, 1_000]
        harness.answer()
        assert harness.done.committed == {A: CommittableOffset(10), B: CommittableOffset(20)}

    def test_a_moved_coordinator_is_passed_on(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10})
        harness.answer((A, MOVED))
        assert harness.last == (CoordinatorSuspect("NOT_COORDINATOR"),)

    def test_the_deadline_ends_it_with_the_last_reason(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10, B: 20}, within=1_000)
        harness.answer((B, LOADING))
        while harness.count(CommitDone) == 0:
            harness.advance((harness.core.deadline_ms or 0) - harness.now)
            if harness.sends:
                harness.answer((B, LOADING))
        assert harness.now == 2_000
        assert harness.done.committed == {A: CommittableOffset(10)}
        error = harness.done.failed[B]
        assert isinstance(error, RequestTimedOut)
        assert "COORDINATOR_LOAD_IN_PROGRESS (14)" in str(error)

    def test_a_lost_attempt_is_repeated(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10})
        harness.feed(CommitLost(harness.sent.attempt, "disconnected"))
        assert harness.sends == []
        harness.advance(100)
        assert harness.sends == [{A: 10}]

    def test_an_attempt_that_outlives_its_ticket_is_not_overtaken(self) -> None:
        """franz-go 416e8269: a cancelled request may be read after the next one."""
        harness = CommitterHarness()
        harness.ask({A: 10}, within=500)
        harness.advance(500)
        assert isinstance(harness.done.failed[A], RequestTimedOut)
        harness.ask({A: 20})
        assert harness.sends == []
        harness.feed(CommitAnswered(1, {A: None}))
        assert harness.sends == [{A: 20}]
        assert harness.tracker.last_committed(A) == 10

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
        harness = CommitterHarness()
        harness.ask({A: 10, B: 20})
        harness.answer((A, CommitRefusal(code, name, "why")))
        assert harness.done.committed == {B: CommittableOffset(20)}
        assert isinstance(harness.done.failed[A], error)
        assert "why" in str(harness.done.failed[A])

    @pytest.mark.parametrize("code", [*ErrorCode][2:], ids=lambda code: code.name)
    def test_no_refusal_ever_counts_as_stored(self, code: ErrorCode) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10, B: 20})
        harness.answer((A, CommitRefusal(code, code.name)))
        fails = reaction(code) is Reaction.FAIL
        assert harness.count(CommitDone) == (1 if fails else 0)
        harness.advance(60_000)
        assert A not in harness.done.committed
        assert A in harness.done.failed

    def test_an_answer_that_leaves_a_partition_out_is_no_success(self) -> None:
        """franz-go bbc88fe2."""
        harness = CommitterHarness()
        harness.ask({A: 10, B: 20}, within=1_000)
        harness.feed(CommitAnswered(harness.sent.attempt, {A: None, C: None}))
        harness.advance(100)
        assert harness.sends == [{B: 20}]
        harness.advance(1_000)
        assert "did not answer for b-0" in str(harness.done.failed[B])
        assert C not in harness.done.committed

    def test_what_cannot_succeed_fails_with_its_error(self) -> None:
        """KAFKA-18034: no right to find the coordinator fails what waits for it."""
        harness = CommitterHarness()
        harness.ask({A: 10})
        error = GroupAuthorizationFailed(30, "GROUP_AUTHORIZATION_FAILED")
        harness.feed(CommitImpossible(harness.sent.attempt, error))
        assert harness.done.failed == {A: error}


class TestStaleEpoch:
    """Retried with the refreshed epoch while the partition is still owned."""

    def test_waits_for_the_epoch_then_repeats(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10})
        harness.answer((A, STALE))
        assert harness.last == (RefreshEpoch(),)
        harness.advance(10_000)
        assert harness.sends == []
        harness.feed(EpochNoted(6))
        assert [
            (c.member_epoch, dict(c.offsets)) for c in harness.history if isinstance(c, SendCommit)
        ][-1] == (6, {A: CommittableOffset(10)})
        harness.answer()
        assert harness.done.failed == {}

    def test_an_epoch_that_came_meanwhile_needs_no_heartbeat(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10})
        harness.feed(EpochNoted(6))
        harness.answer((A, STALE))
        assert harness.count(RefreshEpoch) == 0
        harness.advance(100)
        assert harness.sends == [{A: 10}]

    def test_what_is_no_longer_owned_is_reported_and_left_out(self) -> None:
        """One bad partition would fail the whole request (KIP-1251)."""
        harness = CommitterHarness()
        harness.ask({A: 10, B: 20})
        harness.tracker.forget([B])
        harness.answer((A, STALE), (B, STALE))
        harness.feed(EpochNoted(6), after=100)
        assert harness.sends == [{A: 10}]
        harness.answer()
        assert harness.done.committed == {A: CommittableOffset(10)}
        assert names(harness.done) == {B: "NotAssigned"}

    def test_what_is_lost_while_waiting_is_left_out_too(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10, B: 20})
        harness.answer((A, STALE), (B, STALE))
        harness.tracker.forget([B])
        harness.tracker.assign([B])
        harness.feed(EpochNoted(6), after=100)
        assert harness.sends == [{A: 10}], "b-0 came back, but as another assignment"
        harness.answer()
        assert names(harness.done) == {B: "NotAssigned"}

    def test_the_deadline_bounds_the_wait(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10}, within=2_000)
        harness.answer((A, STALE))
        harness.advance(2_000)
        assert "STALE_MEMBER_EPOCH" in str(harness.done.failed[A])

    def test_losing_the_membership_ends_the_wait(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10})
        harness.answer((A, STALE))
        harness.feed(EpochNoted(None))
        assert names(harness.done) == {A: "NotAssigned"}

    def test_a_partition_that_was_never_owned_fails_at_once(self) -> None:
        harness = CommitterHarness()
        harness.ask({C: 10})
        harness.answer((C, STALE))
        assert isinstance(harness.done.failed[C], StaleMemberEpoch)

    def test_the_member_is_not_told_to_rejoin(self) -> None:
        """franz-go 2f945862: a stale commit never changes the membership."""
        harness = CommitterHarness()
        harness.ask({A: 10})
        harness.answer((A, STALE))
        assert {type(c) for c in harness.last} == {RefreshEpoch}

    def test_a_waiting_commit_does_not_hold_up_another(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 10})
        harness.answer((A, STALE))
        harness.ask({B: 20})
        assert harness.sends == [{B: 20}]


class TestNotAMember:
    def test_commits_without_an_epoch(self) -> None:
        harness = CommitterHarness()
        harness.feed(EpochNoted(None))
        harness.ask({A: 10})
        assert harness.sent.member_epoch is None
        harness.answer((A, UNKNOWN_MEMBER))
        assert isinstance(harness.done.failed[A], UnknownMemberId)

    def test_what_a_member_asked_for_is_not_sent_without_its_epoch(self) -> None:
        """It could overwrite the offsets of whoever owns the partition now."""
        harness = CommitterHarness()
        harness.ask({A: 10})
        harness.ask({B: 20})
        harness.feed(EpochNoted(None))
        assert names(harness.done) == {B: "NotAssigned"}
        assert harness.count(SendCommit) == 1

    def test_what_a_member_had_when_it_was_put_out_is_not_committed_by_the_interval(self) -> None:
        """The listener may still be busy with a revocation, so that the rest is not forgotten. In
        a group that is empty by then a broker would take it."""
        harness = CommitterHarness(interval=1_000)
        harness.consume(A, 10)
        harness.feed(EpochNoted(None))
        assert harness.advance(5_000) == []
        harness.tracker.forget([A, B])
        harness.tracker.assign([A])  # by hand, say
        harness.consume(A, 20)
        harness.advance(1_000)
        assert (harness.sends, harness.sent.member_epoch) == ([{A: 20}], None)

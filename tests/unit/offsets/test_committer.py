"""Commits: one at a time, retried by the rules of KIP-848, never ahead and never backwards."""

from __future__ import annotations

from typing import TypeVar

import pytest

from kip848_client._types import TopicPartition
from kip848_client.errors import (
    GroupAuthorizationFailed,
    Kip848Error,
    LocalProtocolError,
    NotAssigned,
    RequestTimedOut,
    StaleMemberEpoch,
    TopicAuthorizationFailed,
    UnknownMemberId,
)
from kip848_client.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitCommand,
    CommitDone,
    CommitEvent,
    CommitImpossible,
    CommitKind,
    CommitLost,
    CommitRefusal,
    CommittableOffset,
    CommitterCore,
    CommitterSettings,
    CommitTimer,
    CoordinatorSuspect,
    EpochNoted,
    OffsetTracker,
    RefreshEpoch,
    SendCommit,
)

A = TopicPartition("a", 0)
B = TopicPartition("b", 0)
C = TopicPartition("c", 0)
Command = TypeVar("Command", bound=CommitCommand)

STALE = CommitRefusal(113, "STALE_MEMBER_EPOCH")
LOADING = CommitRefusal(14, "COORDINATOR_LOAD_IN_PROGRESS")
MOVED = CommitRefusal(16, "NOT_COORDINATOR")
UNKNOWN_TOPIC = CommitRefusal(3, "UNKNOWN_TOPIC_OR_PARTITION")
UNKNOWN_TOPIC_ID = CommitRefusal(100, "UNKNOWN_TOPIC_ID")
UNKNOWN_MEMBER = CommitRefusal(25, "UNKNOWN_MEMBER_ID")


class Rig:
    """A committer of a member at epoch 5 that owns a-0 and b-0."""

    def __init__(self, interval: int | None = None) -> None:
        self.now = 1_000
        self.tracker = OffsetTracker()
        self.tracker.assign([A, B])
        settings = CommitterSettings(auto_commit_interval_ms=interval)
        self.core = CommitterCore(settings, self.tracker, lambda pause: pause)
        self.last: tuple[CommitCommand, ...] = ()
        self.history: list[CommitCommand] = []
        self.tickets = 0
        self.feed(EpochNoted(5))

    def feed(self, event: CommitEvent, after: int = 0) -> tuple[CommitCommand, ...]:
        self.now += after
        self.last = self.core.step(self.now, event)
        self.history += self.last
        return self.last

    def advance(self, ms: int) -> list[CommitCommand]:
        end, out = self.now + ms, list[CommitCommand]()
        while (deadline := self.core.deadline_ms) is not None and deadline <= end:
            assert deadline > self.now, "the committer asks to be woken in the past"
            self.now = deadline
            out += self.feed(CommitTimer())
        self.now = end
        self.last = tuple(out)
        return out

    def ask(
        self,
        offsets: dict[TopicPartition, int] | None,
        kind: CommitKind = CommitKind.MANUAL,
        within: int = 60_000,
    ) -> int:
        self.tickets += 1
        wanted = None
        if offsets is not None:
            wanted = {tp: CommittableOffset(offset) for tp, offset in offsets.items()}
        self.feed(CommitAsked(self.tickets, kind, wanted, self.now + within))
        return self.tickets

    def answer(self, *refused: tuple[TopicPartition, CommitRefusal]) -> None:
        """Everything of the newest attempt is stored, but ``refused``."""
        attempt = self.sent
        results: dict[TopicPartition, CommitRefusal | None] = dict.fromkeys(attempt.offsets)
        results.update(dict(refused))
        self.feed(CommitAnswered(attempt.attempt, results))

    def consume(self, tp: TopicPartition, offset: int) -> None:
        self.tracker.delivered(tp, offset)
        self.tracker.confirm()

    def newest(self, kind: type[Command]) -> Command:
        return next(c for c in reversed(self.history) if isinstance(c, kind))

    @property
    def sent(self) -> SendCommit:
        return self.newest(SendCommit)

    @property
    def sends(self) -> list[dict[TopicPartition, int]]:
        """The offsets of the attempts of the last feeding."""
        return [
            {tp: o.offset for tp, o in c.offsets.items()}
            for c in self.last
            if isinstance(c, SendCommit)
        ]

    @property
    def done(self) -> CommitDone:
        return self.newest(CommitDone)

    def count(self, kind: type[CommitCommand]) -> int:
        return sum(isinstance(c, kind) for c in self.history)


def names(failed: CommitDone) -> dict[TopicPartition, str]:
    return {tp: type(error).__name__ for tp, error in failed.failed.items()}


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
        """83 (KAFKA-17480, KAFKA-19351)."""
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
        """86 (franz-go 416e8269): a cancelled request may be read after the next one."""
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
        """89 (franz-go bbc88fe2)."""
        rig = Rig()
        rig.ask({A: 10, B: 20}, within=1_000)
        rig.feed(CommitAnswered(rig.sent.attempt, {A: None, C: None}))
        rig.advance(100)
        assert rig.sends == [{B: 20}]
        rig.advance(1_000)
        assert "did not answer for b-0" in str(rig.done.failed[B])
        assert C not in rig.done.committed

    def test_what_cannot_succeed_fails_with_its_error(self) -> None:
        """85 (KAFKA-18034): no right to find the coordinator fails what waits for it."""
        rig = Rig()
        rig.ask({A: 10})
        error = GroupAuthorizationFailed(30, "GROUP_AUTHORIZATION_FAILED")
        rig.feed(CommitImpossible(rig.sent.attempt, error))
        assert rig.done.failed == {A: error}


class TestStaleEpoch:
    """Decision 2.4 (5): retried with the refreshed epoch while the partition is still owned."""

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
        """88 (franz-go 2f945862): a stale commit never changes the membership."""
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


class TestOrder:
    def test_one_at_a_time_in_the_order_of_asking(self) -> None:
        """86: the final stored offset is the newest one."""
        rig = Rig()
        for offset in (10, 20, 30):
            rig.ask({A: offset})
        sent: list[dict[TopicPartition, int]] = []
        while rig.core.open_tickets:
            sent += [{tp: o.offset for tp, o in rig.sent.offsets.items()}]
            rig.answer()
        assert sent == [{A: 10}, {A: 20}, {A: 30}]
        assert rig.tracker.last_committed(A) == 30

    def test_a_retry_does_not_undo_a_newer_commit(self) -> None:
        rig = Rig()
        first = rig.ask({A: 10, B: 1})
        rig.answer((A, LOADING), (B, LOADING))
        rig.ask({A: 30})
        rig.answer()
        rig.advance(100)
        assert rig.sends == [{B: 1}]
        rig.answer()
        assert (rig.done.ticket, set(rig.done.committed)) == (first, {A, B})
        assert rig.tracker.last_committed(A) == 30

    def test_a_deliberate_step_back_is_kept(self) -> None:
        rig = Rig()
        rig.ask({A: 30})
        rig.answer()
        rig.ask({A: 10})
        assert rig.sends == [{A: 10}]

    def test_what_was_queued_before_the_flush_goes_before_it(self) -> None:
        """90: queued commits are not lost when the member leaves."""
        rig = Rig()
        rig.consume(B, 7)
        rig.ask({C: 1})
        rig.ask({A: 10})
        rig.ask(None, CommitKind.REVOCATION)
        rig.answer()
        assert rig.sends == [{A: 10}]
        rig.answer()
        assert rig.sends == [{B: 7}]


class TestInterval:
    def test_commits_what_is_confirmed(self) -> None:
        rig = Rig(interval=5_000)
        rig.tracker.delivered(A, 10)
        assert rig.advance(5_000) == []
        rig.tracker.confirm()
        rig.advance(5_000)
        assert rig.sends == [{A: 10}]
        rig.answer()
        assert rig.last == (CommitDone(None, {A: CommittableOffset(10)}, {}),)
        assert rig.advance(60_000) == [], "nothing new, nothing sent"

    def test_an_empty_interval_marks_nothing(self) -> None:
        """82 (KAFKA-16203): later commits still happen."""
        rig = Rig(interval=5_000)
        rig.advance(30_000)
        rig.consume(A, 10)
        rig.advance(5_000)
        assert rig.sends == [{A: 10}]

    @pytest.mark.parametrize("refusal", [LOADING, MOVED, STALE, UNKNOWN_TOPIC, UNKNOWN_MEMBER])
    def test_is_never_repeated_before_the_next_interval(self, refusal: CommitRefusal) -> None:
        rig = Rig(interval=5_000)
        rig.consume(A, 10)
        rig.advance(5_000)
        rig.answer((A, refusal))
        assert set(rig.done.failed) == {A}
        start = rig.now
        rig.advance(4_999)
        assert rig.sends == []
        rig.advance(1)
        assert rig.sends == [{A: 10}]
        assert rig.now == start + 5_000

    def test_a_lost_one_is_not_repeated_either(self) -> None:
        rig = Rig(interval=5_000)
        rig.consume(A, 10)
        rig.advance(5_000)
        rig.feed(CommitLost(rig.sent.attempt, "disconnected"))
        assert isinstance(rig.done.failed[A], RequestTimedOut)
        assert rig.sends == []

    def test_silence_about_a_partition_ends_it(self) -> None:
        rig = Rig(interval=5_000)
        rig.consume(A, 10)
        rig.advance(5_000)
        rig.feed(CommitAnswered(rig.sent.attempt, {}))
        assert isinstance(rig.done.failed[A], RequestTimedOut)

    def test_one_under_way_at_most(self) -> None:
        """28: due while one is in flight waits for the answer, it does not spin."""
        rig = Rig(interval=1_000)
        rig.consume(A, 10)
        rig.advance(1_000)
        rig.consume(A, 20)
        rig.advance(20_000)
        assert rig.sends == []
        rig.answer()
        rig.advance(1_000)
        assert rig.sends == [{A: 20}]

    def test_a_revocation_restarts_the_timer(self) -> None:
        rig = Rig(interval=5_000)
        rig.advance(4_000)
        rig.consume(A, 10)
        rig.ask(None, CommitKind.REVOCATION)
        rig.answer()
        rig.consume(A, 20)
        rig.advance(4_999)
        assert rig.sends == []
        rig.advance(1)
        assert rig.sends == [{A: 20}]

    def test_off_means_no_deadline(self) -> None:
        rig = Rig(interval=None)
        rig.consume(A, 10)
        assert rig.core.deadline_ms is None


class TestRevocation:
    def test_takes_everything_confirmed(self) -> None:
        rig = Rig()
        rig.consume(A, 10)
        rig.tracker.delivered(B, 3)
        rig.ask(None, CommitKind.REVOCATION)
        assert rig.sends == [{A: 10}]
        rig.answer()
        assert rig.done.committed == {A: CommittableOffset(10)}

    def test_nothing_consumed_is_no_request(self) -> None:
        rig = Rig()
        ticket = rig.ask(None, CommitKind.REVOCATION)
        assert rig.last == (CommitDone(ticket, {}, {}),)

    def test_a_stale_epoch_is_repeated_with_newest_positions_and_epoch(self) -> None:
        """78 (KAFKA-16033)."""
        rig = Rig()
        rig.consume(A, 10)
        rig.ask(None, CommitKind.REVOCATION)
        rig.answer((A, STALE))
        rig.consume(A, 12)
        rig.consume(B, 4)
        rig.feed(EpochNoted(6), after=100)
        assert rig.sends == [{A: 12, B: 4}]
        assert rig.sent.member_epoch == 6

    @pytest.mark.parametrize("refusal", [UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID])
    def test_a_deleted_topic_does_not_block(self, refusal: CommitRefusal) -> None:
        """54 (KAFKA-16224)."""
        rig = Rig()
        rig.consume(A, 10)
        rig.consume(B, 20)
        rig.ask(None, CommitKind.REVOCATION)
        rig.answer((A, refusal))
        assert set(rig.done.committed) == {B}
        assert set(rig.done.failed) == {A}

    @pytest.mark.parametrize("refusal", [LOADING, MOVED])
    def test_a_busy_coordinator_is_asked_again(self, refusal: CommitRefusal) -> None:
        rig = Rig()
        rig.consume(A, 10)
        rig.ask(None, CommitKind.REVOCATION, within=500)
        rig.answer((A, refusal))
        rig.advance(100)
        assert rig.sends == [{A: 10}]
        rig.advance(400)
        assert isinstance(rig.done.failed[A], RequestTimedOut)

    def test_a_lost_membership_ends_it(self) -> None:
        rig = Rig()
        rig.consume(A, 10)
        rig.ask(None, CommitKind.REVOCATION)
        rig.answer((A, LOADING))
        rig.feed(EpochNoted(None))
        assert names(rig.done) == {A: "NotAssigned"}


class TestProtocol:
    def test_a_ticket_in_use_is_refused(self) -> None:
        rig = Rig()
        rig.ask({A: 1})
        before = (rig.core.open_tickets, rig.core.deadline_ms)
        with pytest.raises(LocalProtocolError, match="ticket 1"):
            rig.core.step(rig.now, CommitAsked(1, CommitKind.MANUAL, {}, rig.now + 1))
        assert (rig.core.open_tickets, rig.core.deadline_ms) == before

    @pytest.mark.parametrize("number", [0, -1, 2, 99])
    def test_an_answer_to_nothing_is_refused(self, number: int) -> None:
        rig = Rig()
        rig.ask({A: 1})
        for event in (
            CommitAnswered(number, {}),
            CommitLost(number, "x"),
            CommitImpossible(number, NotAssigned("x")),
        ):
            with pytest.raises(LocalProtocolError, match="never made"):
                rig.core.step(rig.now, event)
        assert rig.core.open_tickets == 1

    def test_a_second_answer_is_ignored_and_counted(self) -> None:
        rig = Rig()
        rig.ask({A: 1})
        rig.answer()
        for event in (
            CommitAnswered(1, {A: None}),
            CommitLost(1, "x"),
            CommitImpossible(1, NotAssigned("x")),
        ):
            assert rig.feed(event) == ()
        assert rig.core.stale_answers == 3

    def test_an_impossible_attempt_of_an_ended_ticket_is_no_news(self) -> None:
        rig = Rig()
        rig.ask({A: 1}, within=10)
        rig.advance(10)
        assert rig.feed(CommitImpossible(1, NotAssigned("x"))) == ()

    def test_what_is_no_event_is_refused(self) -> None:
        rig = Rig()
        with pytest.raises(LocalProtocolError, match="not an event"):
            rig.core.step(rig.now, CommitEvent())

    def test_a_ticket_may_be_used_again_when_it_is_done(self) -> None:
        rig = Rig()
        rig.ask({A: 1})
        rig.answer()
        rig.feed(CommitAsked(1, CommitKind.MANUAL, {A: CommittableOffset(2)}, rig.now + 10))
        assert rig.sends == [{A: 2}]

    def test_a_wild_jitter_is_tamed(self) -> None:
        """27 (KAFKA-19813)."""
        core = CommitterCore(CommitterSettings(None), OffsetTracker(), lambda _: 10**9)
        core.step(0, CommitAsked(1, CommitKind.MANUAL, {A: CommittableOffset(1)}, 60_000))
        core.step(0, CommitLost(1, "x"))
        assert core.deadline_ms == 120
        assert core.member_epoch is None

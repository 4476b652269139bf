"""Commits in order, by interval, and before a revocation: never ahead, never backwards."""

from __future__ import annotations

import pytest

from kip848_client._types import TopicPartition
from kip848_client.errors import (
    LocalProtocolError,
    NotAssigned,
    RequestTimedOut,
)
from kip848_client.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitDone,
    CommitEvent,
    CommitImpossible,
    CommitKind,
    CommitLost,
    CommitRefusal,
    CommittableOffset,
    CommitterCore,
    CommitterSettings,
    EpochNoted,
    OffsetTracker,
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


class TestOrder:
    def test_one_at_a_time_in_the_order_of_asking(self) -> None:
        """The final stored offset is the newest one."""
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
        """Queued commits are not lost when the member leaves."""
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
        """KAFKA-16203: later commits still happen."""
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
        """Due while one is in flight waits for the answer, it does not spin."""
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
        """KAFKA-16033."""
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
        """KAFKA-16224."""
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
        """KAFKA-19813."""
        core = CommitterCore(CommitterSettings(None), OffsetTracker(), lambda _: 10**9)
        core.step(0, CommitAsked(1, CommitKind.MANUAL, {A: CommittableOffset(1)}, 60_000))
        core.step(0, CommitLost(1, "x"))
        assert core.deadline_ms == 120
        assert core.member_epoch is None

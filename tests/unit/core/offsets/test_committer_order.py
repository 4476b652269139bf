"""Commits in order, by interval, and before a revocation: never ahead, never backwards."""

from __future__ import annotations

import pytest

from kip848_client.core.offsets import (
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
from kip848_client.core.types import TopicPartition
from kip848_client.errors import (
    LocalProtocolError,
    NotAssigned,
    RequestTimedOut,
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


class TestOrder:
    def test_one_at_a_time_in_the_order_of_asking(self) -> None:
        """The final stored offset is the newest one."""
        harness = CommitterHarness()
        for offset in (10, 20, 30):
            harness.ask({A: offset})
        sent: list[dict[TopicPartition, int]] = []
        while harness.core.open_tickets:
            sent += [{tp: o.offset for tp, o in harness.sent.offsets.items()}]
            harness.answer()
        assert sent == [{A: 10}, {A: 20}, {A: 30}]
        assert harness.tracker.last_committed(A) == 30

    def test_a_retry_does_not_undo_a_newer_commit(self) -> None:
        harness = CommitterHarness()
        first = harness.ask({A: 10, B: 1})
        harness.answer((A, LOADING), (B, LOADING))
        harness.ask({A: 30})
        harness.answer()
        harness.advance(100)
        assert harness.sends == [{B: 1}]
        harness.answer()
        assert (harness.done.ticket, set(harness.done.committed)) == (first, {A, B})
        assert harness.tracker.last_committed(A) == 30

    def test_a_deliberate_step_back_is_kept(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 30})
        harness.answer()
        harness.ask({A: 10})
        assert harness.sends == [{A: 10}]

    def test_what_was_queued_before_the_flush_goes_before_it(self) -> None:
        """Queued commits are not lost when the member leaves."""
        harness = CommitterHarness()
        harness.consume(B, 7)
        harness.ask({C: 1})
        harness.ask({A: 10})
        harness.ask(None, CommitKind.REVOCATION)
        harness.answer()
        assert harness.sends == [{A: 10}]
        harness.answer()
        assert harness.sends == [{B: 7}]


class TestOrderAfterLosses:
    """An attempt was lost, and something else happens before it is repeated."""

    def test_a_younger_offset_sent_in_place_of_an_older_one_overtakes_all_before_it(self) -> None:
        h = CommitterHarness()
        h.ask({A: 10})
        h.answer((A, LOADING))
        h.ask({A: 15})
        h.answer((A, LOADING))
        h.ask({A: 20})
        h.feed(CommitLost(h.sent.attempt, "cut"))
        sent: list[int] = []
        for _ in range(10):
            h.advance(1_000)
            if h.core.open_tickets:
                sent.append(h.sent.offsets[A].offset)
                h.answer()
        assert set(sent) == {20}
        assert h.core.open_tickets == 0

    def test_it_is_sent_in_place_of_the_older_one_again_when_that_is_lost_too(self) -> None:
        h = CommitterHarness()
        h.ask({A: 10})
        h.answer((A, LOADING))
        h.ask({A: 20}, within=1_500)
        h.feed(CommitLost(h.sent.attempt, "cut"))
        sent: list[int] = []
        for _ in range(10):
            h.advance(100)
            for offsets in h.sends:
                sent.append(offsets[A])
                h.feed(CommitLost(h.sent.attempt, "cut"))
        h.advance(10_000)
        assert h.sent.offsets[A].offset == 20
        assert set(sent) == {20}

    def test_an_answer_ends_the_pauses_of_all(self) -> None:
        h = CommitterHarness()
        h.ask({A: 10})
        for _ in range(3):
            h.feed(CommitLost(h.sent.attempt, "cut"))
            h.advance(2_000)
        h.answer()
        h.ask({A: 11})
        h.ask({B: 12})
        h.feed(CommitLost(h.sent.attempt, "cut"))
        assert h.sends == [{B: 12}]


class TestMembershipThatEnds:
    def test_what_is_under_way_may_still_be_stored(self) -> None:
        h = CommitterHarness()
        h.ask({A: 10})
        h.feed(EpochNoted(None))
        assert h.count(CommitDone) == 0
        h.answer()
        assert h.done.committed == {A: CommittableOffset(10)}

    def test_what_is_assigned_after_it_ended_is_committed_though_its_end_is_told_again(
        self,
    ) -> None:
        h = CommitterHarness(interval=5_000)
        h.feed(EpochNoted(None))
        h.tracker.assign([C])
        h.consume(C, 7)
        h.feed(EpochNoted(None))
        h.advance(5_000)
        assert h.sends == [{C: 7}]


class TestInterval:
    def test_commits_what_is_confirmed(self) -> None:
        harness = CommitterHarness(interval=5_000)
        harness.tracker.delivered(A, 10)
        assert harness.advance(5_000) == []
        harness.tracker.confirm()
        harness.advance(5_000)
        assert harness.sends == [{A: 10}]
        harness.answer()
        assert harness.last == (CommitDone(None, {A: CommittableOffset(10)}, {}),)
        assert harness.advance(60_000) == [], "nothing new, nothing sent"

    def test_an_empty_interval_marks_nothing(self) -> None:
        """KAFKA-16203: later commits still happen."""
        harness = CommitterHarness(interval=5_000)
        harness.advance(30_000)
        harness.consume(A, 10)
        harness.advance(5_000)
        assert harness.sends == [{A: 10}]

    @pytest.mark.parametrize("refusal", [LOADING, MOVED, STALE, UNKNOWN_TOPIC, UNKNOWN_MEMBER])
    def test_is_never_repeated_before_the_next_interval(self, refusal: CommitRefusal) -> None:
        harness = CommitterHarness(interval=5_000)
        harness.consume(A, 10)
        harness.advance(5_000)
        harness.answer((A, refusal))
        assert set(harness.done.failed) == {A}
        start = harness.now
        harness.advance(4_999)
        assert harness.sends == []
        harness.advance(1)
        assert harness.sends == [{A: 10}]
        assert harness.now == start + 5_000

    def test_a_lost_one_is_not_repeated_either(self) -> None:
        harness = CommitterHarness(interval=5_000)
        harness.consume(A, 10)
        harness.advance(5_000)
        harness.feed(CommitLost(harness.sent.attempt, "disconnected"))
        assert isinstance(harness.done.failed[A], RequestTimedOut)
        assert harness.sends == []

    def test_silence_about_a_partition_ends_it(self) -> None:
        harness = CommitterHarness(interval=5_000)
        harness.consume(A, 10)
        harness.advance(5_000)
        harness.feed(CommitAnswered(harness.sent.attempt, {}))
        assert isinstance(harness.done.failed[A], RequestTimedOut)

    def test_one_under_way_at_most(self) -> None:
        """Due while one is in flight waits for the answer, it does not spin."""
        harness = CommitterHarness(interval=1_000)
        harness.consume(A, 10)
        harness.advance(1_000)
        harness.consume(A, 20)
        harness.advance(20_000)
        assert harness.sends == []
        harness.answer()
        harness.advance(1_000)
        assert harness.sends == [{A: 20}]

    def test_a_revocation_restarts_the_timer(self) -> None:
        harness = CommitterHarness(interval=5_000)
        harness.advance(4_000)
        harness.consume(A, 10)
        harness.ask(None, CommitKind.REVOCATION)
        harness.answer()
        harness.consume(A, 20)
        harness.advance(4_999)
        assert harness.sends == []
        harness.advance(1)
        assert harness.sends == [{A: 20}]

    def test_off_means_no_deadline(self) -> None:
        harness = CommitterHarness(interval=None)
        harness.consume(A, 10)
        assert harness.core.deadline_ms is None


class TestRevocation:
    def test_takes_everything_confirmed(self) -> None:
        harness = CommitterHarness()
        harness.consume(A, 10)
        harness.tracker.delivered(B, 3)
        harness.ask(None, CommitKind.REVOCATION)
        assert harness.sends == [{A: 10}]
        harness.answer()
        assert harness.done.committed == {A: CommittableOffset(10)}

    def test_nothing_consumed_is_no_request(self) -> None:
        harness = CommitterHarness()
        ticket = harness.ask(None, CommitKind.REVOCATION)
        assert harness.last == (CommitDone(ticket, {}, {}),)

    def test_it_ends_with_its_answer_though_more_is_confirmed_meanwhile(self) -> None:
        h = CommitterHarness()
        h.consume(A, 5)
        h.ask(None, CommitKind.REVOCATION)
        h.consume(B, 9)
        h.answer()
        assert h.done.committed == {A: CommittableOffset(5)}
        assert h.core.open_tickets == 0

    def test_a_stale_epoch_is_repeated_with_newest_positions_and_epoch(self) -> None:
        """KAFKA-16033."""
        harness = CommitterHarness()
        harness.consume(A, 10)
        harness.ask(None, CommitKind.REVOCATION)
        harness.answer((A, STALE))
        harness.consume(A, 12)
        harness.consume(B, 4)
        harness.feed(EpochNoted(6), after=100)
        assert harness.sends == [{A: 12, B: 4}]
        assert harness.sent.member_epoch == 6

    @pytest.mark.parametrize("refusal", [UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID])
    def test_a_deleted_topic_does_not_block(self, refusal: CommitRefusal) -> None:
        """KAFKA-16224."""
        harness = CommitterHarness()
        harness.consume(A, 10)
        harness.consume(B, 20)
        harness.ask(None, CommitKind.REVOCATION)
        harness.answer((A, refusal))
        assert set(harness.done.committed) == {B}
        assert set(harness.done.failed) == {A}

    @pytest.mark.parametrize("refusal", [LOADING, MOVED])
    def test_a_busy_coordinator_is_asked_again(self, refusal: CommitRefusal) -> None:
        harness = CommitterHarness()
        harness.consume(A, 10)
        harness.ask(None, CommitKind.REVOCATION, within=500)
        harness.answer((A, refusal))
        harness.advance(100)
        assert harness.sends == [{A: 10}]
        harness.advance(400)
        assert isinstance(harness.done.failed[A], RequestTimedOut)

    def test_a_lost_membership_ends_it(self) -> None:
        harness = CommitterHarness()
        harness.consume(A, 10)
        harness.ask(None, CommitKind.REVOCATION)
        harness.answer((A, LOADING))
        harness.feed(EpochNoted(None))
        assert names(harness.done) == {A: "NotAssigned"}


class TestProtocol:
    def test_a_ticket_in_use_is_refused(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 1})
        before = (harness.core.open_tickets, harness.core.deadline_ms)
        with pytest.raises(LocalProtocolError, match="ticket 1"):
            harness.core.step(harness.now, CommitAsked(1, CommitKind.MANUAL, {}, harness.now + 1))
        assert (harness.core.open_tickets, harness.core.deadline_ms) == before

    @pytest.mark.parametrize("number", [0, -1, 2, 99])
    def test_an_answer_to_nothing_is_refused(self, number: int) -> None:
        harness = CommitterHarness()
        harness.ask({A: 1})
        for event in (
            CommitAnswered(number, {}),
            CommitLost(number, "x"),
            CommitImpossible(number, NotAssigned("x")),
        ):
            with pytest.raises(LocalProtocolError, match="never made"):
                harness.core.step(harness.now, event)
        assert harness.core.open_tickets == 1

    def test_a_second_answer_is_ignored_and_counted(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 1})
        harness.answer()
        for event in (
            CommitAnswered(1, {A: None}),
            CommitLost(1, "x"),
            CommitImpossible(1, NotAssigned("x")),
        ):
            assert harness.feed(event) == ()
        assert harness.core.stale_answers == 3

    def test_an_impossible_attempt_of_an_ended_ticket_is_no_news(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 1}, within=10)
        harness.advance(10)
        assert harness.feed(CommitImpossible(1, NotAssigned("x"))) == ()

    def test_what_is_no_event_is_refused(self) -> None:
        harness = CommitterHarness()
        with pytest.raises(LocalProtocolError, match="not an event"):
            harness.core.step(harness.now, CommitEvent())

    def test_a_ticket_may_be_used_again_when_it_is_done(self) -> None:
        harness = CommitterHarness()
        harness.ask({A: 1})
        harness.answer()
        harness.feed(CommitAsked(1, CommitKind.MANUAL, {A: CommittableOffset(2)}, harness.now + 10))
        assert harness.sends == [{A: 2}]

    def test_a_wild_jitter_is_tamed(self) -> None:
        """KAFKA-19813."""
        core = CommitterCore(CommitterSettings(None), OffsetTracker(), lambda _: 10**9)
        core.step(0, CommitAsked(1, CommitKind.MANUAL, {A: CommittableOffset(1)}, 60_000))
        core.step(0, CommitLost(1, "x"))
        assert core.deadline_ms == 120
        assert core.member_epoch is None

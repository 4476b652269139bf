"""Positions: delivered, confirmed, committed."""

from __future__ import annotations

from kip848_client.core.offsets import CommittableOffset, OffsetTracker
from kip848_client.core.types import TopicPartition

A = TopicPartition("a", 0)
B = TopicPartition("b", 0)


def tracking(*partitions: TopicPartition) -> OffsetTracker:
    tracker = OffsetTracker()
    tracker.assign(partitions)
    return tracker


class TestDelivery:
    def test_nothing_is_known_of_a_new_partition(self) -> None:
        tracker = tracking(A)
        assert tracker.owns(A)
        assert tracker.position(A) is None
        assert tracker.snapshot() == {}
        assert tracker.dirty() == {}

    def test_delivered_is_not_confirmed(self) -> None:
        """KAFKA-18641: an automatic commit never runs ahead of the application."""
        tracker = tracking(A)
        tracker.seek(A, 10, committed=10)
        assert tracker.delivered(A, 15, leader_epoch=3)
        assert tracker.position(A) == 15
        assert tracker.pending() == (A,)
        assert tracker.dirty() == {}
        assert tracker.snapshot() == {A: CommittableOffset(15, 3)}
        tracker.confirm()
        assert tracker.pending() == ()
        assert tracker.dirty() == {A: CommittableOffset(15, 3)}

    def test_records_of_a_released_partition_may_not_be_handed_out(self) -> None:
        tracker = tracking(A)
        tracker.forget([A])
        assert not tracker.delivered(A, 5)
        assert tracker.snapshot() == {}

    def test_forgetting_drops_what_was_pending(self) -> None:
        tracker = tracking(A, B)
        tracker.delivered(A, 5)
        tracker.delivered(B, 6)
        tracker.forget([A])
        tracker.confirm()
        assert tracker.dirty() == {B: CommittableOffset(6)}
        assert tracker.partitions() == (B,)

    def test_forgetting_what_is_not_tracked_is_nothing(self) -> None:
        tracking(A).forget([B])


class TestSeek:
    def test_a_position_of_a_reset_is_dirty(self) -> None:
        """Else a restart under `latest` would skip what came meanwhile; as in Java."""
        tracker = tracking(A)
        tracker.seek(A, 42)
        assert tracker.dirty() == {A: CommittableOffset(42)}

    def test_a_position_that_was_committed_is_clean(self) -> None:
        tracker = tracking(A)
        tracker.seek(A, 42, committed=42)
        assert tracker.dirty() == {}
        assert tracker.last_committed(A) == 42

    def test_a_seek_overrides_what_was_delivered(self) -> None:
        tracker = tracking(A)
        tracker.delivered(A, 50)
        tracker.seek(A, 7)
        tracker.confirm()
        assert tracker.snapshot() == {A: CommittableOffset(7)}

    def test_a_seek_back_is_dirty_again(self) -> None:
        tracker = tracking(A)
        tracker.seek(A, 42, committed=42)
        tracker.seek(A, 3)
        assert tracker.dirty() == {A: CommittableOffset(3)}

    def test_what_is_not_tracked_cannot_be_sought(self) -> None:
        tracker = tracking(A)
        tracker.seek(B, 3)
        assert not tracker.owns(B)
        assert tracker.position(B) is None
        assert tracker.last_committed(B) is None


class TestTenure:
    def test_each_assignment_has_its_own(self) -> None:
        tracker = tracking(A)
        first = tracker.generation(A)
        tracker.assign([A])
        assert tracker.generation(A) == first, "a partition that stays is left alone"
        tracker.forget([A])
        assert tracker.generation(A) == 0
        tracker.assign([A])
        assert tracker.generation(A) not in (0, first)

    def test_a_late_result_of_a_former_generation_changes_nothing(self) -> None:
        tracker = tracking(A)
        first = tracker.generation(A)
        tracker.forget([A])
        tracker.committed(A, 99, first)
        tracker.assign([A])
        tracker.committed(A, 99, first)
        assert tracker.last_committed(A) is None
        tracker.committed(A, 5, tracker.generation(A))
        assert tracker.last_committed(A) == 5

    def test_views_are_sorted(self) -> None:
        tracker = tracking(B, A)
        tracker.delivered(B, 1)
        tracker.delivered(A, 1)
        assert tracker.partitions() == tracker.pending() == (A, B)
        assert list(tracker.snapshot()) == [A, B]


class TestWhatTheUserCommits:
    def test_it_is_confirmed(self) -> None:
        tracker = tracking(A)
        tracker.seek(A, 10, committed=10)
        tracker.delivered(A, 15)
        tracker.processed(tracker.snapshot())
        assert tracker.dirty() == {A: CommittableOffset(15)}
        assert tracker.pending() == ()

    def test_a_part_of_it_is_confirmed_in_part(self) -> None:
        tracker = tracking(A)
        tracker.seek(A, 10, committed=10)
        tracker.delivered(A, 15)
        tracker.processed({A: CommittableOffset(12)})
        assert tracker.dirty() == {A: CommittableOffset(12)}
        assert tracker.pending() == (A,)
        tracker.confirm()
        assert tracker.dirty() == {A: CommittableOffset(15)}

    def test_a_lower_or_a_later_offset_confirms_nothing(self) -> None:
        """The user may commit anything; only what it was handed can have been processed."""
        tracker = tracking(A)
        tracker.seek(A, 10, committed=10)
        tracker.delivered(A, 15)
        tracker.processed({A: CommittableOffset(3), B: CommittableOffset(1)})
        tracker.processed({A: CommittableOffset(99)})
        assert tracker.dirty() == {}


class TestWhatTheGroupTakes:
    def test_records_that_were_not_committed_are_lost_until_that_is_told(self) -> None:
        tracker = tracking(A, B)
        for tp in (A, B):
            tracker.seek(tp, 10, committed=10)
        tracker.delivered(A, 15)
        tracker.lose([A, B])
        tracker.forget([A, B])
        assert tracker.lost() == {A: CommittableOffset(15)}
        assert tracker.was_ours(A)
        assert tracker.was_ours(B)
        tracker.loss_reported([A])
        assert tracker.lost() == {}

    def test_what_was_committed_is_not_lost(self) -> None:
        tracker = tracking(A)
        tracker.delivered(A, 15)
        tracker.committed(A, 15, tracker.generation(A))
        tracker.lose([A])
        assert tracker.lost() == {}

    def test_a_position_that_nobody_got_records_before_is_not_lost(self) -> None:
        tracker = tracking(A)
        tracker.delivered(A, 15)
        tracker.seek(A, 40)
        tracker.lose([A])
        assert tracker.lost() == {}

    def test_it_stays_lost_when_the_partition_comes_back(self) -> None:
        """The application still believes that it can commit what it got before."""
        tracker = tracking(A)
        tracker.delivered(A, 15)
        tracker.lose([A])
        tracker.forget([A])
        tracker.assign([A])
        assert tracker.lost() == {A: CommittableOffset(15)}
        assert not tracker.was_ours(A)

    def test_what_the_application_gives_up_is_not_lost(self) -> None:
        tracker = tracking(A)
        tracker.delivered(A, 15)
        tracker.waive()
        tracker.delivered(A, 16)
        tracker.lose([A])
        tracker.forget([A])
        assert tracker.lost() == {}
        assert not tracker.was_ours(A)
        tracker.assign([A])
        tracker.delivered(A, 3)
        tracker.lose([A])
        assert tracker.lost() == {A: CommittableOffset(3)}

    def test_what_was_lost_before_the_application_gave_all_up_is_not_told(self) -> None:
        tracker = OffsetTracker()
        tracker.assign([A])
        tracker.delivered(A, 5)
        tracker.lose([A])
        tracker.forget([A])
        tracker.waive()
        assert tracker.lost() == {}
        assert not tracker.was_ours(A)

    def test_after_a_seek_away_and_back_what_is_committed_is_still_known(self) -> None:
        tracker = OffsetTracker()
        tracker.assign([A])
        tracker.seek(A, 5, committed=5)
        tracker.seek(A, 9)
        tracker.seek(A, 5)
        assert tracker.dirty() == {}

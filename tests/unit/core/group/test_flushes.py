"""What is committed before partitions are given up, and how long that may take."""

from __future__ import annotations

import pytest

from kip848_client.core.group import AwaitApplication, CallListener, FlushAsked, FlushDone
from kip848_client.core.member import SendHeartbeat
from kip848_client.core.offsets import (
    CommitAnswered,
    CommitLost,
    CommitRefusal,
    CommittableOffset,
    SendCommit,
)
from kip848_client.error_codes import ErrorCode
from tests.unit.core.group._harness import GroupHarness, tps


def committed(harness: GroupHarness) -> list[dict[int, int]]:
    return [
        {tp.partition: each.offset for tp, each in sent.offsets.items()}
        for sent in harness.out(SendCommit)
    ]


def test_all_that_is_done_is_committed_before_a_part_goes() -> None:
    harness = GroupHarness().joined(0, 1)
    harness.hand_out(0, 3)
    harness.hand_out(1, 7)
    harness.target(2, 0)
    assert harness.out(SendCommit) == []
    harness.came_back()
    assert committed(harness) == [{0: 3, 1: 7}]
    harness.stored()
    assert [each.partitions for each in harness.out(AwaitApplication)] == [tps(1)]


def test_a_revocation_of_everything_commits_too() -> None:
    harness = GroupHarness().joined(0, 1)
    harness.hand_out(0, 3)
    harness.target(2)
    harness.came_back()
    assert committed(harness) == [{0: 3}]
    assert not harness.out(CallListener)
    harness.stored()
    harness.came_back()
    assert len(harness.out(CallListener)) == 1


def test_records_in_hand_are_waited_for_and_counted_when_they_are_done() -> None:
    harness = GroupHarness().joined(0)
    harness.hand_out(0, 3)
    harness.hand_out(0, 5, done=False)
    harness.target(2)
    assert harness.out(SendCommit) == []
    harness.came_back()
    assert committed(harness) == [{0: 5}]


@pytest.mark.parametrize("final", [True, False])
def test_a_leave_commits_what_is_done_when_the_application_does_not_come_back(
    final: bool,
) -> None:
    harness = GroupHarness().joined(0)
    harness.hand_out(0, 3)
    harness.hand_out(0, 5, done=False)
    harness.leave(final=final, within_ms=10_000)
    harness.advance(8_999)
    assert not any(isinstance(each, SendCommit) for each in harness.last)
    harness.advance(1)
    assert committed(harness) == [{0: 3}]


def late(harness: GroupHarness) -> None:
    """A flush that has given up waiting for the record from 3 to 5, and has committed the rest."""
    harness.joined(0)
    harness.hand_out(0, 3)
    harness.hand_out(0, 5, done=False)
    harness.leave(final=False, within_ms=10_000)
    harness.advance(9_000)
    assert committed(harness) == [{0: 3}]


def test_a_record_that_is_done_after_a_flush_gave_up_waiting_is_committed_after_all() -> None:
    """Or it would come again, though its processing ended before the partition went."""
    harness = GroupHarness()
    late(harness)
    harness.stored()
    harness.advance(500)
    harness.came_back()
    assert committed(harness) == [{0: 5}]
    harness.stored()
    harness.came_back()
    assert len(harness.out(CallListener)) == 1


def test_a_record_that_is_done_while_a_flush_commits_the_rest_is_committed_next() -> None:
    harness = GroupHarness()
    late(harness)
    harness.came_back()
    assert committed(harness) == []
    harness.stored()
    assert committed(harness) == [{0: 5}]


@pytest.mark.parametrize("answered", [True, False])
def test_a_flush_that_waits_on_ends_at_its_deadline(answered: bool) -> None:
    harness = GroupHarness()
    late(harness)
    if answered:
        harness.stored()
        assert not harness.out(AwaitApplication), "what it has of the record is waited for"
    harness.advance(1_000)
    assert harness.newest_of(SendHeartbeat).intent.member_epoch == -1


def test_an_unsubscribe_commits_before_it_leaves() -> None:
    harness = GroupHarness().joined(0)
    harness.hand_out(0, 3)
    harness.leave(final=False)
    harness.came_back()
    assert committed(harness) == [{0: 3}]
    harness.stored()
    harness.came_back()
    harness.returned()
    assert harness.newest_of(SendHeartbeat).intent.member_epoch == -1


def test_a_close_does_not_wait_to_its_end_for_a_coordinator_that_is_not_there() -> None:
    """KAFKA-19357."""
    harness = GroupHarness().joined(0)
    harness.hand_out(0, 3)
    harness.leave(final=True, within_ms=60_000)
    harness.came_back()
    harness.lookups_are_answered = False
    harness.feed(CommitLost(harness.newest_of(SendCommit).attempt, "cable cut"))
    waits = len(harness.all(AwaitApplication))
    harness.lose_commits(4_900)
    assert len(harness.all(AwaitApplication)) == waits
    harness.lose_commits(100)
    assert len(harness.all(AwaitApplication)) == waits + 1, "the listener is next"


def test_a_close_gives_a_coordinator_that_is_there_all_of_its_time() -> None:
    harness = GroupHarness().joined(0)
    harness.hand_out(0, 3)
    harness.leave(final=True, within_ms=60_000)
    harness.came_back()
    waits = len(harness.all(AwaitApplication))
    loading = CommitRefusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "LOADING")
    for _ in range(8):
        sent = harness.newest_of(SendCommit)
        harness.feed(CommitAnswered(sent.attempt, dict.fromkeys(sent.offsets, loading)))
        harness.advance(1_000)
    assert len(harness.all(AwaitApplication)) == waits
    harness.stored()
    assert len(harness.all(AwaitApplication)) == waits + 1


def test_a_close_by_hand_is_told_when_it_is_over() -> None:
    harness = GroupHarness()
    harness.assigned(0)
    harness.hand_out(0, 4)
    harness.feed(FlushAsked(9, harness.now + 20_000))
    (sent,) = harness.out(SendCommit)
    assert dict(sent.offsets) == {tps(0)[0]: CommittableOffset(4)}
    assert sent.member_epoch is None
    harness.stored()
    assert harness.out(FlushDone) == [FlushDone(9)]


def test_nothing_to_commit_is_over_at_once() -> None:
    harness = GroupHarness()
    harness.feed(FlushAsked(9, harness.now + 20_000))
    assert harness.out(FlushDone) == [FlushDone(9)]

"""The user commits and the interval commits: the second must not undo the first."""

from __future__ import annotations

from kip848_client.core.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitDone,
    CommitKind,
    CommitLost,
    CommittableOffset,
    CommitterCore,
    CommitterSettings,
    CommitTimer,
    EpochNoted,
    OffsetTracker,
    SendCommit,
)
from kip848_client.core.types import TopicPartition

A = TopicPartition("a", 0)


def sent(commands: tuple[object, ...]) -> list[SendCommit]:
    return [command for command in commands if isinstance(command, SendCommit)]


def test_an_automatic_commit_does_not_fall_behind_the_users() -> None:
    """Found by the simulation: 9 records were handed out, 7 of them followed by a poll. The user
    committed 9, the interval committed 7, and two records came again after the next rebalance."""
    tracker = OffsetTracker()
    core = CommitterCore(CommitterSettings(auto_commit_interval_ms=5_000), tracker, lambda ms: ms)
    core.step(0, EpochNoted(1))
    tracker.assign([A])
    tracker.seek(A, 0, committed=0)
    tracker.delivered(A, 7)
    tracker.confirm()
    tracker.delivered(A, 9)
    asked = core.step(1, CommitAsked(1, CommitKind.MANUAL, tracker.snapshot(), 60_000))
    assert sent(asked)[0].offsets == {A: CommittableOffset(9)}
    during = core.step(5_000, CommitTimer())
    assert sent(during) == []
    after = core.step(5_001, CommitAnswered(1, {A: None}))
    assert all(commit.offsets[A].offset >= 9 for commit in sent(after))


def test_the_retry_of_an_older_commit_repeats_a_younger_one_that_may_be_stored() -> None:
    """Found by the simulation: the commits of 7 and of 9 were both stored and both answers lost.
    The retry of the first stored 7 again."""
    tracker = OffsetTracker()
    core = CommitterCore(CommitterSettings(auto_commit_interval_ms=None), tracker, lambda ms: ms)
    core.step(0, EpochNoted(1))
    tracker.assign([A])
    core.step(1, CommitAsked(1, CommitKind.MANUAL, {A: CommittableOffset(7)}, 60_000))
    core.step(2, CommitAsked(2, CommitKind.MANUAL, {A: CommittableOffset(9)}, 60_000))
    second = sent(core.step(3, CommitLost(1, "disconnected")))
    assert [commit.offsets for commit in second] == [{A: CommittableOffset(9)}]
    core.step(4, CommitLost(2, "disconnected"))
    retry = sent(core.step(1_000, CommitTimer()))
    assert [commit.offsets for commit in retry] == [{A: CommittableOffset(9)}]
    done = core.step(1_001, CommitAnswered(3, {A: None}))
    ended = [command for command in done if isinstance(command, CommitDone)]
    assert [(d.ticket, d.committed) for d in ended] == [(1, {A: CommittableOffset(9)})]
    assert [commit.offsets for commit in sent(done)] in ([], [{A: CommittableOffset(9)}])


def test_a_wish_that_reads_positions_anew_is_as_young_as_its_reading() -> None:
    """Found by the simulation: a commit before a revocation met a moved coordinator, waited, and
    then stored 9; the user's commit of 7, asked for meanwhile, was sent after it."""
    tracker = OffsetTracker()
    core = CommitterCore(CommitterSettings(auto_commit_interval_ms=None), tracker, lambda ms: ms)
    core.step(0, EpochNoted(1))
    tracker.assign([A])
    tracker.seek(A, 5, committed=0)
    core.step(1, CommitAsked(1, CommitKind.REVOCATION, None, 60_000))
    core.step(2, CommitAsked(2, CommitKind.MANUAL, {A: CommittableOffset(7)}, 60_000))
    core.step(3, CommitLost(1, "disconnected"))
    core.step(4, CommitLost(2, "disconnected"))
    tracker.seek(A, 9, committed=0)
    assert sent(core.step(104, CommitTimer()))[0].offsets == {A: CommittableOffset(9)}
    after = core.step(105, CommitAnswered(3, {A: None}))
    assert all(commit.offsets[A].offset >= 9 for commit in sent(after))
    later = core.step(1_000, CommitTimer())
    assert all(commit.offsets[A].offset >= 9 for commit in sent(later))

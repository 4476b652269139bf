"""What member, committer and driver tell each other through the group core."""

from __future__ import annotations

import pytest

from kip848_client.core.group import (
    AutomaticCommitFailed,
    AutomaticCommitsRecovered,
    GroupEvent,
    PollWanted,
)
from kip848_client.core.member import (
    CoordinatorFound,
    FindCoordinator,
    ForgetCoordinator,
    LeaveMode,
    LeaveRequested,
    Polled,
    SendHeartbeat,
    Subscribed,
)
from kip848_client.core.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitDone,
    CommitKind,
    CommitLost,
    CommitRefusal,
    CommittableOffset,
    SendCommit,
)
from kip848_client.core.types import TopicId
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import LocalProtocolError
from tests.unit.core.group._harness import GroupHarness, T, tps

(TP,) = tps(0)
NEW = TopicId(b"n" * 16)


def commit(harness: GroupHarness, offset: int, ticket: int = 1) -> None:
    wanted = {TP: CommittableOffset(offset)}
    deadline_ms = harness.now + 60_000
    harness.feed(CommitAsked(ticket, CommitKind.MANUAL, wanted, deadline_ms))


def test_a_commit_carries_the_newest_epoch() -> None:
    harness = GroupHarness(auto_commit=False).joined(0, epoch=7)
    commit(harness, 5)
    (sent,) = harness.out(SendCommit)
    assert sent.member_epoch == 7
    harness.stored()
    assert harness.out(CommitDone)[0].ticket == 1


def test_a_commit_without_a_reply_makes_the_member_look_for_its_coordinator() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    commit(harness, 5)
    harness.feed(CommitLost(harness.newest_of(SendCommit).attempt, "cable cut"))
    assert harness.out(ForgetCoordinator) == [ForgetCoordinator("cable cut")]
    assert harness.out(FindCoordinator)
    harness.advance(100)
    assert harness.out(SendCommit)


def test_many_wishes_do_not_ask_a_coordinator_that_is_away_many_times() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    for ticket in range(1, 31):
        commit(harness, ticket, ticket)
    attempts, end = 0, harness.now + 2_000
    while harness.now < end:
        for each in harness.all(SendCommit)[attempts:]:
            attempts += 1
            harness.feed(CommitLost(each.attempt, "no coordinator"))
        harness.advance(20)
    assert attempts <= 8


def test_a_topic_that_was_created_again_is_not_committed_to() -> None:
    """franz-go #1426: by name, the old topic's offset would be stored for the new one."""
    harness = GroupHarness(auto_commit=False, newest={"t": T}).joined(0)
    harness.newest["t"] = NEW
    commit(harness, 5)
    assert not harness.out(SendCommit)
    assert not harness.out(CommitDone), "metadata may be wrong for a moment: tried until its time"
    harness.advance(60_000)
    assert "UNKNOWN_TOPIC_ID" in str(harness.out(CommitDone)[0].failed[TP])


def test_a_topic_by_hand_that_was_created_again_is_not_committed_to() -> None:
    """franz-go #1426. The old offset is wrong also when the new topic is being read, later on."""
    harness = GroupHarness(auto_commit=False, newest={"t": T})
    harness.read[TP] = T
    harness.tracker.assign([TP])
    harness.newest["t"] = NEW
    commit(harness, 5)
    assert not harness.out(SendCommit)
    harness.read[TP] = NEW
    harness.advance(60_000)
    assert not harness.all(SendCommit)
    assert "UNKNOWN_TOPIC_ID" in str(harness.all(CommitDone)[0].failed[TP])
    commit(harness, 1, ticket=2)
    (sent,) = harness.out(SendCommit)
    assert sent.offsets[TP].offset == 1


def test_a_wish_that_is_refused_leaves_nothing_behind() -> None:
    harness = GroupHarness(auto_commit=False, newest={"t": T})
    harness.read[TP] = T
    harness.tracker.assign([TP])
    commit(harness, 5)
    harness.read[TP] = harness.newest["t"] = NEW
    with pytest.raises(LocalProtocolError):
        commit(harness, 6)
    harness.stored()
    commit(harness, 7)
    assert harness.newest_of(SendCommit).offsets[TP].offset == 7


def test_what_is_set_aside_does_not_keep_the_rest_from_being_stored() -> None:
    other = tps(0)[0]._replace(topic="u")
    harness = GroupHarness(auto_commit=False, newest={"t": NEW, "u": NEW}).joined(0)
    harness.tracker.assign([other])
    wanted = {TP: CommittableOffset(5), other: CommittableOffset(6)}
    harness.feed(CommitAsked(1, CommitKind.REVOCATION, wanted, harness.now + 1_000))
    (sent,) = harness.out(SendCommit)
    assert list(sent.offsets) == [other]
    harness.stored()
    (done,) = harness.out(CommitDone)
    assert (list(done.committed), list(done.failed)) == ([other], [TP])


@pytest.mark.parametrize(
    ("code", "passing"),
    [(ErrorCode.STALE_MEMBER_EPOCH, True), (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False)],
)
def test_an_automatic_commit_that_failed_is_told(code: ErrorCode, passing: bool) -> None:
    """A heartbeat's answer may overtake the commit in any rebalance: the epoch is then stale."""
    harness = GroupHarness(interval_ms=1_000).joined(0)
    harness.hand_out(0, 5)
    harness.advance(1_000)
    refusal = CommitRefusal(code, code.name)
    harness.feed(CommitAnswered(harness.newest_of(SendCommit).attempt, {TP: refusal}))
    (told,) = harness.out(AutomaticCommitFailed)
    assert (told.partitions, told.passing) == ((TP,), passing)


def test_an_automatic_commit_that_failed_is_told_once_for_all_of_its_partitions() -> None:
    harness = GroupHarness(interval_ms=1_000).joined(*range(5))
    for number in range(5):
        harness.hand_out(number, 5)
    harness.advance(1_000)
    sent = harness.newest_of(SendCommit)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rows = {tp: CommitRefusal(denied, denied.name) for tp in sent.offsets}
    harness.feed(CommitAnswered(sent.attempt, rows))
    (told,) = harness.out(AutomaticCommitFailed)
    assert told.partitions == tuple(sorted(sent.offsets))
    assert len(told.partitions) == 5


def test_automatic_commits_that_fail_alike_are_told_once_a_minute_and_when_it_is_over() -> None:
    harness = GroupHarness(interval_ms=1_000).joined(0)
    harness.hand_out(0, 5)
    told: list[int] = []
    began_ms = harness.now
    for _ in range(100):
        harness.advance(1_000)
        attempt = harness.newest_of(SendCommit).attempt
        harness.feed(CommitLost(attempt, f"attempt {attempt} was not answered"))
        told += [harness.now - began_ms for _ in harness.out(AutomaticCommitFailed)]
    assert told[0] <= 2_000
    assert len(told) == 2
    assert told[1] >= told[0] + 60_000
    harness.advance(10_000)
    harness.stored()
    (over,) = harness.out(AutomaticCommitsRecovered)
    assert over.failing_ms > 100_000
    harness.hand_out(0, 7)
    harness.advance(1_000)
    harness.stored()
    assert not harness.out(AutomaticCommitsRecovered)


def test_automatic_commits_that_fail_otherwise_are_told_at_once() -> None:
    harness = GroupHarness(interval_ms=1_000).joined(0)
    harness.hand_out(0, 5)
    harness.advance(1_000)
    harness.feed(CommitLost(harness.newest_of(SendCommit).attempt, "not answered"))
    assert len(harness.out(AutomaticCommitFailed)) == 1
    harness.advance(1_000)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rows = {TP: CommitRefusal(denied, denied.name)}
    harness.feed(CommitAnswered(harness.newest_of(SendCommit).attempt, rows))
    assert len(harness.out(AutomaticCommitFailed)) == 1


def test_an_automatic_commit_of_what_was_revoked_is_told_once() -> None:
    harness = GroupHarness(interval_ms=1_000).joined(*range(5))
    for number in range(5):
        harness.hand_out(number, 5)
    harness.advance(1_000)
    sent = harness.newest_of(SendCommit)
    harness.tracker.forget(sent.offsets)
    stale = ErrorCode.STALE_MEMBER_EPOCH
    rows = {tp: CommitRefusal(stale, stale.name) for tp in sent.offsets}
    harness.feed(CommitAnswered(sent.attempt, rows))
    (told,) = harness.out(AutomaticCommitFailed)
    assert len(told.partitions) == 5


def test_positions_that_were_assigned_by_hand_are_committed_by_interval_too() -> None:
    harness = GroupHarness(interval_ms=1_000)
    harness.assigned(0)
    harness.feed(Polled())  # any event: the interval begins with the first
    harness.hand_out(0, 5)
    harness.advance(1_000)
    assert harness.newest_of(SendCommit).member_epoch is None


def test_positions_by_hand_whose_coordinator_is_away_make_no_busy_loop() -> None:
    harness = GroupHarness(interval_ms=1_000)
    harness.assigned(0)
    harness.feed(Polled())
    harness.hand_out(0, 5)
    wakeups, lost, end = 0, 0, harness.now + 100_000
    while harness.now < end:
        deadline_ms = harness.core.deadline_ms
        assert deadline_ms is not None
        harness.advance(deadline_ms - harness.now)
        wakeups += 1
        for each in harness.all(SendCommit)[lost:]:
            lost += 1
            harness.feed(CommitLost(each.attempt, "no coordinator"))
    assert lost
    assert wakeups <= 200


def test_a_poll_is_wanted_once_for_each_reason() -> None:
    harness = GroupHarness(auto_commit=False)
    harness.feed(Subscribed(frozenset({"t"})))
    assert harness.out(PollWanted) == [PollWanted()]
    harness.feed(Subscribed(frozenset({"t", "u"})))
    assert not harness.out(PollWanted)
    harness.feed(Polled())
    assert not harness.out(PollWanted)


def test_what_a_part_refuses_changes_nothing() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.feed(LeaveRequested(LeaveMode.DEFAULT, harness.now + 1_000, final=True))
    before = harness.core.member.snapshot()
    for event in (Subscribed(frozenset({"t"})), CoordinatorFound(99), GroupEvent()):
        with pytest.raises(LocalProtocolError):
            harness.core.step(harness.now, event)
    assert harness.core.member.snapshot() == before


def test_the_member_hears_of_a_stale_epoch_at_once() -> None:
    harness = GroupHarness(auto_commit=False).joined(0, epoch=3)
    commit(harness, 5)
    before = len(harness.all(SendHeartbeat))
    refusal = CommitRefusal(ErrorCode.STALE_MEMBER_EPOCH, "STALE_MEMBER_EPOCH")
    harness.feed(CommitAnswered(harness.newest_of(SendCommit).attempt, {TP: refusal}))
    assert len(harness.all(SendHeartbeat)) == before + 1
    harness.accept(4, 0)
    harness.advance(100)
    assert harness.newest_of(SendCommit).member_epoch == 4

"""Committed offsets: what an answer means, and when to ask again."""

from __future__ import annotations

import pytest

from kip848_client.core.group import (
    CommittedAnswered,
    CommittedAsked,
    CommittedFailed,
    CommittedFound,
    CommittedImpossible,
    CommittedLost,
    CommittedRow,
    FetchCommitted,
)
from kip848_client.core.group._error_rules import Reaction, reaction
from kip848_client.core.member import (
    ForgetCoordinator,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatRefused,
    SendHeartbeat,
)
from kip848_client.core.offsets import CommittableOffset
from kip848_client.core.types import Wait
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, RequestTimedOut
from tests.unit.core.group._harness import MEMBER, GroupHarness, tps

A, B = tps(0, 1)


def asked(*, member: bool = True, within_ms: int = 10_000) -> GroupHarness:
    """A look-up of two partitions, with its request under way."""
    harness = GroupHarness(auto_commit=False)
    if member:
        harness.joined(0, 1, epoch=3)
    harness.feed(CommittedAsked(5, (A, B), harness.now + within_ms))
    return harness


def answer(harness: GroupHarness, code: int = 0, **rows: CommittedRow) -> None:
    found = {tp: rows[name] for name, tp in (("a", A), ("b", B)) if name in rows}
    harness.feed(CommittedAnswered(harness.newest_of(FetchCommitted).attempt, code, found))


def test_nothing_committed_is_said_only_without_an_error() -> None:
    harness = asked()
    assert harness.out(FetchCommitted)[0].member_epoch == 3
    answer(harness, a=CommittedRow(-1), b=CommittedRow(9, 2, "note"))
    found = {A: None, B: CommittableOffset(9, 2, "note")}
    assert harness.out(CommittedFound) == [CommittedFound(5, found)]


def waits(harness: GroupHarness) -> dict[str, Wait]:
    """Of the look-ups; heartbeats are not answered here."""
    return {what: each for what, each in harness.core.waits.items() if "coordinator" not in what}


def test_what_a_look_up_waits_for_is_said() -> None:
    harness = asked()
    what = "the committed offsets of t-0, t-1"
    asked_ms = harness.now
    assert waits(harness) == {what: Wait("the coordinator has not answered", asked_ms)}
    answer(harness, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    (wait,) = waits(harness).values()
    assert "COORDINATOR_LOAD_IN_PROGRESS" in wait.why
    assert wait.since_ms == asked_ms
    harness.feed(CommittedAsked(6, (A,), harness.now + 10_000))
    assert list(waits(harness)) == [what, "the committed offsets of t-0"]
    answer(harness, a=CommittedRow(4))
    harness.advance(1_000)
    answer(harness, a=CommittedRow(4), b=CommittedRow(6))
    assert not waits(harness)


def test_silence_about_a_partition_is_not_nothing_committed() -> None:
    harness = asked()
    answer(harness, a=CommittedRow(4))
    assert not harness.out(CommittedFound)
    harness.advance(100)
    answer(harness, a=CommittedRow(4), b=CommittedRow(6))
    assert harness.out(CommittedFound)[0].found[B] == CommittableOffset(6)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID])
def test_partitions_that_stay_unknown_are_left_out_at_the_deadline(code: ErrorCode) -> None:
    harness = asked(within_ms=1_000)
    answer(harness, a=CommittedRow(4), b=CommittedRow(-1, error_code=code))
    assert not harness.out(CommittedFound)
    harness.advance(1_000)
    answer(harness, a=CommittedRow(4), b=CommittedRow(-1, error_code=code))
    assert harness.out(CommittedFound) == [CommittedFound(5, {A: CommittableOffset(4)})]


@pytest.mark.parametrize(
    ("code", "suspected"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
        (ErrorCode.NOT_COORDINATOR, True),
        (ErrorCode.UNSTABLE_OFFSET_COMMIT, False),
    ],
)
def test_an_error_that_passes_is_retried(code: ErrorCode, suspected: bool) -> None:
    harness = asked()
    answer(harness, code)
    assert bool(harness.out(ForgetCoordinator)) is suspected
    assert not harness.out(CommittedFailed)
    harness.advance(100)
    assert harness.newest_of(FetchCommitted).attempt != harness.all(FetchCommitted)[0].attempt
    answer(harness, a=CommittedRow(1), b=CommittedRow(2))
    assert harness.out(CommittedFound)


def test_a_stale_epoch_asks_for_a_heartbeat_and_is_retried_with_the_new_one() -> None:
    harness = asked()
    before = len(harness.all(SendHeartbeat))
    answer(harness, ErrorCode.STALE_MEMBER_EPOCH)
    (sent,) = harness.all(SendHeartbeat)[before:]
    outcome = HeartbeatAccepted(MEMBER, 4, 5_000, None)
    harness.feed(HeartbeatAnswered(sent.attempt, outcome))
    assert harness.out(FetchCommitted)[0].member_epoch == 4, "without waiting for the pause"


def test_two_that_wait_for_an_epoch_cost_one_heartbeat_and_one_request_each() -> None:
    harness = asked()
    harness.feed(CommittedAsked(6, (B,), harness.now + 10_000))
    first, second = harness.all(FetchCommitted)
    before = len(harness.all(SendHeartbeat))
    for each in (first, second):
        harness.feed(CommittedAnswered(each.attempt, ErrorCode.STALE_MEMBER_EPOCH, {}))
    (sent,) = harness.all(SendHeartbeat)[before:]
    harness.feed(HeartbeatAnswered(sent.attempt, HeartbeatAccepted(MEMBER, 4, 5_000, None)))
    again = harness.all(FetchCommitted)[2:]
    assert [(each.partitions, each.member_epoch) for each in again] == [((A, B), 4), ((B,), 4)]
    for each in again:
        harness.feed(CommittedAnswered(each.attempt, 0, dict.fromkeys((A, B), CommittedRow(7))))
    assert [each.ticket for each in harness.all(CommittedFound)] == [5, 6]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ],
)
def test_an_error_that_stays_is_raised(code: ErrorCode) -> None:
    """Who is not in the group asks without an epoch: no heartbeat brings a better answer."""
    harness = asked(member=False)
    answer(harness, code)
    (failed,) = harness.out(CommittedFailed)
    assert isinstance(failed.error, BrokerError)
    assert failed.error.code == code


@pytest.mark.parametrize("code", [*ErrorCode][2:], ids=lambda code: code.name)
def test_no_error_ever_looks_like_nothing_committed(code: ErrorCode) -> None:
    harness = asked()
    answer(harness, a=CommittedRow(1), b=CommittedRow(-1, error_code=code))
    assert not harness.out(CommittedFound)
    ends = reaction(code) is Reaction.FAIL
    assert bool(harness.out(CommittedFailed)) is ends
    harness.advance(100)
    assert len(harness.all(FetchCommitted)) == (1 if ends else 2)


def test_an_error_of_one_partition_is_an_error() -> None:
    harness = asked()
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    answer(harness, a=CommittedRow(1), b=CommittedRow(-1, error_code=code))
    assert harness.out(CommittedFailed)


def test_a_member_that_hears_that_it_is_unknown_asks_again_as_nobody() -> None:
    """Who copies exactly once goes back to what is committed when it was thrown out of the group,
    and may be the first to hear of it."""
    harness = asked()
    before = len(harness.all(SendHeartbeat))
    answer(harness, ErrorCode.UNKNOWN_MEMBER_ID)
    assert not harness.out(CommittedFailed)
    assert len(harness.all(SendHeartbeat)) == before + 1
    refused = HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID")
    harness.feed(HeartbeatAnswered(harness.newest_of(SendHeartbeat).attempt, refused))
    assert harness.newest_of(FetchCommitted).member_epoch is None
    answer(harness, a=CommittedRow(1), b=CommittedRow(2))
    found = {A: CommittableOffset(1), B: CommittableOffset(2)}
    assert harness.out(CommittedFound) == [CommittedFound(5, found)]


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH])
def test_a_member_that_was_fenced_while_it_asked_asks_again(code: ErrorCode) -> None:
    harness = asked()
    harness.fence()
    answer(harness, code)
    assert not harness.out(CommittedFailed)
    harness.advance(100)
    assert harness.newest_of(FetchCommitted).member_epoch is None
    answer(harness, a=CommittedRow(1), b=CommittedRow(2))
    assert harness.out(CommittedFound)


def test_the_deadline_names_the_last_trouble() -> None:
    harness = asked(within_ms=0)
    harness.feed(CommittedLost(harness.newest_of(FetchCommitted).attempt, "cable cut"))
    (failed,) = harness.out(CommittedFailed)
    assert isinstance(failed.error, RequestTimedOut)
    assert "cable cut" in str(failed.error)
    assert harness.out(ForgetCoordinator)


def test_what_no_retry_cures_is_raised() -> None:
    harness = asked()
    error = BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED")
    harness.feed(CommittedImpossible(harness.newest_of(FetchCommitted).attempt, error))
    assert harness.out(CommittedFailed) == [CommittedFailed(5, error)]


def test_an_answer_to_a_question_that_is_closed_is_ignored() -> None:
    harness = asked()
    answer(harness, a=CommittedRow(1), b=CommittedRow(2))
    answer(harness, a=CommittedRow(1), b=CommittedRow(2))
    assert harness.last == ()

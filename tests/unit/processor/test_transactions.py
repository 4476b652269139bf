"""When a transaction begins and ends, what it has, and what is read again."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    CommitFailed,
    CommitInDoubt,
    CoordinatorUnavailable,
    DeliveryTimedOut,
    LocalProtocolError,
    NotAssigned,
    ProducerFenced,
    RequestTimedOut,
    TransactionAborted,
    TransactionTimedOut,
)
from kip848_client.processor.core import _commands as do
from kip848_client.processor.core import _events as ev
from kip848_client.processor.core._model import ProcessorSettings, State
from tests.unit.processor._harness import P0, P1, Harness, aborted_by, portion, refused


def test_records_outputs_and_offsets_are_one_transaction() -> None:
    h = Harness()
    poll = h.asked(do.Poll)
    assert (poll.max_records, poll.wait_ms) == (500, 1_000)
    h.polled(portion(P0, 5, 3), portion(P1, 9, 2))
    h.done(do.Begin)
    assert h.asked(do.Process) == do.Process(h.newest(do.Process).number, P0, 5, 8)
    h.processed()
    assert h.asked(do.Process).partition == P1
    h.processed()
    poll = h.asked(do.Poll)  # for more
    assert (poll.max_records, poll.wait_ms) == (495, 100)
    h.pass_time(100)
    assert h.asked(do.SendOffsets).offsets == {P0: 8, P1: 11}
    h.done(do.SendOffsets)
    h.asked(do.Commit)
    h.done(do.Commit)
    assert h.core.state is State.IDLE
    h.polled()
    h.asked(do.Poll)
    assert h.all_of(do.Rewind) == []


def test_nothing_is_begun_without_records() -> None:
    h = Harness()
    h.polled()
    h.asked(do.Poll)
    assert h.all_of(do.Begin) == []


def test_a_full_transaction_is_closed_at_once() -> None:
    h = Harness(ProcessorSettings(max_records=4))
    h.open(portion(P0, 0, 3))
    h.processed()
    assert h.asked(do.Poll).max_records == 1
    h.polled(portion(P0, 3, 1))
    h.processed()
    assert h.asked(do.SendOffsets).offsets == {P0: 4}


def test_a_slow_function_is_cut_and_the_rest_is_for_the_next_transaction() -> None:
    h = Harness()
    h.open(portion(P0, 0, 10), portion(P1, 0, 5))
    h.pass_time(99)
    assert h.last == ()
    h.pass_time(1)
    assert not h.asked(do.Cut).discard
    h.processed(2)
    assert h.asked(do.SendOffsets).offsets == {P0: 2}
    h.commit()
    # to ask is what tells the consumer that we live
    poll = h.asked(do.Poll)
    assert (poll.max_records, poll.wait_ms) == (487, 0)
    h.polled()
    h.asked(do.Begin)
    h.done(do.Begin)
    assert (h.asked(do.Process).first, h.asked(do.Process).until) == (2, 10)


def test_what_is_left_over_does_not_grow() -> None:
    h = Harness(ProcessorSettings(max_records=3))
    h.open(portion(P0, 0, 3))
    h.pass_time(100)
    for each in range(5):
        h.processed(1)
        h.commit()
        assert h.asked(do.Poll).max_records == 1
        h.polled(portion(P0, 3 + each, 1))
        h.done(do.Begin)
        h.pass_time(100)
    assert h.all_of(do.Rewind) == []


def test_records_that_come_late_are_for_the_next_transaction() -> None:
    h = Harness()
    h.open(portion(P0, 0, 1))
    h.processed()
    h.pass_time(100)
    h.asked(do.SendOffsets)
    h.polled(portion(P0, 1, 1))
    h.done(do.SendOffsets)
    h.done(do.Commit)
    h.polled()
    h.done(do.Begin)
    assert h.asked(do.Process).first == 1


# -- what harms it -------------------------------------------------------------------------------

_MEMBER = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
)


@pytest.mark.parametrize("code", _MEMBER, ids=lambda code: code.name)
def test_whatever_a_broker_says_of_the_member_its_records_are_read_again(code: ErrorCode) -> None:
    h = Harness()
    h.open(portion(P0, 5, 3), portion(P1, 7, 1))
    h.processed()
    h.pass_time(100)
    h.asked(do.Cut)
    h.processed()
    h.failed(do.SendOffsets, aborted_by(code))
    h.asked(do.Abort)
    h.done(do.Abort)
    assert h.asked(do.Rewind).offsets == {P0: 5, P1: 7}
    assert h.core.state is State.IDLE
    assert h.all_of(do.Poll)[-1] not in h.last, "after a pause"
    h.pass_time(100)
    h.asked(do.Poll)


def test_what_a_commit_has_covered_is_not_read_again() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3), portion(P1, 7, 4))
    h.processed()
    h.pass_time(100)
    h.processed(1)
    h.commit()
    h.polled()
    h.done(do.Begin)
    h.processed()
    h.pass_time(100)
    h.failed(do.SendOffsets, CommitFailed("", offsets={}, cause=NotAssigned("gone")))
    h.done(do.Abort)
    assert h.asked(do.Rewind).offsets == {P1: 8}


@pytest.mark.parametrize(
    "error",
    [
        TransactionAborted("harmed", cause=refused(ErrorCode.TRANSACTION_ABORTABLE)),
        TransactionTimedOut("timed out", cause=refused(ErrorCode.INVALID_TXN_STATE)),
        TransactionAborted("harmed", cause=RequestTimedOut("late")),
    ],
    ids=lambda error: type(error.cause).__name__ + type(error).__name__,
)
def test_a_commit_that_is_refused_leads_to_the_same(error: TransactionAborted) -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed()
    h.done(do.SendOffsets)
    h.failed(do.Commit, error)
    h.done(do.Abort)
    assert h.asked(do.Rewind).offsets == {P0: 5}


def test_pauses_grow_and_a_commit_ends_that() -> None:
    h = Harness()
    pauses = []
    for _ in range(3):
        h.open(portion(P0, 5, 1))
        h.pass_time(100)
        h.processed()
        began = h.now
        h.failed(do.SendOffsets, aborted_by(ErrorCode.STALE_MEMBER_EPOCH))
        h.done(do.Abort)
        due = h.core.deadline_ms
        assert due is not None
        pauses.append(due - began)
        h.pass_time(due - h.now)
    assert pauses == [100, 200, 400]
    h.open(portion(P0, 5, 1))
    h.pass_time(100)
    h.processed()
    h.commit()
    h.open(portion(P0, 6, 1))
    h.pass_time(100)
    h.processed()
    began = h.now
    h.failed(do.SendOffsets, aborted_by(ErrorCode.STALE_MEMBER_EPOCH))
    assert h.core.deadline_ms == began + 100


def test_a_commit_in_doubt_is_asked_again_and_nothing_is_read_meanwhile() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed()
    h.done(do.SendOffsets)
    h.failed(do.Commit, CommitInDoubt("who knows"))
    h.post(ev.Lost((P0,)))
    assert not h.all_of(do.Rewind)
    assert not h.all_of(do.Abort)
    for _ in range(5):
        h.pass_time(100)
        h.asked(do.Commit)
        h.failed(do.Commit, CommitInDoubt("who knows"))
    h.pass_time(100)
    h.done(do.Commit)
    assert h.core.state is State.IDLE
    assert h.all_of(do.Rewind) == []


def test_a_commit_in_doubt_that_was_not_done_is_rewound_then() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed()
    h.done(do.SendOffsets)
    h.failed(do.Commit, CommitInDoubt("who knows"))
    h.pass_time(100)
    h.failed(do.Commit, TransactionTimedOut("it was not"))
    h.done(do.Abort)
    assert h.asked(do.Rewind).offsets == {P0: 5}


@pytest.mark.parametrize("kind", [do.Begin, do.SendOffsets, do.Commit, do.Abort])
def test_a_producer_that_is_fenced_ends_it(
    kind: type[do.Begin | do.SendOffsets | do.Commit | do.Abort],
) -> None:
    h = Harness()
    h.polled(portion(P0, 5, 3))
    if kind is not do.Begin:
        h.done(do.Begin)
        h.pass_time(100)
        h.processed()
    if kind is do.Commit:
        h.done(do.SendOffsets)
    if kind is do.Abort:
        h.failed(do.SendOffsets, aborted_by(ErrorCode.STALE_MEMBER_EPOCH))
    error = ProducerFenced("another one")
    h.failed(kind, error)
    assert h.ended.error is error
    assert h.core.state is State.ENDED
    assert h.all_of(do.Rewind) == []


@pytest.mark.parametrize("is_gone", [True, False])
def test_outputs_whose_topic_is_not_there_are_not_tried_for_ever(*, is_gone: bool) -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed()
    gone = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) if is_gone else None
    late = DeliveryTimedOut("not in time", maybe_written=False, cause=gone)
    error = TransactionAborted("cannot be committed", cause=late)
    h.failed(do.SendOffsets, error)
    h.done(do.Abort)
    if is_gone:
        assert h.ended.error is error
    else:
        assert h.core.state is not State.ENDED


def test_a_commit_in_doubt_whose_producer_has_failed_is_raised() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed()
    h.done(do.SendOffsets)
    error = CommitInDoubt("nobody knows", cause=ProducerFenced("another one"))
    h.failed(do.Commit, error)
    assert h.ended.error is error


def test_a_coordinator_that_is_away_is_waited_for() -> None:
    h = Harness()
    h.polled(portion(P0, 5, 3))
    h.failed(do.Begin, CoordinatorUnavailable("away"))
    assert "away" in h.asked(do.Notice).text
    h.pass_time(100)
    h.asked(do.Begin)
    h.done(do.Begin)
    assert h.asked(do.Process).first == 5


def test_an_abort_that_takes_long_is_asked_for_again() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed()
    h.failed(do.SendOffsets, aborted_by(ErrorCode.STALE_MEMBER_EPOCH))
    for _ in range(5):
        h.failed(do.Abort, RequestTimedOut("it goes on"))
        assert h.all_of(do.Rewind) == []
        h.pass_time(100)
        h.asked(do.Abort)
    h.done(do.Abort)
    assert h.asked(do.Rewind).offsets == {P0: 5}


@pytest.mark.parametrize(
    "code",
    [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_RECORD],
    ids=lambda code: code.name,
)
def test_what_the_next_transaction_would_meet_again_is_raised(code: ErrorCode) -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed()
    h.done(do.SendOffsets)
    error = TransactionAborted("harmed", cause=refused(code))
    h.failed(do.Commit, error)
    h.done(do.Abort)
    assert h.ended.error is error


def test_an_error_of_the_consumer_ends_it_after_what_is_whole_is_committed() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.processed()
    error = NotAssigned("whatever")
    h.post(ev.PollFailed(h.newest(do.Poll).number, error))
    assert h.asked(do.SendOffsets).offsets == {P0: 8}
    h.done(do.SendOffsets)
    h.done(do.Commit)
    assert h.ended.error is error


def test_what_was_read_before_an_error_of_the_consumer_is_processed() -> None:
    """The transaction was closed by its time, with records in hand for the next one."""
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed(1)
    assert h.asked(do.SendOffsets).offsets == {P0: 6}
    h.commit()
    error = NotAssigned("whatever")
    h.post(ev.PollFailed(h.newest(do.Poll).number, error))
    polls = len(h.all_of(do.Poll))
    h.done(do.Begin)
    assert (h.asked(do.Process).first, h.asked(do.Process).until) == (6, 8)
    h.processed()
    assert h.asked(do.SendOffsets).offsets == {P0: 8}
    h.done(do.SendOffsets)
    h.done(do.Commit)
    assert h.ended.error is error
    assert len(h.all_of(do.Poll)) == polls


def test_what_an_abort_gives_back_after_an_error_of_the_consumer_is_not_read_again() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3), portion(P1, 5, 3))
    h.pass_time(100)
    h.processed()
    h.commit()
    error = NotAssigned("whatever")
    h.post(ev.PollFailed(h.newest(do.Poll).number, error))
    h.done(do.Begin)
    h.processed()
    h.failed(do.SendOffsets, aborted_by(ErrorCode.STALE_MEMBER_EPOCH))
    h.done(do.Abort)
    assert h.asked(do.Rewind).offsets == {P1: 5}
    assert h.ended.error is error


def test_stop_after_an_error_of_the_consumer_raises_it() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed(1)
    h.commit()
    error = NotAssigned("whatever")
    h.post(ev.PollFailed(h.newest(do.Poll).number, error))
    h.done(do.Begin)
    h.post(ev.StopRequested(h.now + 5_000))
    h.processed()
    h.done(do.SendOffsets)
    h.done(do.Commit)
    assert h.ended.error is error


# -- the end -------------------------------------------------------------------------------------


def test_stop_commits_what_is_whole() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.post(ev.StopRequested(h.now + 5_000))
    h.asked(do.Cut)
    h.processed(1)
    assert h.asked(do.SendOffsets).offsets == {P0: 6}
    h.done(do.SendOffsets)
    h.done(do.Commit)
    assert h.ended.error is None


def test_stop_waits_for_nothing_when_no_transaction_is_open() -> None:
    h = Harness()
    h.post(ev.StopRequested(h.now + 5_000))
    assert h.ended.error is None


def test_stop_before_run() -> None:
    h = Harness(run=False)
    h.post(ev.StopRequested(h.now + 5_000))
    h.post(ev.RunRequested())
    assert h.ended.error is None


def test_a_stop_that_takes_too_long_leaves_the_transaction() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.post(ev.StopRequested(h.now + 5_000))
    h.post(ev.StopRequested(h.now + 9_000))
    h.pass_time(5_000)
    assert h.ended.error is None
    assert h.all_of(do.SendOffsets) == []


def test_a_stop_in_the_middle_of_a_commit_says_that_nobody_knows() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.pass_time(100)
    h.processed()
    h.done(do.SendOffsets)
    h.post(ev.StopRequested(h.now + 5_000))
    h.pass_time(5_000)
    assert isinstance(h.ended.error, CommitInDoubt)


def test_a_second_run_is_refused_and_changes_nothing() -> None:
    h = Harness()
    with pytest.raises(LocalProtocolError):
        h.post(ev.RunRequested())
    h.polled(portion(P0, 5, 3))
    h.asked(do.Begin)


def test_late_answers_do_not_count() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    offsets = h.newest(do.Begin)
    h.post(ev.Done(offsets.number))
    h.post(ev.Polled(h.newest(do.Poll).number, (portion(P0, 8, 1),)))
    h.post(ev.Processed(99, 8, 3))
    h.post(ev.Failed(98, NotAssigned("")))
    assert h.core.stale == 4
    assert h.core.state is State.OPEN

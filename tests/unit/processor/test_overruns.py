"""Transactions that the coordinator ends before the function is through."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import CommitFailed, TransactionAborted, TransactionTimedOut
from kip848_client.processor.core import _commands as do
from kip848_client.processor.core import _events as ev
from kip848_client.processor.core._model import ProcessorSettings
from kip848_client.processor.core._overruns import ALONE_MAX
from tests.unit.processor._harness import P0, P1, Harness, aborted_by, portion, refused

_TIMED_OUT = TransactionTimedOut("ended", cause=refused(ErrorCode.INVALID_PRODUCER_EPOCH))


def overrun(h: Harness, offset: int, error: Exception = _TIMED_OUT) -> str:
    """An output of the record at ``offset`` finds the transaction ended; returns what is said."""
    h.output_refused(offset, error)
    said = h.asked(do.Notice).text
    h.done(do.Abort)
    h.pass_time(10_000)
    return said


def cut_after_one(h: Harness) -> None:
    """The function has been told to stop after the record that it got first, and does."""
    number = h.newest(do.Process).number
    assert h.newest(do.Cut) == do.Cut(number, discard=False)
    h.processed(1)


@pytest.mark.parametrize(
    "error",
    [
        _TIMED_OUT,
        TransactionAborted("no", cause=refused(ErrorCode.INVALID_PRODUCER_EPOCH)),
        TransactionAborted("no", cause=refused(ErrorCode.PRODUCER_FENCED)),
        aborted_by(ErrorCode.INVALID_TXN_STATE),
    ],
    ids=["told", "47", "90", "48"],
)
def test_the_warning_says_the_way_out(error: Exception) -> None:
    """Also where it is not known yet when the processor aborts."""
    h = Harness()
    h.open(portion(P0, 5, 4))
    said = overrun(h, 7, error)
    assert "transaction_timeout_ms" in said
    assert "a transaction of its own" in said


@pytest.mark.parametrize("code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.TRANSACTION_ABORTABLE])
def test_other_troubles_are_not_taken_for_that(code: ErrorCode) -> None:
    h = Harness()
    h.open(portion(P0, 5, 4))
    said = overrun(h, 7, aborted_by(code))
    assert "transaction_timeout_ms" not in said
    h.open(portion(P0, 5, 4))
    assert h.all_of(do.Cut) == []


def test_each_record_has_a_transaction_of_its_own_until_all_are_committed() -> None:
    """So the outputs of those before it do not wait for one that takes long."""
    h = Harness()
    h.open(portion(P0, 5, 4), portion(P1, 0, 1))
    overrun(h, 7)
    for offset in (5, 6, 7):
        h.polled(*([portion(P0, 5, 4), portion(P1, 0, 1)] if offset == 5 else ()))
        h.done(do.Begin)
        cut_after_one(h)
        assert h.asked(do.SendOffsets).offsets == {P0: offset + 1}
        h.commit()
    h.polled()
    h.done(do.Begin)
    cuts = len(h.all_of(do.Cut))
    h.processed()
    assert h.asked(do.Process).partition == P1, "together again"
    assert len(h.all_of(do.Cut)) == cuts


def test_a_time_out_that_the_commit_finds_counts_for_what_was_in_it() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.processed()
    h.polled()
    h.pass_time(100)
    h.failed(
        do.SendOffsets,
        TransactionAborted("no", cause=CommitFailed("", offsets={}, cause=_TIMED_OUT)),
    )
    h.done(do.Abort)
    h.pass_time(10_000)
    h.open(portion(P0, 5, 5))
    cut_after_one(h)
    h.done(do.SendOffsets)
    h.failed(do.Commit, _TIMED_OUT)
    h.done(do.Abort)
    h.pass_time(10_000)
    h.open(portion(P0, 5, 5))
    cut_after_one(h)
    assert h.asked(do.SendOffsets).offsets == {P0: 6}


def test_one_that_overruns_alone_ends_it() -> None:
    h = Harness()
    h.open(portion(P0, 5, 4))
    overrun(h, 7)
    for number in range(ALONE_MAX):
        h.open(portion(P0, 5, 4))
        assert h.all_of(do.Ended) == [], number
        h.output_refused(5, _TIMED_OUT)
        h.done(do.Abort)
        h.pass_time(10_000)
    error = h.ended.error
    assert isinstance(error, TransactionTimedOut)
    assert "t-0" in str(error)
    assert f"{ALONE_MAX} times in a row" in str(error)
    assert "Raise transaction_timeout_ms" in str(error)
    assert error.cause is _TIMED_OUT


def test_a_commit_between_begins_the_count_anew() -> None:
    h = Harness()
    h.open(portion(P0, 5, 4))
    overrun(h, 7)
    h.open(portion(P0, 5, 4))
    for offset in (5, 6):
        for _ in range(ALONE_MAX - 1):
            overrun(h, offset)
            h.open(portion(P0, offset, 9 - offset))
        cut_after_one(h)
        h.commit()
        h.polled()
        h.done(do.Begin)
    assert h.all_of(do.Ended) == []


def test_what_goes_to_others_is_theirs_to_repeat() -> None:
    h = Harness()
    h.open(portion(P0, 5, 4))
    overrun(h, 7)
    h.post(ev.Lost((P0,)))
    h.open(portion(P1, 0, 4))
    assert h.all_of(do.Cut) == []


def test_a_dead_letter_may_overrun_too() -> None:
    h = Harness(ProcessorSettings(dead_letters=True))
    h.open(portion(P0, 5, 4))
    h.function_failed(7, ValueError("poison"))
    h.failed(do.SendDeadLetters, _TIMED_OUT)
    h.done(do.Abort)
    h.pass_time(10_000)
    h.open(portion(P0, 5, 4))
    cut_after_one(h)
    assert h.asked(do.SendOffsets).offsets == {P0: 6}


def overrun_by_both() -> Harness:
    """Two records of P0 and four of P1 were in a transaction that was open for too long."""
    h = Harness()
    h.open(portion(P0, 5, 2), portion(P1, 0, 4))
    h.processed()
    overrun(h, 3)
    return h


def test_those_that_were_not_in_it_do_not_go_one_by_one() -> None:
    """What comes of another partition, or after them, before all of them have come again, may be
    thousands of records: a consumer goes on with what it has fetched of one partition."""
    h = overrun_by_both()
    for offset in range(4):
        h.polled(*([portion(P1, 0, 50)] if offset == 0 else ()))
        h.done(do.Begin)
        cut_after_one(h)
        h.commit()
    h.polled()
    h.done(do.Begin)
    cuts = len(h.all_of(do.Cut))
    assert h.newest(do.Process).first == 4
    h.processed()
    assert h.asked(do.Poll).max_records > 1, "there may be more in it"
    assert len(h.all_of(do.Cut)) == cuts


def test_those_that_were_in_it_have_nobody_before_them_in_their_transaction() -> None:
    h = overrun_by_both()
    h.open(portion(P1, 4, 3))
    h.processed()
    h.polled(portion(P0, 5, 2), portion(P1, 7, 3))
    assert h.asked(do.SendOffsets).offsets == {P1: 7}
    h.commit()
    for offset in (5, 6):
        h.polled()
        h.done(do.Begin)
        assert h.newest(do.Process).first == offset
        cut_after_one(h)
        assert h.asked(do.SendOffsets).offsets == {P0: offset + 1}, "nor after them"
        h.commit()


def test_commits_of_others_do_not_hide_one_that_overruns_alone() -> None:
    h = overrun_by_both()
    for number in range(ALONE_MAX):
        h.open(portion(P1, 4 + number, 1))
        h.processed()
        h.polled(portion(P0, 5, 2))
        h.commit()
        h.polled()
        h.done(do.Begin)
        assert h.all_of(do.Ended) == [], number
        h.output_refused(5, _TIMED_OUT)
        h.done(do.Abort)
        h.pass_time(10_000)
    assert isinstance(h.ended.error, TransactionTimedOut)

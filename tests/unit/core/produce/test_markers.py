"""Nothing is added to a transaction before the markers of the one before are written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.error_codes import ErrorCode
from tests.unit.core.produce._transactions import Harness

levels = pytest.mark.parametrize("level", [1, 2])


def ended(level: int = 2, *, commit: bool = True) -> Harness:
    """A transaction has ended, and the coordinator tells of its markers what the test says."""
    h = Harness(level).filled()
    h.describes = False
    h.commit() if commit else h.abort()
    h.answer()
    return h


def begun(level: int = 2, *, commit: bool = True, later_ms: int = 0) -> Harness:
    """The next one is begun, and has a record."""
    h = ended(level, commit=commit)
    h.advance(later_ms)
    assert h.is_done(h.begin())
    h.record()
    return h


def questions(h: Harness) -> list[do.DescribeTransaction]:
    return h.all(do.DescribeTransaction)


def is_adding(h: Harness) -> bool:
    """Whether something of the transaction has left."""
    return bool(h.batches.flying or h.open)


@levels
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_nothing_is_added_while_they_are_being_written(level: int, commit: bool) -> None:
    """A broker would make us wait for much longer."""
    h = begun(level, commit=commit)
    h.offsets()
    assert not is_adding(h)
    (question,) = questions(h)
    assert (question.node, question.transactional_id) == (1, "id")
    h.described(question, "PrepareCommit" if commit else "PrepareAbort")
    h.advance(10)
    assert not is_adding(h)
    h.described(questions(h)[-1], "CompleteCommit" if commit else "CompleteAbort")
    h.asked(do.CommitOffsets if level == 2 else do.AddOffsets)
    h.answer()
    assert bool(h.batches.flying) is (level == 2)


def test_it_is_asked_every_millisecond_at_first_and_then_less_and_less_often() -> None:
    h = begun()
    ended_ms = h.now
    asked_ms: list[int] = []
    while not is_adding(h):
        if len(asked_ms) < len(questions(h)):
            asked_ms.append(h.now - ended_ms)
            h.described(questions(h)[-1], "PrepareCommit")
        h.advance(1)
    assert h.now - ended_ms == 100, "a broker that cannot write them says so when it is written to"
    assert asked_ms == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 41, 51, 63, 78, 97]


def test_an_answer_that_takes_longer_is_followed_by_the_next_question_at_once() -> None:
    h = begun()
    h.advance(3)
    h.described(questions(h)[0], "PrepareCommit")
    assert len(questions(h)) == 2


def test_who_begins_later_does_not_ask() -> None:
    assert questions(begun(later_ms=19))
    h = begun(later_ms=20)
    assert not questions(h)
    assert h.batches.flying


def test_nobody_asks_before_another_transaction_begins() -> None:
    h = ended()
    h.advance(1_000)
    assert not questions(h)
    assert h.core.due_ms() is None


def test_the_first_transaction_has_none_before_it() -> None:
    h = Harness(2)
    h.describes = False
    h.begun().record()
    assert h.batches.flying
    assert not questions(h)


def test_a_commit_in_that_time_waits_for_what_is_to_be_sent() -> None:
    h = begun()
    ticket = h.commit()
    assert h.is_waiting(ticket)
    assert not h.open
    h.described(questions(h)[0])
    h.written()
    h.answer()
    assert h.is_done(ticket)


def test_an_abort_in_that_time_has_nothing_to_tell() -> None:
    h = begun()
    ticket = h.abort()
    assert h.is_done(ticket)
    assert not h.open
    h.advance(1_000)
    assert len(questions(h)) == 1


def test_a_transaction_after_an_empty_one_waits_for_the_same_markers() -> None:
    h = ended()
    h.begin()
    h.commit()
    h.begin()
    h.record()
    assert not is_adding(h)
    (question,) = questions(h)
    h.described(question)
    assert h.batches.flying


def test_an_answer_of_the_transaction_before_the_last_one_tells_nothing() -> None:
    h = begun()
    (first,) = questions(h)
    h.advance(100)
    h.written()
    h.commit()
    h.answer()
    h.begin()
    h.record()
    h.described(first)
    assert not is_adding(h)
    assert h.core.stale == 1
    h.described(questions(h)[1])
    assert h.batches.flying


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_after_an_error_it_is_added_at_once(code: ErrorCode) -> None:
    """It may be early. Asking for the coordinator would take longer."""
    h = begun()
    h.post(ev.TransactionDescribed(questions(h)[0].number, code, ""))
    assert h.batches.flying


def test_after_a_broken_connection_it_is_added_at_once() -> None:
    h = begun()
    h.post(ev.TransactionNotDescribed(questions(h)[0].number, for_good=False))
    assert h.batches.flying


def refused(h: Harness) -> ev.Event:
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ev.TransactionDescribed(questions(h)[0].number, code, "")


def unknown(h: Harness) -> ev.Event:
    return ev.TransactionNotDescribed(questions(h)[0].number, for_good=True)


@pytest.mark.parametrize("why", [refused, unknown])
def test_where_coordinators_do_not_tell_us_there_is_a_pause(
    why: Callable[[Harness], ev.Event],
) -> None:
    h = begun()
    h.post(why(h))
    for _ in range(3):
        assert h.ms_until(lambda: h.batches.flying) == 3
        h.written()
        h.commit()
        h.answer()
        h.begin()
        h.record()
    assert len(questions(h)) == 1

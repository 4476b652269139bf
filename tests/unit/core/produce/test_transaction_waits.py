"""Pauses, look-ups, deadlines, late answers, closing: what is waited for, and for how long."""

from __future__ import annotations

import itertools
import re

import pytest

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._error_rules import Reaction
from kip848_client.core.produce._model import NO_PRODUCER, ProducerId
from kip848_client.core.produce._transaction_states import State
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    CommitInDoubt,
    CoordinatorUnavailable,
    LocalProtocolError,
    ProducerFailed,
    RecordUnreadable,
    RequestTimedOut,
    TransactionAborted,
    TransportError,
)
from tests.unit.core.produce._transactions import GROUP, ME, Harness, tp

BUMPED = ProducerId(7, 4)
REFUSED = RecordUnreadable("no", topic="t", partition=0, offset=0)
levels = pytest.mark.parametrize("level", [0, 1, 2])


def names(h: Harness) -> list[str]:
    """What was asked of coordinators, in order."""
    kinds = (
        do.InitProducerId,
        do.AddPartitions,
        do.AddOffsets,
        do.CommitOffsets,
        do.EndTransaction,
    )
    return [type(each).__name__ for each in h.commands if isinstance(each, kinds)]


# -- coordinators, pauses, deadlines -----------------------------------------------------------


def test_an_addition_that_is_refused_is_asked_again_soon() -> None:
    h = Harness(1).begun()
    h.record()
    for pause_ms in (2, 4, 8, 16, 32, 64, 100, 100):
        h.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        h.advance(pause_ms - 1)
        assert not h.open
        h.advance(1)
        h.asked(do.AddPartitions)
    h.answer()
    h.record(1)
    h.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    h.advance(2)
    h.asked(do.AddPartitions)


def test_pauses_grow() -> None:
    h = Harness(2).filled()
    h.commit()
    pauses: list[int] = []
    for _ in range(6):
        h.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        pauses.append(h.ms_until_asked())
    assert pauses == [100, 200, 400, 800, 1_000, 1_000]


def test_a_coordinator_that_moves_is_looked_up_with_pauses_that_grow() -> None:
    h = Harness(2).filled()
    h.commit()
    h.finds = False
    times: list[int] = []
    while len(times) < 6:
        h.answer(ErrorCode.NOT_COORDINATOR)
        h.ms_until(lambda: h.lookups)
        times.append(h.now)
        h.post(ev.CoordinatorFound(h.lookups.pop().number, 1))
        h.ms_until_asked()
    between = [after - before for before, after in itertools.pairwise(times)]
    assert between == sorted(between)
    assert between[-1] == 1_000


def test_a_look_up_that_fails_is_made_again() -> None:
    h = Harness(2)
    h.finds = False
    ticket = h.start(10_000)
    for code in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE):
        h.post(ev.CoordinatorNotFound(h.lookups.pop().number, code, "nobody"))
        assert not h.lookups
        h.advance(200)
    h.post(ev.CoordinatorFound(h.lookups.pop().number, 4))
    assert h.asked(do.InitProducerId).node == 4
    h.answer()
    assert h.is_done(ticket)


def test_a_look_up_that_is_refused_for_good() -> None:
    h = Harness(2)
    h.finds = False
    ticket = h.start()
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    h.post(ev.CoordinatorNotFound(h.lookups.pop().number, code, "no"))
    error = h.error(ticket)
    assert isinstance(error, ProducerFailed)
    assert "DESCRIBE and WRITE" in str(error)
    h = Harness(2).begun()
    h.finds = False
    ticket = h.offsets()
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    h.post(ev.CoordinatorNotFound(h.lookups.pop().number, code, "no"))
    assert isinstance(h.error(ticket), TransactionAborted)
    assert h.is_in(State.ABORTABLE)
    assert h.is_done(h.abort()), "nothing was added"
    h.advance(60_000)
    assert len(h.all(do.FindCoordinator)) == 2, "nobody wants that coordinator any more"


def test_a_login_that_is_refused_is_fatal() -> None:
    h = Harness(2)
    ticket = h.start()
    h.lose(fatal=TransportError("SASL: no"))
    assert isinstance(h.error(ticket), ProducerFailed)
    assert "SASL: no" in str(h.error(ticket))


@levels
def test_every_wait_ends(level: int) -> None:
    h = Harness(level)
    h.finds = False
    start, begin = h.start(1_000), h.begin(2_000)
    h.advance(1_000)
    error = h.error(start)
    assert isinstance(error, CoordinatorUnavailable)
    assert "its coordinator is not known yet" in str(error)
    h.advance(1_000)
    assert isinstance(h.error(begin), CoordinatorUnavailable)
    h = Harness(level).begun()
    h.finds = False
    offsets = h.offsets()
    if level < 2:
        h.answer()
    h.advance(119_999)
    assert h.is_waiting(offsets)
    h.advance(1)
    assert isinstance(h.error(offsets), TransactionAborted)
    assert "delivery_timeout_ms" in str(h.error(offsets))
    h = Harness(level).filled()
    abort = h.abort(1_000)
    h.advance(1_000)
    assert isinstance(h.error(abort), RequestTimedOut)
    again = h.abort()
    h.answer()
    assert h.is_done(again)


def test_offsets_of_a_topic_that_does_not_come_are_given_up() -> None:
    h = Harness(2).begun()
    ticket = h.offsets(GROUP, 0, 1)
    asked = 0
    while h.is_waiting(ticket):
        if h.open:
            asked += 1
            assert set(h.asked(do.CommitOffsets).offsets) <= {tp(0), tp(1)}
            h.answer(p0=0, p1=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        h.advance(100)
    assert set(h.all(do.CommitOffsets)[-1].offsets) == {tp(1)}, "what is taken is not sent again"
    assert 100 < asked < 200
    assert h.now <= 1_000 + 120_000 + 1_000
    said = r"broker \d+ answered TxnOffsetCommit: UNKNOWN_TOPIC_OR_PARTITION"
    assert re.search(said, str(h.error(ticket)))


def test_a_topic_that_was_created_again_does_not_get_the_offsets_of_its_forerunner() -> None:
    """Its id does not come back, and nobody need wait for that as long as for a broker."""
    h = Harness(2).begun()
    ticket = h.offsets(GROUP, 0, 1)
    since = h.now
    while h.is_waiting(ticket):
        assert h.now < since + 10_000
        if h.open:
            h.answer(p0=0, p1=ErrorCode.UNKNOWN_TOPIC_ID)
        h.advance(100)
    error = h.error(ticket)
    assert isinstance(error, TransactionAborted)
    assert "not within 5000 ms" in str(error)
    assert "UNKNOWN_TOPIC_ID" in str(error)
    assert "created again under its name" in str(error)
    assert "t-1" in str(error)


def test_a_broker_that_has_not_heard_of_a_topic_is_asked_again() -> None:
    h = Harness(2).begun()
    ticket = h.offsets()
    for _ in range(3):
        h.answer(ErrorCode.UNKNOWN_TOPIC_ID)
        h.advance(1_000)
    h.answer()
    assert h.is_done(ticket)


def test_who_gives_up_on_offsets_does_not_stop_them() -> None:
    h = Harness(2).begun()
    ticket = h.offsets()
    h.core.wait_ended(ticket)
    h.answer()
    assert h.is_waiting(ticket)
    assert h.is_in(State.IN_TRANSACTION)


# -- late answers ------------------------------------------------------------------------------


def test_late_answers_are_ignored_and_counted() -> None:
    h = Harness(2).filled()
    h.commit()
    request = h.asked(do.EndTransaction)
    h.answer()
    assert h.core.stale == 0
    h.post(ev.TxnAnswered(request.number, ErrorCode.PRODUCER_FENCED))
    h.post(ev.TxnLost(request.number, "late", True))
    h.post(ev.CoordinatorFound(1, 9))
    assert h.core.stale == 3
    h.begin()
    h.offsets()
    h.post(ev.TxnAnswered(request.number, ErrorCode.UNKNOWN_SERVER_ERROR))
    assert h.core.stale == 4, "another request is open"
    h.answer()
    h.core.batch_failed(h.now, ME, Reaction.ABORT, REFUSED)
    assert h.core.stale == 5
    assert h.is_in(State.IN_TRANSACTION), "that was a batch of the epoch before"
    h.core.batch_failed(h.now, None, Reaction.ABORT, REFUSED)
    assert h.is_in(State.ABORTABLE), "and that was never sent"


# -- closing -----------------------------------------------------------------------------------


@levels
def test_closing_aborts_what_is_open(level: int) -> None:
    h = Harness(level).filled()
    offsets = h.offsets()
    h.core.close()
    h.settle()
    assert isinstance(h.error(offsets), TransactionAborted)
    assert not h.core.is_at_rest
    h.answer()
    assert not h.asked(do.EndTransaction).commit
    h.answer()
    assert h.core.is_at_rest
    assert isinstance(h.error(h.begin()), LocalProtocolError)


@levels
def test_that_closing_aborts_what_nobody_has_committed_is_said(level: int) -> None:
    h = Harness(level).filled()
    h.core.close()
    h.settle()
    (notice,) = h.all(do.Notice)
    assert notice.warning
    assert "'id'" in notice.text
    assert "nothing of it is committed" in notice.text


def test_of_an_empty_transaction_closing_says_nothing() -> None:
    h = Harness(2).begun()
    h.core.close()
    h.settle()
    assert not h.all(do.Notice)


def test_closing_lets_a_commit_end() -> None:
    h = Harness(2).filled()
    ticket = h.commit()
    h.core.close()
    h.settle()
    assert not h.core.is_at_rest
    h.answer()
    assert h.is_done(ticket)
    assert h.core.is_at_rest


def test_closing_aborts_a_transaction_whose_commit_failed() -> None:
    h = Harness(2).filled()
    h.record()
    ticket = h.commit()
    h.core.close()
    h.batch_refused(Reaction.ABORT, REFUSED)
    assert isinstance(h.error(ticket), TransactionAborted)
    assert not h.asked(do.EndTransaction).commit
    h.answer()
    assert h.core.is_at_rest


def test_closing_tells_those_who_wait_to_begin() -> None:
    h = Harness(2)
    start, begin = h.start(), h.begin()
    h.core.close()
    h.settle()
    assert isinstance(h.error(start), LocalProtocolError)
    assert isinstance(h.error(begin), LocalProtocolError)
    assert h.core.is_at_rest


def test_the_first_question_is_asked_as_nobody_and_once() -> None:
    h = Harness(2)
    start, begin = h.start(), h.begin()
    assert h.asked(do.InitProducerId).producer == NO_PRODUCER
    h.answer()
    assert h.is_done(start)
    assert h.is_done(begin)
    assert h.is_done(h.start())
    assert names(h) == ["InitProducerId"]


def test_only_one_of_two_who_wait_begins() -> None:
    h = Harness(2)
    first, second = h.begin(), h.begin()
    h.answer()
    assert h.is_done(first)
    assert isinstance(h.error(second), LocalProtocolError)


def test_who_waits_when_the_time_for_closing_is_over_is_told() -> None:
    h = Harness(2).filled()
    offsets, commit = h.offsets(), h.commit()
    h.core.close()
    h.core.end()
    h.settle()
    assert isinstance(h.error(offsets), TransactionAborted)
    assert isinstance(h.error(commit), TransactionAborted), "the end was never sent"
    h = Harness(2).filled()
    commit = h.commit()
    h.core.close()
    h.core.end()
    h.settle()
    assert isinstance(h.error(commit), CommitInDoubt)
    h = Harness(2).filled()
    abort = h.abort()
    h.core.close()
    h.core.end()
    h.settle()
    assert isinstance(h.error(abort), RequestTimedOut)


def test_what_was_wanted_after_the_step_is_due_at_once() -> None:
    h = Harness(1).begun()
    assert h.core.due_ms() is None
    assert not h.core.may_send(tp(5), 5)
    assert h.core.due_ms() == 0
    h.settle()
    assert h.asked(do.AddPartitions).partitions == (tp(5),)

"""Transactions that time out, are fenced, or whose commit is in doubt."""

from __future__ import annotations

import pytest

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce._error_rules import Reaction
from kip848_client.core.produce._model import ProducerId
from kip848_client.core.produce._transaction_states import State
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    CommitInDoubt,
    LocalProtocolError,
    ProducerFailed,
    ProducerFenced,
    RecordUnreadable,
    RequestTimedOut,
    TransactionAborted,
    TransactionTimedOut,
)
from tests.unit.core.produce._transactions import ME, Harness

BUMPED = ProducerId(7, 4)
BUMPED_TWICE = ProducerId(7, 5)
REFUSED = RecordUnreadable("no", topic="t", partition=0, offset=0)
levels = pytest.mark.parametrize("level", [0, 1, 2])


# -- timed out, or fenced ----------------------------------------------------------------------

STRANGERS = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
)


@levels
@pytest.mark.parametrize("code", STRANGERS)
def test_a_transaction_that_timed_out_is_survived(level: int, code: int) -> None:
    h = Harness(level).filled()
    ticket = h.commit()
    h.answer(code)
    assert h.is_waiting(ticket), "it is not known yet what happened"
    assert h.asked(do.InitProducerId).producer == ME
    again = h.commit()
    assert h.is_waiting(again)
    h.answer(who=BUMPED)
    for each in (ticket, again, h.commit()):
        error = h.error(each)
        assert isinstance(error, TransactionTimedOut)
        assert "transaction_timeout_ms" in str(error)
    ends = len(h.all(do.EndTransaction))
    assert h.is_done(h.abort())
    assert len(h.all(do.EndTransaction)) == ends, "there is nothing to end"
    assert h.is_done(h.begin())
    assert h.core.producer == BUMPED


@levels
@pytest.mark.parametrize("code", STRANGERS)
def test_a_successor_ends_this_producer(level: int, code: int) -> None:
    h = Harness(level).filled()
    ticket = h.commit()
    h.answer(code)
    h.answer(ErrorCode.PRODUCER_FENCED)
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert isinstance(h.error(ticket), ProducerFenced)
    assert isinstance(h.error(h.begin()), ProducerFenced)
    with pytest.raises(ProducerFenced):
        h.core.check_append()
    assert h.is_done(h.abort()), "so that a block shows its own error"
    assert not h.open


@levels
@pytest.mark.parametrize("code", STRANGERS)
def test_a_time_out_that_the_coordinator_has_forgotten_is_survived(level: int, code: int) -> None:
    """It raised the epoch by one for it, and does not know any more from which."""
    h = Harness(level).filled()
    ticket = h.commit()
    h.answer(code)
    assert h.asked(do.InitProducerId).producer == ME
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert h.is_waiting(ticket)
    assert h.asked(do.InitProducerId).producer == BUMPED, "nobody but we can have this epoch"
    h.lose()
    h.advance(1_000)
    assert h.asked(do.InitProducerId).producer == BUMPED
    h.answer(who=BUMPED_TWICE)
    assert isinstance(h.error(ticket), TransactionTimedOut)
    assert h.is_done(h.abort())


@levels
def test_a_forgotten_time_out_is_found_out_by_an_abort(level: int) -> None:
    h = Harness(level).filled()
    ticket = h.abort()
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert h.asked(do.InitProducerId).producer == ME
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert h.is_in(State.ABORTING)
    assert h.asked(do.InitProducerId).producer == BUMPED, "nobody but we can have this epoch"
    h.answer(who=BUMPED_TWICE)
    assert h.is_done(ticket)
    assert h.is_done(h.begin())
    assert h.core.producer == BUMPED_TWICE


@levels
def test_offsets_alone_tell_that_a_transaction_was_open(level: int) -> None:
    h = Harness(level).begun()
    offsets = h.offsets()
    if level < 2:
        h.answer()
    h.answer()
    assert h.is_done(offsets)
    h.commit()
    h.answer(ErrorCode.PRODUCER_FENCED)
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert h.asked(do.InitProducerId).producer == BUMPED


def test_a_transaction_that_may_not_have_been_open_cannot_have_timed_out() -> None:
    """Then the next epoch may be a successor's, and whoever asks with it takes the id back."""
    h = Harness(2).begun()
    h.record()
    h.batch_refused(Reaction.ASK, REFUSED)
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert h.is_in(State.FATAL)
    assert not h.open
    h = Harness(1).begun()
    h.record()
    h.asked(do.AddPartitions)
    h.answer(ErrorCode.PRODUCER_FENCED)
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert h.is_in(State.FATAL)
    assert not h.open


def test_who_has_ended_a_transaction_under_its_own_epoch_may_have_a_successor() -> None:
    h = Harness(1).filled()
    h.abort()
    h.lose()
    h.advance(1_000)
    h.answer(ErrorCode.PRODUCER_FENCED)
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert h.is_in(State.FATAL), "the abort that was lost may have been done"
    assert not h.open
    h = Harness(1).filled()
    h.record()
    h.batch_refused(Reaction.ABORT_AND_BUMP, REFUSED)
    h.abort()
    h.answer()
    assert h.is_in(State.BUMPING)
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert h.is_in(State.FATAL), "it was ended"
    assert not h.open


@levels
def test_a_batch_of_a_transaction_that_timed_out(level: int) -> None:
    h = Harness(level).filled()
    h.record(0)
    h.record(0)
    h.batch_refused(Reaction.ASK, REFUSED)
    assert not h.open, "a batch is on its way"
    ticket = h.abort()
    h.batch_refused(Reaction.ASK, REFUSED)
    assert h.asked(do.InitProducerId).producer == ME
    h.answer(who=BUMPED)
    assert h.is_done(ticket)
    assert not h.all(do.EndTransaction)
    assert h.is_in(State.READY)


@levels
def test_asking_does_not_wait_for_the_application(level: int) -> None:
    h = Harness(level).filled()
    h.record(0)
    h.batch_refused(Reaction.ASK, REFUSED)
    h.answer(who=BUMPED)
    assert h.is_in(State.ABORTABLE)
    with pytest.raises(TransactionTimedOut):
        h.core.check_append()
    assert h.is_done(h.abort())
    assert h.is_done(h.begin())


def test_another_harm_does_not_end_the_question() -> None:
    """The coordinator is asked when nothing is on its way, and by then something else failed."""
    h = Harness(2).begun()
    for partition in (0, 1):
        h.record(partition)
        h.written()
    h.record(0)
    h.record(1)
    h.batch_refused(Reaction.ASK, REFUSED)
    assert not h.open
    h.batch_refused(Reaction.ABORT, REFUSED)
    assert h.asked(do.InitProducerId).producer == ME


def test_another_harm_does_not_spare_the_epoch() -> None:
    h = Harness(1).filled()
    h.record(1)
    h.asked(do.AddPartitions)
    h.answer(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    h.core.batch_failed(h.now, None, Reaction.ABORT, REFUSED)
    ticket = h.abort()
    h.answer()
    assert h.is_done(ticket)
    assert h.asked(do.InitProducerId).producer == ME


def test_a_time_out_is_not_the_reason_where_something_failed_before() -> None:
    h = Harness(2).filled()
    h.record(0)
    h.record(0)
    h.batch_refused(Reaction.ABORT, REFUSED)
    h.batch_refused(Reaction.ASK, RequestTimedOut("later"))
    h.answer(who=BUMPED)
    error = h.error(h.commit())
    assert type(error) is TransactionAborted
    assert error.cause is REFUSED
    assert h.is_done(h.abort())


def test_a_coordinator_that_cannot_end_it_is_asked_for_another_epoch() -> None:
    h = Harness(2).filled()
    ticket = h.abort()
    h.answer(ErrorCode.INVALID_TXN_STATE)
    h.asked(do.InitProducerId)
    h.lose()
    h.advance(200)
    assert h.asked(do.InitProducerId).producer == ME, "the same question (KIP-360)"
    h.answer(who=BUMPED)
    assert h.is_done(ticket)


# -- in doubt ----------------------------------------------------------------------------------


@levels
def test_a_commit_in_doubt_can_be_asked_for_again(level: int) -> None:
    h = Harness(level).filled()
    ticket = h.commit(5_000)
    h.lose()
    h.advance(5_000)
    error = h.error(ticket)
    assert isinstance(error, CommitInDoubt)
    assert "commit_transaction() again" in str(error)
    asked = len(h.all(do.EndTransaction))
    h.advance(60_000)
    if h.open:
        h.lose()
    h.advance(60_000)
    assert len(h.all(do.EndTransaction)) <= asked + 1, "nobody wants to know"
    again = h.commit(5_000)
    assert h.asked(do.EndTransaction).commit
    assert h.asked(do.EndTransaction).producer == ME
    h.answer()
    assert h.is_done(again)


@levels
@pytest.mark.parametrize(
    "code", [None, ErrorCode.NOT_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS]
)
def test_a_commit_that_was_lost_stays_in_doubt_when_the_next_try_does_nothing(
    level: int, code: int | None
) -> None:
    """``code``: what the next try is refused with; ``None``: it never left."""
    h = Harness(level).filled()
    ticket = h.commit(within_ms=1_000)
    h.lose(sent=True)
    h.ms_until_asked()
    assert h.asked(do.EndTransaction).commit
    if code is None:
        h.lose(sent=False)
    else:
        h.answer(code)
    h.ms_until_asked()
    h.finds = False
    h.lose(sent=False)
    h.advance(2_000)
    assert not h.open, "there is no coordinator to ask"
    assert isinstance(h.error(ticket), CommitInDoubt)
    assert h.is_in(State.IN_DOUBT)


def test_an_answer_that_comes_while_in_doubt_is_kept_for_who_asks() -> None:
    h = Harness(2).filled()
    h.commit(1_000)
    h.advance(1_000)
    h.answer(who=BUMPED)
    assert h.is_in(State.IN_DOUBT)
    assert isinstance(h.error(h.begin()), LocalProtocolError)
    assert isinstance(h.error(h.abort()), LocalProtocolError)
    assert h.is_done(h.commit())
    assert h.is_in(State.READY)
    h.begin()
    assert h.core.producer == BUMPED


def test_a_commit_that_nobody_waits_for_any_more_tells_its_outcome_later() -> None:
    h = Harness(1).filled()
    ticket = h.commit()
    h.core.wait_ended(ticket)
    h.answer()
    assert h.is_waiting(ticket)
    assert h.is_in(State.IN_DOUBT)
    assert h.is_done(h.commit())
    assert h.is_in(State.READY)


def test_in_doubt_and_then_timed_out_is_aborted() -> None:
    h = Harness(2).filled()
    h.commit(1_000)
    h.lose()
    h.advance(1_000)
    if h.open:
        h.lose()
    again = h.commit()
    h.answer(ErrorCode.INVALID_TXN_STATE)
    assert h.is_waiting(again)
    h.answer(who=BUMPED)
    assert isinstance(h.error(again), TransactionTimedOut)


@levels
def test_in_doubt_and_then_fenced_stays_in_doubt(level: int) -> None:
    h = Harness(level).filled()
    ticket = h.commit()
    h.lose()
    h.advance(100)
    h.answer(ErrorCode.PRODUCER_FENCED)
    h.answer(ErrorCode.PRODUCER_FENCED)
    if level == 2:  # else the commit may have been done without another epoch
        assert h.asked(do.InitProducerId).producer == BUMPED
        h.answer(ErrorCode.PRODUCER_FENCED)
    assert not h.open
    error = h.error(ticket)
    assert isinstance(error, CommitInDoubt)
    assert isinstance(error.cause, ProducerFenced)
    assert "read the committed offsets back" in str(error)
    for each in (h.commit(), h.commit(), h.begin()):
        error = h.error(each)
        assert isinstance(error, ProducerFenced), "asking again is in vain, and whoever asks knows"
        assert error.maybe_committed
        assert "it is not known whether its last transaction is committed" in str(error)
        assert "read the committed offsets back" in str(error)


def test_who_asks_after_the_producer_has_failed_is_told_so() -> None:
    """Nobody was waiting when it failed."""
    h = Harness(2).filled()
    first = h.commit(1_000)
    h.advance(1_000)
    assert isinstance(h.error(first), CommitInDoubt)
    h.answer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    assert h.is_in(State.FATAL)
    again = h.error(h.commit())
    assert isinstance(again, ProducerFailed)
    assert not again.maybe_committed, "the coordinator has refused it"


def test_in_doubt_and_then_forgotten_stays_in_doubt() -> None:
    h = Harness(2).filled()
    ticket = h.commit()
    h.lose()
    h.advance(100)
    h.answer(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    assert isinstance(h.error(ticket), CommitInDoubt)
    for each in (h.commit(), h.begin()):
        error = h.error(each)
        assert isinstance(error, ProducerFailed)
        assert error.maybe_committed


def test_a_commit_that_was_never_sent_is_not_in_doubt() -> None:
    h = Harness(2).filled()
    ticket = h.commit(1_000)
    while h.now < 2_000 and h.is_waiting(ticket):
        if h.open:
            h.lose(sent=False)
        h.advance(50)
    error = h.error(ticket)
    assert isinstance(error, TransactionAborted)
    assert "connection lost" in str(error)
    assert not h.open
    h.abort()
    h.advance(1_000)
    assert not h.asked(do.EndTransaction).commit


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_a_commit_that_the_coordinator_could_not_write_down_is_in_doubt(code: int) -> None:
    h = Harness(2).filled()
    ticket = h.commit(50)
    h.answer(code)
    h.advance(50)
    assert isinstance(h.error(ticket), CommitInDoubt)


@pytest.mark.parametrize(
    "code", [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_commit_that_was_turned_away_is_not_in_doubt(code: int) -> None:
    h = Harness(2).filled()
    ticket = h.commit(50)
    h.answer(code)
    h.advance(50)
    assert isinstance(h.error(ticket), TransactionAborted)


def test_each_who_waits_has_a_deadline_of_his_own() -> None:
    h = Harness(2).filled()
    short, long = h.commit(100), h.commit(1_000)
    h.advance(100)
    assert isinstance(h.error(short), CommitInDoubt)
    assert h.is_in(State.COMMITTING)
    h.answer()
    assert h.is_done(long)
    assert h.is_in(State.READY)


@levels
def test_an_abort_that_ends_when_nobody_waits_is_told_to_who_asks_again(level: int) -> None:
    h = Harness(level).filled()
    late = h.abort(within_ms=200)
    h.advance(200)
    assert "abort_transaction() waits for it again" in str(h.error(late))
    h.answer()
    assert h.is_done(h.abort())
    assert isinstance(h.error(h.abort()), LocalProtocolError), "once"


@levels
def test_and_not_to_who_has_begun_another_transaction(level: int) -> None:
    h = Harness(level).filled()
    h.abort(within_ms=200)
    h.advance(200)
    h.answer()
    assert h.is_done(h.begin())
    assert h.is_done(h.abort())
    assert h.core.state is State.READY, "it is that one that is aborted"


@pytest.mark.parametrize("level", [1, 2])
def test_a_commit_that_was_told_and_not_heard_is_told_again(level: int) -> None:
    """Whoever waited was cancelled in the moment in which it was done."""
    h = Harness(level).filled()
    ticket = h.commit()
    h.answer()
    assert h.is_done(ticket)
    h.core.wait_ended(ticket)
    assert h.is_in(State.IN_DOUBT)
    assert isinstance(h.error(h.begin()), LocalProtocolError), "the commit comes first"
    again = h.commit()
    assert h.is_done(again)
    h.core.wait_ended(again)
    assert h.is_done(h.commit())
    assert h.is_done(h.begin())
    h.core.wait_ended(ticket)
    assert h.is_in(State.IN_TRANSACTION)


def test_a_commit_that_one_of_two_has_heard_of_is_told() -> None:
    h = Harness(2).filled()
    first, second = h.commit(), h.commit()
    h.answer()
    h.core.wait_ended(first)
    assert h.is_in(State.READY)
    h.core.wait_ended(second)
    assert h.is_in(State.IN_DOUBT)


@pytest.mark.parametrize("level", [1, 2])
def test_an_abort_that_was_told_and_not_heard_is_told_again(level: int) -> None:
    h = Harness(level).filled()
    ticket = h.abort()
    h.answer()
    assert h.is_done(ticket)
    h.core.wait_ended(ticket)
    assert h.is_done(h.abort())
    assert isinstance(h.error(h.abort()), LocalProtocolError), "that one was heard"
    assert h.is_done(h.begin())


@levels
def test_each_commit_is_a_wait_of_its_own(level: int) -> None:
    h = Harness(level).filled()
    for _ in range(2):
        h.now += 10
        ticket = h.commit()
        (wait,) = h.core.waits().values()
        assert wait.since_ms == h.now, "or two short waits would be taken for a long one"
        h.answer()
        assert h.is_done(ticket)
        assert h.core.waits() == {}
        h.begin()
        h.fill()

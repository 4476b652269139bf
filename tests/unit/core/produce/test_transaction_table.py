"""Every state and everything that can happen in it: what is told, what is asked, what follows.

The states are reached as a producer reaches them, and the expectations are written by hand.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce._error_rules import Reaction
from kip848_client.core.produce._transaction_states import TABLE, State, Trigger
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    CommitInDoubt,
    LocalProtocolError,
    ProducerFenced,
    RecordUnreadable,
    TransactionAborted,
)
from tests.unit.core.produce._transactions import ME, Harness

REFUSED = RecordUnreadable("no", topic="t", partition=0, offset=0)
"""Some error of a record."""


def uninitialized() -> Harness:
    h = Harness(level=1)
    h.start()
    h.asked(do.InitProducerId)
    return h


def ready() -> Harness:
    return Harness(level=1).ready()


def in_transaction() -> Harness:
    return Harness(level=1).filled()


def committing() -> Harness:
    h = in_transaction()
    h.commit(1_000)
    h.asked(do.EndTransaction)
    return h


def abortable() -> Harness:
    h = in_transaction()
    h.record()
    h.batch_refused(Reaction.ABORT, REFUSED)
    h.batches.has_gap = False
    return h


def aborting() -> Harness:
    h = in_transaction()
    h.abort()
    h.asked(do.EndTransaction)
    return h


def bumping() -> Harness:
    h = in_transaction()
    h.record()
    h.batch_refused(Reaction.ABORT_AND_BUMP, REFUSED)
    h.abort()
    h.answer()
    h.asked(do.InitProducerId)
    return h


def in_doubt() -> Harness:
    h = committing()
    h.lose()
    h.advance(1_000)
    return h


def fatal() -> Harness:
    h = uninitialized()
    h.answer(ErrorCode.PRODUCER_FENCED)
    return h


MAKE: dict[State, Callable[[], Harness]] = {
    State.UNINITIALIZED: uninitialized,
    State.READY: ready,
    State.IN_TRANSACTION: in_transaction,
    State.COMMITTING: committing,
    State.ABORTABLE: abortable,
    State.ABORTING: aborting,
    State.BUMPING: bumping,
    State.IN_DOUBT: in_doubt,
    State.FATAL: fatal,
}


@pytest.mark.parametrize("state", State)
def test_every_state_is_reached(state: State) -> None:
    assert MAKE[state]().core.state is state


# -- what the application asks for -------------------------------------------------------------

WAIT, DONE, NO = "waits", "done", "refused"
HARM, FENCED = TransactionAborted, ProducerFenced
Told = str | type[Exception]

APPLICATION: dict[State, tuple[Told, Told, Told, Told]] = {
    #                     begin  a record  commit  abort
    State.UNINITIALIZED: (WAIT, NO, NO, NO),
    State.READY: (DONE, NO, NO, NO),
    State.IN_TRANSACTION: (NO, DONE, WAIT, WAIT),
    State.COMMITTING: (NO, NO, WAIT, NO),
    State.ABORTABLE: (NO, HARM, HARM, WAIT),
    State.ABORTING: (NO, NO, NO, WAIT),
    State.BUMPING: (WAIT, NO, NO, NO),
    State.IN_DOUBT: (NO, NO, WAIT, NO),
    State.FATAL: (FENCED, FENCED, FENCED, DONE),
}
AFTER: dict[State, tuple[State, ...]] = {
    State.UNINITIALIZED: (State.UNINITIALIZED,) * 4,
    State.READY: (State.IN_TRANSACTION, State.READY, State.READY, State.READY),
    State.IN_TRANSACTION: (
        State.IN_TRANSACTION,
        State.IN_TRANSACTION,
        State.COMMITTING,
        State.ABORTING,
    ),
    State.COMMITTING: (State.COMMITTING,) * 4,
    State.ABORTABLE: (State.ABORTABLE, State.ABORTABLE, State.ABORTABLE, State.ABORTING),
    State.ABORTING: (State.ABORTING,) * 4,
    State.BUMPING: (State.BUMPING,) * 4,
    State.IN_DOUBT: (State.IN_DOUBT, State.IN_DOUBT, State.COMMITTING, State.IN_DOUBT),
    State.FATAL: (State.FATAL,) * 4,
}


def appended(h: Harness) -> Told:
    """What becomes of a record."""
    try:
        h.core.check_append()
    except LocalProtocolError:
        return NO
    except (TransactionAborted, ProducerFenced) as error:
        return type(error)
    return WAIT


@pytest.mark.parametrize("column", range(4), ids=["begin", "add", "commit", "abort"])
@pytest.mark.parametrize("state", State)
def test_what_the_application_asks_for(state: State, column: int) -> None:
    h = MAKE[state]()
    ticket = (h.begin, h.offsets, h.commit, h.abort)[column]()
    told: Told
    if h.is_waiting(ticket):
        told = WAIT
    elif h.is_done(ticket):
        told = DONE
    else:
        error = h.error(ticket)
        told = NO if isinstance(error, LocalProtocolError) else type(error)
    if column == 1:
        assert told == appended(h)
        told = DONE if told == WAIT else told
    assert told == APPLICATION[state][column]
    assert h.core.state is AFTER[state][column]


def test_the_same_call_waits_for_the_same_end() -> None:
    h = committing()
    first = h.commit()
    second = h.commit()
    h.answer()
    assert h.is_done(first)
    assert h.is_done(second)
    assert len(h.all(do.EndTransaction)) == 1
    h = aborting()
    third = h.abort()
    h.answer()
    assert h.is_done(third)
    assert len(h.all(do.EndTransaction)) == 1


def test_the_answer_to_a_refused_call_names_the_way_out() -> None:
    for state in State:
        h = MAKE[state]()
        ticket = h.commit()
        if state in (State.READY, State.BUMPING):
            assert "begin" in str(h.error(ticket))
    h = in_doubt()
    assert "commit_transaction() tells" in str(h.error(h.begin()))
    h = fatal()
    assert "make a new producer" in str(h.error(h.begin()))


# -- what happens ------------------------------------------------------------------------------


def ended(h: Harness) -> None:
    """The coordinator says that the transaction has ended."""
    h.core.ended(None)


def harmed(h: Harness) -> None:
    """A batch is refused."""
    h.core.batch_failed(h.now, None, Reaction.ABORT, REFUSED)


def failed(h: Harness) -> None:
    """A batch is refused for good and all."""
    h.core.batch_failed(h.now, None, Reaction.FATAL, REFUSED)


def initialized(h: Harness) -> None:
    """A producer id is answered."""
    h.core.initialized(ME)


U, R, T, C = State.UNINITIALIZED, State.READY, State.IN_TRANSACTION, State.COMMITTING
X, A, B, D, F = State.ABORTABLE, State.ABORTING, State.BUMPING, State.IN_DOUBT, State.FATAL

HAPPENS: dict[State, tuple[State | None, State | None, State | None, State | None]] = {
    #  ended, harmed, failed, initialized; None: it is late or known, and counted
    U: (None, None, F, R),
    R: (None, None, F, R),
    T: (None, X, F, None),
    C: (R, X, F, None),
    X: (None, None, F, X),
    A: (R, None, F, R),
    B: (None, None, F, R),
    # it is committed, and stays where it is until somebody asks
    D: (D, X, F, None),
    F: (None, None, None, None),
}


@pytest.mark.parametrize("column", range(4), ids=["ended", "harmed", "failed", "initialized"])
@pytest.mark.parametrize("state", State)
def test_what_happens(state: State, column: int) -> None:
    h = MAKE[state]()
    happens = (ended, harmed, failed, initialized)[column]
    before = h.core.stale
    happens(h)
    follows = HAPPENS[state][column]
    assert h.core.state is (follows or state)
    assert h.core.stale == before + (follows is None)


def test_only_a_commit_that_was_sent_is_overdue() -> None:
    assert {state for state in State if TABLE[state][Trigger.OVERDUE].to} == {C}
    h = in_transaction()
    h.record()
    ticket = h.commit(1_000)
    h.advance(1_000)
    assert isinstance(h.error(ticket), TransactionAborted)
    assert h.core.state is X
    h = committing()
    h.advance(1_000)
    assert h.core.state is D
    assert isinstance(h.error(max(h.outcomes)), CommitInDoubt)


def test_the_table_is_whole() -> None:
    assert set(TABLE) == set(State)
    assert all(set(row) == set(Trigger) for row in TABLE.values())

"""The states of a transactional producer, and what each makes of whatever comes: one table.

Three rules. Only ``begin`` opens a transaction, and only the end of one lets the next begin. A
transaction that has lost anything can only be aborted: a broker would commit it all the same, so
it is for us to refuse. And what we do not know we do not say: a commit that was sent and is not
answered is in doubt until it is.

The table has a row for each state and a column for each trigger; a cell says what the state makes
of the trigger and which state follows. BUMPING is in no cell: it takes the place of READY where the
coordinator must name another epoch before the next transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

__all__ = ["ADDING", "TABLE", "Cell", "State", "Trigger", "Verdict"]


class State(Enum):
    """Where a transactional producer is."""

    UNINITIALIZED = "UNINITIALIZED"
    """It has no producer id yet."""
    READY = "READY"
    """No transaction is open."""
    IN_TRANSACTION = "IN_TRANSACTION"
    """Takes records and offsets."""
    COMMITTING = "COMMITTING"
    """The application wants the commit: what waits is sent, then the end is asked for."""
    ABORTABLE = "ABORTABLE"
    """Something of the transaction was refused or lost. It waits to be aborted."""
    ABORTING = "ABORTING"
    """What is on its way is waited for, then the end is asked for."""
    BUMPING = "BUMPING"
    """No transaction is open, and none can begin before the coordinator has named another epoch:
    after an abort with V1 the broker may miss sequence numbers, or get what was lost too late."""
    IN_DOUBT = "IN_DOUBT"
    """A commit was sent, and whoever wanted it waits no more."""
    FATAL = "FATAL"
    """This producer cannot go on. Nothing leads out of it."""


class Trigger(Enum):
    """What can happen to it. The first four are asked for by the application."""

    BEGIN = "begin"
    ADD = "add"
    """A record or offsets."""
    COMMIT = "commit"
    ABORT = "abort"
    ENDED = "ended"
    """The coordinator says that it is committed or aborted, or there was nothing to end."""
    HARMED = "harmed"
    """Something is refused or lost: the transaction must not be committed."""
    FAILED = "failed"
    """What no abort mends."""
    INITIALIZED = "initialized"
    """InitProducerId is answered with who we are."""
    OVERDUE = "overdue"
    """A commit was sent and is not answered, and nobody waits any longer."""


class Verdict(Enum):
    """What a state makes of a trigger."""

    GO = "it goes on in the state that is named"
    WAIT = "it is done as soon as the state is READY"
    SAME = "it is what is being done already: whoever asked waits for its end, too"
    REFUSE = "LocalProtocolError"
    RAISE = "the error that is stored"
    NOTHING = "it is done already"
    IGNORE = "it is late, or known: counted"


class Cell(NamedTuple):
    """What follows of a trigger in a state."""

    verdict: Verdict
    to: State | None = None


_U, _R, _T, _C = State.UNINITIALIZED, State.READY, State.IN_TRANSACTION, State.COMMITTING
_X, _A, _B = State.ABORTABLE, State.ABORTING, State.BUMPING
_D, _F = State.IN_DOUBT, State.FATAL

_REFUSE: Final = Cell(Verdict.REFUSE)
_RAISE: Final = Cell(Verdict.RAISE)
_WAIT: Final = Cell(Verdict.WAIT)
_SAME: Final = Cell(Verdict.SAME)
_IGNORE: Final = Cell(Verdict.IGNORE)
_NOTHING: Final = Cell(Verdict.NOTHING)


def _to(state: State) -> Cell:
    return Cell(Verdict.GO, state)


def _row(*cells: Cell) -> Mapping[Trigger, Cell]:
    return dict(zip(Trigger, cells, strict=True))


TABLE: Final[Mapping[State, Mapping[Trigger, Cell]]] = {
    #        BEGIN    ADD      COMMIT   ABORT     ENDED    HARMED   FAILED   INITIAL. OVERDUE
    _U: _row(_WAIT, _REFUSE, _REFUSE, _REFUSE, _IGNORE, _IGNORE, _to(_F), _to(_R), _IGNORE),
    _R: _row(_to(_T), _REFUSE, _REFUSE, _REFUSE, _IGNORE, _IGNORE, _to(_F), _to(_R), _IGNORE),
    _T: _row(_REFUSE, _to(_T), _to(_C), _to(_A), _IGNORE, _to(_X), _to(_F), _IGNORE, _IGNORE),
    # harmed: only where the commit was not sent, or was answered that it is not done
    _C: _row(_REFUSE, _REFUSE, _SAME, _REFUSE, _to(_R), _to(_X), _to(_F), _IGNORE, _to(_D)),
    # initialized: the coordinator had ended it before we could, and there is nothing to end
    _X: _row(_REFUSE, _RAISE, _RAISE, _to(_A), _IGNORE, _IGNORE, _to(_F), _to(_X), _IGNORE),
    _A: _row(_REFUSE, _REFUSE, _REFUSE, _SAME, _to(_R), _IGNORE, _to(_F), _to(_R), _IGNORE),
    _B: _row(_WAIT, _REFUSE, _REFUSE, _REFUSE, _IGNORE, _IGNORE, _to(_F), _to(_R), _IGNORE),
    _D: _row(_REFUSE, _REFUSE, _to(_C), _REFUSE, _to(_R), _to(_X), _to(_F), _IGNORE, _IGNORE),
    # abort: so that a block which is left by an error shows that error
    _F: _row(_RAISE, _RAISE, _RAISE, _NOTHING, _IGNORE, _IGNORE, _IGNORE, _IGNORE, _IGNORE),
}

(ADDING,) = (state for state in State if TABLE[state][Trigger.ADD].verdict is Verdict.GO)
"""The one state in which records are appended: for each of them the table would take too long."""

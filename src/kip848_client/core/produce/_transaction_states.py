"""The states of a transactional producer and their transitions, in one table.

Three rules. Only ``begin`` opens a transaction, and the next can begin only after it has ended. A
transaction that has lost anything can only be aborted: a broker would commit it anyway, so the
client must refuse. And an unknown result is reported as unknown: a commit that was sent and not
answered is in doubt until it is answered.

The table has one row per state and one column per trigger. A cell holds the reaction of the state
to the trigger and the next state. BUMPING is in no cell: it replaces READY when the coordinator
must supply another epoch before the next transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

__all__ = ["ADDING", "TABLE", "Cell", "State", "Trigger", "TriggerEffect"]


class State(Enum):
    """The state of a transactional producer."""

    UNINITIALIZED = "UNINITIALIZED"
    """It has no producer id yet."""
    READY = "READY"
    """No transaction is open."""
    IN_TRANSACTION = "IN_TRANSACTION"
    """Takes records and offsets."""
    COMMITTING = "COMMITTING"
    """The application has called commit: queued records are sent, then the end is requested."""
    ABORTABLE = "ABORTABLE"
    """Something of the transaction was refused or lost. It must be aborted."""
    ABORTING = "ABORTING"
    """Answers of requests in flight are awaited, then the end is requested."""
    BUMPING = "BUMPING"
    """No transaction is open, and none can begin until the coordinator has supplied another epoch:
    after an abort with V1 the broker may miss sequence numbers, or receive lost requests too
    late."""
    IN_DOUBT = "IN_DOUBT"
    """A commit was sent, and the caller no longer waits for it."""
    FATAL = "FATAL"
    """This producer cannot continue. No transition leads out of this state."""


class Trigger(Enum):
    """What can happen. The application requests the first four."""

    BEGIN = "begin"
    ADD = "add"
    """A record or offsets."""
    COMMIT = "commit"
    ABORT = "abort"
    ENDED = "ended"
    """The coordinator reports the commit or abort, or there was nothing to end."""
    HARMED = "harmed"
    """Something was refused or lost: the transaction must not be committed."""
    FAILED = "failed"
    """An error that no abort can fix."""
    INITIALIZED = "initialized"
    """InitProducerId returned the producer id and epoch."""
    OVERDUE = "overdue"
    """A commit was sent and not answered, and the last caller has timed out."""


class TriggerEffect(Enum):
    """How a state reacts to a trigger."""

    GO = "it goes on in the state that is named"
    WAIT = "it is done as soon as the state is READY"
    SAME = "it is being done already: this caller waits for its end, too"
    REFUSE = "LocalProtocolError"
    RAISE = "the error that is stored"
    NOTHING = "it is done already"
    IGNORE = "it is late, or known: counted"


class Cell(NamedTuple):
    """The reaction and the next state for a trigger in a state."""

    effect: TriggerEffect
    to: State | None = None


_U, _R, _T, _C = State.UNINITIALIZED, State.READY, State.IN_TRANSACTION, State.COMMITTING
_X, _A, _B = State.ABORTABLE, State.ABORTING, State.BUMPING
_D, _F = State.IN_DOUBT, State.FATAL

_REFUSE: Final = Cell(TriggerEffect.REFUSE)
_RAISE: Final = Cell(TriggerEffect.RAISE)
_WAIT: Final = Cell(TriggerEffect.WAIT)
_SAME: Final = Cell(TriggerEffect.SAME)
_IGNORE: Final = Cell(TriggerEffect.IGNORE)
_NOTHING: Final = Cell(TriggerEffect.NOTHING)


def _to(state: State) -> Cell:
    return Cell(TriggerEffect.GO, state)


def _row(*cells: Cell) -> Mapping[Trigger, Cell]:
    return dict(zip(Trigger, cells, strict=True))


TABLE: Final[Mapping[State, Mapping[Trigger, Cell]]] = {
    #        BEGIN    ADD      COMMIT   ABORT     ENDED    HARMED   FAILED   INITIAL. OVERDUE
    _U: _row(_WAIT, _REFUSE, _REFUSE, _REFUSE, _IGNORE, _IGNORE, _to(_F), _to(_R), _IGNORE),
    _R: _row(_to(_T), _REFUSE, _REFUSE, _REFUSE, _IGNORE, _IGNORE, _to(_F), _to(_R), _IGNORE),
    _T: _row(_REFUSE, _to(_T), _to(_C), _to(_A), _IGNORE, _to(_X), _to(_F), _IGNORE, _IGNORE),
    # harmed: only if the commit was not sent, or was answered as not done
    _C: _row(_REFUSE, _REFUSE, _SAME, _REFUSE, _to(_R), _to(_X), _to(_F), _IGNORE, _to(_D)),
    # initialized: the coordinator had already ended it, so there is nothing to end
    _X: _row(_REFUSE, _RAISE, _RAISE, _to(_A), _IGNORE, _IGNORE, _to(_F), _to(_X), _IGNORE),
    _A: _row(_REFUSE, _REFUSE, _REFUSE, _SAME, _to(_R), _IGNORE, _to(_F), _to(_R), _IGNORE),
    _B: _row(_WAIT, _REFUSE, _REFUSE, _REFUSE, _IGNORE, _IGNORE, _to(_F), _to(_R), _IGNORE),
    _D: _row(_REFUSE, _REFUSE, _to(_C), _REFUSE, _to(_R), _to(_X), _to(_F), _IGNORE, _IGNORE),
    # abort: so that leaving a block by an error raises that error
    _F: _row(_RAISE, _RAISE, _RAISE, _NOTHING, _IGNORE, _IGNORE, _IGNORE, _IGNORE, _IGNORE),
}

(ADDING,) = (state for state in State if TABLE[state][Trigger.ADD].effect is TriggerEffect.GO)
"""The only state in which records are appended. A table lookup per record would be too slow."""

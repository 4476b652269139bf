"""The user's errors for a transaction that cannot continue: their cause and the way out."""

from __future__ import annotations

from typing import Final

from kip848_client.core.produce._error_rules import Api, Reaction, is_named
from kip848_client.core.produce._transaction_states import State, Trigger
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    CommitInDoubt,
    CoordinatorUnavailable,
    Kip848Error,
    LocalProtocolError,
    ProducerFailed,
    ProducerFenced,
    RequestTimedOut,
    TransactionAborted,
    TransactionTimedOut,
)

__all__ = [
    "aborted",
    "failed",
    "fatal_again",
    "harm_again",
    "in_doubt",
    "is_certain",
    "late_abort",
    "late_init",
    "left_open",
    "not_allowed",
    "timed_out",
]

_WHY_NOT: Final = {
    State.UNINITIALIZED: "the producer has no producer id yet; start it, and begin a transaction",
    State.READY: "no transaction is open; begin one first: async with producer.transaction()",
    State.IN_TRANSACTION: (
        "a transaction is open already, and a producer has one at a time; commit or abort it "
        "first, or take another producer with another transactional_id"
    ),
    State.COMMITTING: "the transaction is being committed; wait for the commit",
    State.ABORTABLE: "the transaction has failed; abort_transaction() first",
    State.ABORTING: "the transaction is being aborted; wait for the abort",
    State.BUMPING: "no transaction is open; begin one first: async with producer.transaction()",
    State.IN_DOUBT: (
        "it is not known yet whether the transaction is committed; commit_transaction() tells"
    ),
    State.FATAL: "the producer has failed; stop() it and make a new one",
}
_WHAT: Final = {
    "start": "start()",
    Trigger.BEGIN.value: "begin_transaction()",
    Trigger.ADD.value: "sending",
    Trigger.COMMIT.value: "commit_transaction()",
    Trigger.ABORT.value: "abort_transaction()",
}
_LOOK: Final = (
    "make a new producer with the same transactional id, and read the committed offsets back "
    "before you go on"
)
_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


def not_allowed(state: State, what: str, *, closing: bool = False) -> LocalProtocolError:
    """The application's call is not allowed in this state."""
    why = "the producer is being closed; make a new one" if closing else _WHY_NOT[state]
    return LocalProtocolError(f"{_WHAT[what]} is not possible now: {why}")


def aborted(transactional_id: str, cause: Kip848Error) -> TransactionAborted:
    """The transaction cannot be committed."""
    return TransactionAborted(
        f"the transaction of {transactional_id!r} cannot be committed: {cause}; nothing of it is: "
        "abort it (leaving its block does), go back to the committed offsets, and begin the next "
        "one",
        cause=cause,
    )


def late_abort(transactional_id: str, trouble: str) -> RequestTimedOut:
    """The wait for the abort has timed out."""
    return RequestTimedOut(
        f"the abort of {transactional_id!r} is not answered in time ({trouble}); it goes on, and "
        "abort_transaction() waits for it again"
    )


def late_init(transactional_id: str, trouble: str) -> CoordinatorUnavailable:
    """The wait for a start or a beginning has timed out."""
    why = f"{trouble}; it is still asked for"
    return CoordinatorUnavailable(f"no producer id for {transactional_id!r} in time: {why}")


def left_open(transactional_id: str) -> str:
    """The producer is being stopped with an uncommitted transaction."""
    return (
        f"the producer of {transactional_id!r} is stopped within a transaction: nothing of it is "
        "committed; it is aborted now, or, if its coordinator cannot be asked, by that after "
        "transaction_timeout_ms; commit a transaction before you stop the producer"
    )


def timed_out(transactional_id: str, harm: TransactionAborted) -> TransactionTimedOut:
    """The coordinator had ended the transaction, and this producer still owns the id."""
    return TransactionTimedOut(
        f"the coordinator has aborted the transaction of {transactional_id!r}: it was open for "
        f"longer than transaction_timeout_ms, or an administrator did it ({harm.cause}); nothing "
        "of it is committed: abort it (leaving its block does), go back to the committed offsets, "
        "and begin the next one",
        cause=harm.cause,
    )


def in_doubt(
    transactional_id: str, cause: Kip848Error | None, *, closed: bool = False
) -> CommitInDoubt:
    """The result of the commit is unknown. ``closed``: and this producer can no longer find out."""
    why = "" if cause is None else f" ({cause})"
    way_out = _LOOK if closed else "commit_transaction() again tells"
    if isinstance(cause, ProducerFailed):
        why, way_out = f", and this producer cannot find out ({cause.cause})", _LOOK
    return CommitInDoubt(
        f"it is not known whether the transaction of {transactional_id!r} is committed{why}; "
        f"{way_out}",
        cause=cause,
    )


def failed(
    transactional_id: str, reaction: Reaction, cause: Kip848Error, *, doubt: bool
) -> ProducerFailed:
    """This producer cannot continue. ``doubt``: its last transaction may be committed."""
    look = f"; it is not known whether its last transaction is committed: {_LOOK}" if doubt else ""
    if isinstance(cause, BrokerError) and cause.code in _FENCED:
        open_one = "" if doubt else "what this one had open is aborted: "
        return ProducerFenced(
            f"another producer has taken over the transactional id {transactional_id!r} ({cause}); "
            f"{open_one}stop this instance, or make a new producer to take the id back{look}",
            cause=cause,
            maybe_committed=doubt,
        )
    way_out = "stop() it and make a new one"
    if reaction is Reaction.FATAL:
        way_out = "fix the cause, stop() it and make a new one"
    return ProducerFailed(
        f"the producer of the transactional id {transactional_id!r} cannot go on: {cause}; "
        f"{way_out}{look}",
        cause=cause,
        maybe_committed=doubt,
    )


def harm_again(transactional_id: str, harm: TransactionAborted | None) -> TransactionAborted:
    """The transaction's error, as a new instance for another caller."""
    if harm is None:
        return TransactionAborted(f"the transaction of {transactional_id!r} is aborted, as asked")
    return type(harm)(str(harm), cause=harm.cause)


def fatal_again(fatal: ProducerFailed) -> ProducerFailed:
    """The producer's error, as a new instance for another caller."""
    doubt = fatal.maybe_committed
    return type(fatal)(str(fatal), cause=fatal.cause, maybe_committed=doubt)


def is_certain(reaction: Reaction, error: Kip848Error) -> bool:
    """Whether an EndTxn refused with this error certainly had no effect. For an unknown code that
    is not certain."""
    if reaction is not Reaction.FATAL or not isinstance(error, BrokerError):
        return True
    return is_named(Api.END_TRANSACTION, error.code)

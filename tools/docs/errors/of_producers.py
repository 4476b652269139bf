"""The requests of a producer."""

from __future__ import annotations

from typing import Final

from kip848_client.core.produce._error_rules import COLUMNS as TABLES
from kip848_client.core.produce._error_rules import Api, Reaction, reaction
from kip848_client.core.produce._transaction_requests import GONE_MS
from kip848_client.error_codes import ErrorCode, passes_in_lookup
from tools.docs.errors.columns import Column, Sees, Told

__all__ = ["COLUMNS"]

_PAUSES: Final = "pauses from `retry_backoff_ms` to `retry_backoff_max_ms`"
_ASKED: Final = (
    "`TransactionTimedOut` if the coordinator had ended the transaction, and the producer "
    "continues; `ProducerFenced` if there is a successor"
)
_FAILED: Final = "every call raises `ProducerFailed` with the error as its cause"
_SEND: Final = {
    Reaction.RETRY: Sees(
        "nothing; `DeliveryTimedOut` after the timeout",
        f"`delivery_timeout_ms`; {_PAUSES}",
    ),
    Reaction.REFRESH: Sees(
        "nothing; `DeliveryTimedOut` after the timeout",
        f"`delivery_timeout_ms`; {_PAUSES}; at once if another leader is known",
    ),
    Reaction.ABORT: Sees(
        "awaiting the record raises the error; in a transaction its commit raises "
        "`TransactionAborted`",
        "at once",
    ),
    Reaction.ABORT_AND_BUMP: Sees(
        "as ABORT; later records are written in order, with sequence numbers that restart at 0",
        "at once",
    ),
    Reaction.ASK: Sees(
        f"awaiting the record raises the error; in a transaction {_ASKED}", "at once"
    ),
    Reaction.RECOVER: Sees(
        "awaiting the record raises the error, and every later call `ProducerFailed` or "
        "`ProducerFenced`",
        "at once; create a new producer",
    ),
    Reaction.FATAL: Sees(
        f"awaiting the record raises the error; {_FAILED}",
        "at once; the error names the cause",
    ),
    Reaction.DONE: Sees("nothing; the record's offset is -1", "at once"),
    Reaction.SPLIT: Sees(
        "nothing; a single record that is too large raises the error",
        "until a batch is one record",
    ),
    Reaction.REORDER: Sees(
        "nothing; `DeliveryTimedOut` if it is unknown whether the batch was written; in a "
        "transaction as ABORT_AND_BUMP",
        "`delivery_timeout_ms`",
    ),
}

_UNTIL: Final = {
    Api.INIT_PRODUCER_ID: "`start`, `begin_transaction`: `max_block_ms`",
    Api.ADD_PARTITIONS: "`delivery_timeout_ms` of the records that wait for it",
    Api.ADD_OFFSETS: "`delivery_timeout_ms`",
    Api.COMMIT_OFFSETS: (f"`delivery_timeout_ms`; {GONE_MS // 1000} s for a deleted topic"),
    Api.END_TRANSACTION: "`max_block_ms` of the call; the producer keeps retrying",
}
_LATE: Final = {
    Api.INIT_PRODUCER_ID: "`CoordinatorUnavailable`",
    Api.ADD_PARTITIONS: "`DeliveryTimedOut`",
    Api.ADD_OFFSETS: "`TransactionAborted` (its cause is a `CommitFailed`)",
    Api.COMMIT_OFFSETS: "`TransactionAborted` (its cause is a `CommitFailed`)",
    Api.END_TRANSACTION: "`CommitInDoubt` (for an abort `RequestTimedOut`)",
}
_HARMED: Final = {
    Api.INIT_PRODUCER_ID: "",
    Api.ADD_PARTITIONS: "the records that wait for it, and the commit, raise `TransactionAborted`",
    Api.ADD_OFFSETS: (
        "the call and the commit raise `TransactionAborted`, whose cause is a `CommitFailed`"
    ),
    Api.COMMIT_OFFSETS: (
        "the call and the commit raise `TransactionAborted`, whose cause is a `CommitFailed`"
    ),
    Api.END_TRANSACTION: "the commit raises `TransactionAborted`",
}


def _asked(api: Api) -> dict[str, Told]:
    """Reactions to one of the transaction requests."""
    again = f"{_UNTIL[api]}; {_PAUSES}"
    late = f"nothing; {_LATE[api]} after the timeout"
    harmed = f"{_HARMED[api]}; the producer can continue after the abort"
    told: dict[Reaction, Sees] = {
        Reaction.RETRY: Sees(late, again),
        Reaction.REFRESH: Sees(late, again),
        Reaction.ABORT: Sees(harmed, "at once"),
        Reaction.ABORT_AND_BUMP: Sees(harmed, "at once"),
        Reaction.ASK: Sees(_ASKED, "at once"),
        Reaction.RECOVER: Sees(
            "every call raises `ProducerFailed` or `ProducerFenced`",
            "at once; create a new producer",
        ),
        Reaction.FATAL: Sees(_FAILED, "at once; the error names the cause"),
    }
    return {each.name: Told(each.value, *sees) for each, sees in told.items()}


_INTROS: Final = {
    Api.INIT_PRODUCER_ID: "At the start of a producer, and when it needs another epoch.",
    Api.ADD_PARTITIONS: "For partitions, in a cluster with transactions of version 1.",
    Api.ADD_OFFSETS: "For a group, in a cluster with transactions of version 1.",
    Api.COMMIT_OFFSETS: (
        "The transactional commit of a group's offsets (`send_offsets`). If the group does not "
        "know the member or its epoch, the transaction can only be aborted."
    ),
    Api.END_TRANSACTION: "For commits and aborts.",
}


_NOTES: Final = {
    Api.END_TRANSACTION: (
        "If a refusal leaves open whether a commit was done, `CommitInDoubt` is raised. If its "
        "cause is a `ProducerFailed`, only the committed offsets show the outcome."
    ),
}


def _column(api: Api) -> Column:
    return Column(
        api.value,
        _INTROS[api],
        lambda code: reaction(api, code).name,
        _asked(api),
        TABLES[api][0],
        _NOTES.get(api, ""),
    )


COLUMNS: Final = (
    Column(
        "Produce",
        "For one batch. Without a transactional id there is nothing to abort: the batch fails.",
        lambda code: reaction(Api.PRODUCE, code).name,
        {each.name: Told(each.value, *told) for each, told in _SEND.items()},
        TABLES[Api.PRODUCE][0],
    ),
    *map(_column, _INTROS),
    Column(
        "FindCoordinator (producer)",
        "For the transactional id, and for a group whose offsets are committed.",
        lambda code: "RETRY" if passes_in_lookup(code) else "REFUSED",
        {
            "RETRY": Told(
                "the lookup is repeated, on any broker",
                "as for the request that needs it: the error has the last reason",
                f"as for the request that needs it; {_PAUSES}",
            ),
            "REFUSED": Told(
                "the request that needs the coordinator fails",
                "for the transactional id as FATAL of EndTxn, for a group as ABORT of its commit",
                "at once; the error names the cause",
            ),
        },
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.BROKER_NOT_AVAILABLE),
    ),
)

"""EndTxn (API 26), timeouts, and the end of a transaction.

Theory of operation
===================

Ending has two halves. First the outcome is decided and stored (PrepareCommit, PrepareAbort): from
then on nothing can change it, not even a crash. Then a marker goes to every partition of the
transaction, and when all are written the transaction is complete. The client is answered after the
first half.

With transaction version 2 (KIP-890, EndTxn from version 5 on) the first half raises the producer's
epoch. The markers and the response have the new epoch, so that delayed requests of the ended
transaction cannot become part of the next one. That is why a repeated EndTxn is recognized by the
epoch before, and why an abort is accepted without a transaction: a producer that does not know
whether its last request arrived gets a new epoch and a known state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kip848_client.core.wire.messages.transactions import EndTxnRequest, EndTxnResponse
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.transaction_coordinator.environment import (
    Change,
    Decision,
    Ending,
    Environment,
)
from mock_coordinator.core.transaction_coordinator.records import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ClientVersion,
    TransactionMetadata,
    TransactionState,
)
from mock_coordinator.core.transaction_coordinator.state import TransactionEntry

__all__ = ["LAST_EPOCH", "completed", "decide_end", "ending_of", "fenced_abort", "refused_end"]

_BUMPS_SINCE: Final = 5
LAST_EPOCH: Final = 0x7FFF - 1
"""The highest epoch that a producer gets: one more must be left to fence it with."""
_State = TransactionState


def decide_end(
    env: Environment, now_ms: int, version: int, request: EndTxnRequest
) -> Decision[EndTxnResponse]:
    """Decide one EndTxn. Raises ``Refused``."""
    if version < _BUMPS_SINCE:
        return _end_v1(env, now_ms, request)
    return _end_v2(env, now_ms, request)


def refused_end(code: ErrorCode) -> EndTxnResponse:
    """An answer without a producer."""
    return EndTxnResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


def _outcome(*, committed: bool) -> tuple[TransactionState, TransactionState]:
    """The states that a transaction of this outcome goes through."""
    if committed:
        return _State.PREPARE_COMMIT, _State.COMPLETE_COMMIT
    return _State.PREPARE_ABORT, _State.COMPLETE_ABORT


def _end_v1(env: Environment, now_ms: int, request: EndTxnRequest) -> Decision[EndTxnResponse]:
    entry = env.entry(request.transactional_id, request.producer_id)
    value = entry.value
    if request.producer_epoch != value.producer_epoch:
        raise Refused(ErrorCode.PRODUCER_FENCED)
    prepared, complete = _outcome(committed=request.committed)
    if value.state is _State.ONGOING:
        following = replace(
            value,
            previous_producer_id=value.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            state=prepared,
            last_update_ms=now_ms,
            client_version=ClientVersion.V0,
        )
        change = Change(request.transactional_id, following, entry.last_producer_epoch)
        return Decision(EndTxnResponse(), change)
    if value.state is complete:
        return Decision(EndTxnResponse())
    if value.state is prepared:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    raise Refused(ErrorCode.INVALID_TXN_STATE)


def _end_v2(env: Environment, now_ms: int, request: EndTxnRequest) -> Decision[EndTxnResponse]:
    if not request.transactional_id:
        raise Refused(ErrorCode.INVALID_REQUEST)
    entry = env.state.get(request.transactional_id)
    if entry is None:
        raise Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    value, epoch = entry.value, request.producer_epoch
    rotated = _is_before_rotation(value, request)
    repeated = rotated or _is_before_bump(value, epoch)
    if value.producer_id != request.producer_id and not rotated:
        raise Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if value.state.is_prepared:
        valid = _is_before_bump(value, epoch)
    elif value.state.is_complete:
        valid = repeated or epoch == value.producer_epoch
    else:
        valid = epoch == value.producer_epoch
    if not valid:
        raise Refused(ErrorCode.PRODUCER_FENCED)
    prepared, complete = _outcome(committed=request.committed)
    if value.state is _State.ONGOING:
        return _prepared(env, now_ms, request, entry, prepared)
    if value.state is complete and repeated:
        return Decision(_bumped_answer(value))
    if value.state is prepared:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if value.state.is_prepared or repeated or request.committed:
        raise Refused(ErrorCode.INVALID_TXN_STATE)
    # an abort although nothing is open: the producer wants a new epoch
    return _prepared(env, now_ms, request, entry, prepared, began_ms=now_ms)


def _is_before_bump(value: TransactionMetadata, epoch: int) -> bool:
    """The epoch is that of the transaction which just ended; if it did, that is: Kafka does not ask
    how the epoch came to be raised."""
    return value.producer_epoch == epoch + 1


def _is_before_rotation(value: TransactionMetadata, request: EndTxnRequest) -> bool:
    """So it is, and there was no epoch left: the producer got a new id."""
    return (
        value.previous_producer_id == request.producer_id
        and request.producer_epoch == LAST_EPOCH
        and value.producer_epoch == 0
    )


def _prepared(
    env: Environment,
    now_ms: int,
    request: EndTxnRequest,
    entry: TransactionEntry,
    state: TransactionState,
    *,
    began_ms: int | None = None,
) -> Decision[EndTxnResponse]:
    following = _raised(env, now_ms, entry.value, state)
    if began_ms is not None:
        following = replace(following, start_ms=began_ms)
    change = Change(request.transactional_id, following, entry.value.producer_epoch)
    return Decision(_bumped_answer(following), change)


def _raised(
    env: Environment, now_ms: int, value: TransactionMetadata, state: TransactionState
) -> TransactionMetadata:
    """The outcome is decided, and the epoch raised; after the last one there is another id."""
    used_up = value.producer_epoch >= LAST_EPOCH
    return replace(
        value,
        previous_producer_id=value.producer_id,
        next_producer_id=env.new_producer_id() if used_up else NO_PRODUCER_ID,
        producer_epoch=value.producer_epoch + 1,
        state=state,
        last_update_ms=now_ms,
        client_version=ClientVersion.V2,
    )


def _bumped_answer(value: TransactionMetadata) -> EndTxnResponse:
    if value.next_producer_id != NO_PRODUCER_ID:
        return EndTxnResponse(producer_id=value.next_producer_id, producer_epoch=0)
    return EndTxnResponse(producer_id=value.producer_id, producer_epoch=value.producer_epoch)


def fenced_abort(
    env: Environment, now_ms: int, transactional_id: str, entry: TransactionEntry
) -> Change:
    """Abort an open transaction behind its producer's back; a raised epoch fences the producer. One
    that names itself goes on: it is known for a while which epoch it had, but not in clusters with
    transactions V1."""
    following = _raised(env, now_ms, entry.value, _State.PREPARE_ABORT)
    if not env.profile.fencing_may_change_producer_id:
        following = replace(following, next_producer_id=NO_PRODUCER_ID)
    is_v2 = env.profile.transaction_version >= ClientVersion.V2
    last = entry.value.producer_epoch if is_v2 else NO_PRODUCER_EPOCH
    return Change(transactional_id, following, last)


def ending_of(transactional_id: str, value: TransactionMetadata) -> Ending:
    """The markers of a transaction whose outcome is decided."""
    return Ending(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        committed=value.state is _State.PREPARE_COMMIT,
        partitions=value.partitions,
    )


def completed(now_ms: int, transactional_id: str, entry: TransactionEntry) -> Change:
    """All markers are written."""
    value = entry.value
    committed = value.state is _State.PREPARE_COMMIT
    rotates = value.next_producer_id != NO_PRODUCER_ID
    following = replace(
        value,
        producer_id=value.next_producer_id if rotates else value.producer_id,
        previous_producer_id=value.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=0 if rotates else value.producer_epoch,
        state=_State.COMPLETE_COMMIT if committed else _State.COMPLETE_ABORT,
        partitions=(),
        last_update_ms=now_ms,
    )
    return Change(transactional_id, following, entry.last_producer_epoch)

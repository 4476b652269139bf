"""InitProducerId (API 22): sets the current producer of a transactional id.

Without a transactional id each call returns a new producer id. With one, each call raises the epoch
and thereby fences the previous producer. A producer that names itself continues after an error
(KIP-360): it is fenced if another one came in between. A transaction that is still open is aborted
first, under a raised epoch; the response is CONCURRENT_TRANSACTIONS, and the client retries.
"""

from __future__ import annotations

from dataclasses import replace

from kip848_client.core.wire.messages.transactions import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.transaction_coordinator.ending import LAST_EPOCH, fenced_abort
from mock_coordinator.core.transaction_coordinator.environment import Change, Decision, Environment
from mock_coordinator.core.transaction_coordinator.records import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    TransactionState,
)
from mock_coordinator.core.transaction_coordinator.state import TransactionEntry

__all__ = ["check_init", "decide_init", "refused_init"]


def check_init(env: Environment, request: InitProducerIdRequest) -> None:
    """Raise ``Refused`` for what every broker refuses, coordinator or not."""
    # an id to continue and its epoch come together or not at all (KIP-360)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise Refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return
    if not request.transactional_id:
        raise Refused(ErrorCode.INVALID_REQUEST)
    limit_ms = env.config.integer("transaction.max.timeout.ms")
    if not 0 < request.transaction_timeout_ms <= limit_ms:
        raise Refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def decide_init(
    env: Environment, now_ms: int, request: InitProducerIdRequest
) -> Decision[InitProducerIdResponse]:
    """Decide one InitProducerId that was checked. Raises ``Refused``."""
    transactional_id = request.transactional_id
    if transactional_id is None:
        return Decision(_answer(env.new_producer_id(), 0))
    entry = env.state.get(transactional_id)
    if entry is None:
        entry = TransactionEntry(_unborn(env, now_ms, request))
    value = entry.value
    if request.producer_id != NO_PRODUCER_ID and not _is_own(value, request):
        raise Refused(ErrorCode.PRODUCER_FENCED)
    if value.state.is_prepared:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if value.state is TransactionState.ONGOING:
        change = fenced_abort(env, now_ms, transactional_id, entry)
        return Decision(refused_init(ErrorCode.CONCURRENT_TRANSACTIONS), change)
    change = _next(env, now_ms, transactional_id, entry, request)
    assert change.value is not None
    return Decision(_answer(change.value.producer_id, change.value.producer_epoch), change)


def refused_init(code: ErrorCode) -> InitProducerIdResponse:
    """An answer without a producer."""
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


def _answer(producer_id: int, producer_epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def _unborn(env: Environment, now_ms: int, request: InitProducerIdRequest) -> TransactionMetadata:
    """A transactional id as it is before its first epoch; not stored."""
    return TransactionMetadata(
        producer_id=env.new_producer_id(),
        producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=request.transaction_timeout_ms,
        state=TransactionState.EMPTY,
        last_update_ms=now_ms,
    )


def _is_own(value: TransactionMetadata, request: InitProducerIdRequest) -> bool:
    """Whether the producer that the request names may be the current one; its epoch is checked
    later. No producer is fenced from an id that was just created; and a producer whose epochs were
    used up may not have heard of the producer id that it goes on with."""
    if value.producer_epoch == NO_PRODUCER_EPOCH or request.producer_id == value.producer_id:
        return True
    return (
        request.producer_id == value.previous_producer_id and request.producer_epoch >= LAST_EPOCH
    )


def _next(
    env: Environment,
    now_ms: int,
    transactional_id: str,
    entry: TransactionEntry,
    request: InitProducerIdRequest,
) -> Change:
    """The producer of the next epoch. Raises ``Refused`` PRODUCER_FENCED, and
    UNKNOWN_SERVER_ERROR in a case that Kafka did not foresee either: an outdated epoch when the
    current one is the last."""
    value = entry.value
    named = request.producer_id != NO_PRODUCER_ID
    current = value.producer_epoch
    producer_id, last = value.producer_id, NO_PRODUCER_EPOCH
    if current >= LAST_EPOCH and (not named or request.producer_epoch == current):
        producer_id, epoch = env.new_producer_id(), 0
        last = current if named else NO_PRODUCER_EPOCH
    elif current >= LAST_EPOCH:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    elif not named:
        epoch = current + 1
    elif current in (NO_PRODUCER_EPOCH, request.producer_epoch):
        epoch, last = current + 1, current
    elif request.producer_epoch == entry.last_producer_epoch:
        # the answer to the same request was lost: once more
        epoch, last = current, entry.last_producer_epoch
    else:
        raise Refused(ErrorCode.PRODUCER_FENCED)
    following = replace(
        value,
        producer_id=producer_id,
        previous_producer_id=value.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=epoch,
        timeout_ms=request.transaction_timeout_ms,
        state=TransactionState.EMPTY,
        partitions=(),
        last_update_ms=now_ms,
        start_ms=-1 if env.profile.init_forgets_last_start else value.start_ms,
    )
    return Change(transactional_id, following, last)

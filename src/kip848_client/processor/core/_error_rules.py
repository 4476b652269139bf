"""The reactions to producer errors, for the transaction and the processor."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeGuard

from kip848_client.error_codes import ErrorCode, is_retriable
from kip848_client.errors import (
    BrokerError,
    CommitFailed,
    CommitInDoubt,
    ConfigError,
    DeliveryTimedOut,
    Kip848Error,
    ProducerFailed,
    RecordTooLarge,
    RecordUnreadable,
    SchemaUnavailable,
    TransactionAborted,
    TransactionTimedOut,
    TransportError,
)

__all__ = ["Reaction", "is_of_the_record", "is_one_record", "overran", "reaction"]


class Reaction(Enum):
    """The reactions."""

    AGAIN = "abort the transaction, read its records again and go on"
    DOUBT = "ask again: the transaction may be committed"
    POISON = "the output itself is at fault: the same record would give it again"
    GIVE_UP = "abort the transaction and raise the error: the next one would fail alike"
    OVER = "the producer cannot even abort: raise the error"


_PASSING: Final = frozenset(
    {
        # the group does not know the member, or not in this epoch: all of these are treated alike
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
        # the transaction was ended, or its sequence numbers were lost: the producer continues with
        # new ones
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
)
"""If the producer cannot continue after one of these, it raises ``ProducerFailed``."""


_ENDED_WITHOUT_US: Final = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
    }
)


def reaction(error: Exception) -> Reaction:
    """The reaction to ``error``. A call that is refused permanently raises ``BrokerError``; a
    failed transaction has the reason as its cause."""
    match error:
        case ProducerFailed():
            return Reaction.OVER
        case CommitInDoubt():
            return Reaction.OVER if isinstance(error.cause, ProducerFailed) else Reaction.DOUBT
        case TransactionAborted() | CommitFailed():
            return _of_harm(error.cause)
        case RecordTooLarge() | ConfigError():
            return Reaction.POISON
        case MemoryError():
            return Reaction.GIVE_UP
        case TransportError():
            return Reaction.AGAIN
        case SchemaUnavailable():  # otherwise the following records would fail alike
            return Reaction.AGAIN if error.retriable else Reaction.GIVE_UP
        case Kip848Error():
            return Reaction.GIVE_UP
        case _:
            return Reaction.POISON  # raised by a serializer


def is_of_the_record(error: Exception) -> bool:
    """Whether an error of the function was caused by its record. A lack of memory was not:
    otherwise the following records would become dead letters as well."""
    return not isinstance(error, MemoryError)


def is_one_record(error: Exception) -> TypeGuard[RecordUnreadable]:
    """Whether the consumer's ``error`` is about a single record and has its bytes. Damaged bytes
    may be intact when they are fetched again, and a batch that was not decompressed has no single
    records."""
    return isinstance(error, RecordUnreadable) and (
        error.data is not None or error.timestamp is not None
    )


def overran(error: BaseException | None) -> bool:
    """Whether ``error`` means that the coordinator has ended the transaction. A successor also ends
    it, but then it cannot be aborted any more either."""
    match error:
        case TransactionTimedOut():
            return True
        case TransactionAborted() | CommitFailed():
            return overran(error.cause)
        case BrokerError():
            return error.code in _ENDED_WITHOUT_US
        case _:
            return False


def _of_harm(cause: BaseException | None) -> Reaction:
    match cause:
        case ProducerFailed():
            return Reaction.OVER
        case CommitFailed() | TransactionAborted():
            return _of_harm(cause.cause)
        case BrokerError():
            passing = cause.code in _PASSING or is_retriable(cause.code)
            return Reaction.AGAIN if passing else Reaction.GIVE_UP
        case DeliveryTimedOut() if cause.cause is not None:
            # the topic was deleted, and was not created again in all that time
            return Reaction.GIVE_UP
        case RecordTooLarge() | ConfigError():
            return Reaction.GIVE_UP
        case _:
            return Reaction.AGAIN

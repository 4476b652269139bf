"""What an error of the producer means for the transaction, and for the processor."""

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
    """What to do."""

    AGAIN = "abort the transaction, read its records again and go on"
    DOUBT = "ask again: the transaction may be committed"
    POISON = "the output itself is at fault: the same record would give it again"
    GIVE_UP = "abort the transaction and raise the error: the next one would fail alike"
    OVER = "the producer cannot even abort: raise the error"


_PASSING: Final = frozenset(
    {
        # the group does not know the member, or not in this epoch: all of them mean the same to us
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
        # the transaction was ended, or its numbers were lost: the producer goes on with others
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
)
"""A producer that could not go on after one of these says ``ProducerFailed``."""


_ENDED_WITHOUT_US: Final = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
    }
)


def reaction(error: Exception) -> Reaction:
    """What ``error`` means. A call that refuses something for good says so by a ``BrokerError``; a
    transaction that was harmed has the reason as its cause."""
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
        case SchemaUnavailable():  # else the records to come would be alike
            return Reaction.AGAIN if error.retriable else Reaction.GIVE_UP
        case Kip848Error():
            return Reaction.GIVE_UP
        case _:
            return Reaction.POISON  # what a serializer raises


def is_of_the_record(error: Exception) -> bool:
    """Whether an error of the function was caused by its record. Running out of memory was not: the
    following records would become dead letters, too."""
    return not isinstance(error, MemoryError)


def is_one_record(error: Exception) -> TypeGuard[RecordUnreadable]:
    """Whether ``error``, which the consumer raised, is about one record and has its bytes. Damaged
    bytes may be whole when they are fetched again, and of a batch that was not unpacked there are
    no records."""
    return isinstance(error, RecordUnreadable) and (
        error.data is not None or error.timestamp is not None
    )


def overran(error: BaseException | None) -> bool:
    """Whether ``error`` says that the coordinator has ended the transaction before we did. A
    successor ends it, too, but then it cannot be aborted any more either."""
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
            # the topic was deleted, and nobody has created it again in all that time
            return Reaction.GIVE_UP
        case RecordTooLarge() | ConfigError():
            return Reaction.GIVE_UP
        case _:
            return Reaction.AGAIN

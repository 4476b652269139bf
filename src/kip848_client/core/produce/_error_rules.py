"""How the producer reacts to error codes, by request: one table.

A column lists the codes it treats specially; all others get its default. A reaction means the same
in every column, so each code is decided in one place.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import BrokerError, Kip848Error, broker_error

__all__ = [
    "COLUMNS",
    "MEMBER_REFUSED",
    "Api",
    "Reaction",
    "is_named",
    "may_be_written",
    "produce_error",
    "reaction",
    "refusal",
]


class Api(Enum):
    """The requests of a producer."""

    PRODUCE = "Produce"
    INIT_PRODUCER_ID = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    END_TRANSACTION = "EndTxn"


class Reaction(Enum):
    """The reactions. Without a transactional id there is no transaction to abort: ``ABORT`` only
    fails the batch, and ``ABORT_AND_BUMP`` also restarts the partition's sequences."""

    RETRY = "the same again, later"
    REFRESH = "the same again, when leaders or coordinators were looked up"
    ABORT = "the transaction can only be aborted"
    ABORT_AND_BUMP = "the same, and the next transaction needs a new epoch"
    ASK = "InitProducerId with our own id tells whether we may go on or have a successor"
    RECOVER = "this producer is over; a new one may take its place"
    FATAL = "this producer is over, and another one would get the same answer"
    # -- Produce only
    DONE = "the broker has the records already"
    SPLIT = "batches of fewer records may pass; a single record cannot"
    REORDER = (
        "after earlier batches, if there are any; else the broker will never have what is missing"
    )


_PRODUCE: Final[dict[int, Reaction]] = {
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Reaction.DONE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Reaction.REORDER,
    ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.REORDER,
    ErrorCode.MESSAGE_TOO_LARGE: Reaction.SPLIT,
    ErrorCode.REQUEST_TIMED_OUT: Reaction.RETRY,
    ErrorCode.NETWORK_EXCEPTION: Reaction.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS: Reaction.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Reaction.RETRY,
    ErrorCode.CONCURRENT_TRANSACTIONS: Reaction.RETRY,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.RETRY,
    ErrorCode.NOT_COORDINATOR: Reaction.RETRY,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: Reaction.RETRY,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Reaction.REFRESH,
    ErrorCode.BROKER_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.REPLICA_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.KAFKA_STORAGE_ERROR: Reaction.REFRESH,
    ErrorCode.FENCED_LEADER_EPOCH: Reaction.REFRESH,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Reaction.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.REFRESH,
    ErrorCode.INCONSISTENT_TOPIC_ID: Reaction.REFRESH,
    ErrorCode.INVALID_TXN_STATE: Reaction.ABORT,
    ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORT,
    ErrorCode.INVALID_PRODUCER_EPOCH: Reaction.ASK,
    ErrorCode.PRODUCER_FENCED: Reaction.RECOVER,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.UNSUPPORTED_VERSION: Reaction.FATAL,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Reaction.FATAL,
    # errors of the batch itself, and INVALID_PRODUCER_ID_MAPPING: the default
}

_BEFORE_APPEND: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)

_EVERYWHERE: Final[dict[int, Reaction]] = {
    # the coordinator has moved, or cannot write at the moment
    ErrorCode.NOT_COORDINATOR: Reaction.REFRESH,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.REQUEST_TIMED_OUT: Reaction.RETRY,
    ErrorCode.NETWORK_EXCEPTION: Reaction.RETRY,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    ErrorCode.CONCURRENT_TRANSACTIONS: Reaction.RETRY,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: Reaction.RETRY,
    ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORT,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: Reaction.FATAL,
    ErrorCode.UNSUPPORTED_VERSION: Reaction.FATAL,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Reaction.FATAL,
}
"""For all requests about transactions."""

_INIT_PRODUCER_ID: Final[dict[int, Reaction]] = {
    **_EVERYWHERE,
    # there is no transaction to abort: the requested end completes it
    ErrorCode.TRANSACTION_ABORTABLE: Reaction.RETRY,
    ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.RECOVER,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.RECOVER,
    ErrorCode.INVALID_PRODUCER_EPOCH: Reaction.RECOVER,
    ErrorCode.PRODUCER_FENCED: Reaction.RECOVER,
    ErrorCode.INVALID_TXN_STATE: Reaction.RECOVER,
}

_STRANGER: Final[dict[int, Reaction]] = {
    # a transaction that timed out and one that a successor ended look alike; which of these codes
    # report that depends on the request, its version and the broker's version
    ErrorCode.INVALID_PRODUCER_EPOCH: Reaction.ASK,
    ErrorCode.PRODUCER_FENCED: Reaction.ASK,
    ErrorCode.INVALID_TXN_STATE: Reaction.ASK,
}

_ADD: Final[dict[int, Reaction]] = {
    **_EVERYWHERE,
    **_STRANGER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.RETRY,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Reaction.RETRY,
    # another partition of the same request was refused
    ErrorCode.OPERATION_NOT_ATTEMPTED: Reaction.RETRY,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.ABORT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.ABORT,
    ErrorCode.INVALID_GROUP_ID: Reaction.ABORT,
    ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.ABORT_AND_BUMP,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.ABORT_AND_BUMP,
}

MEMBER_REFUSED: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""The group does not know the member that offsets are committed for, or not in this epoch. Which of
these codes is used depends on the broker version; the client treats them alike."""

_COMMIT_OFFSETS: Final[dict[int, Reaction]] = {
    **_EVERYWHERE,
    **_STRANGER,
    **dict.fromkeys(MEMBER_REFUSED, Reaction.ABORT),
    ErrorCode.REQUEST_TIMED_OUT: Reaction.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.RETRY,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Reaction.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS: Reaction.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Reaction.RETRY,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.ABORT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.ABORT,
    ErrorCode.INVALID_GROUP_ID: Reaction.ABORT,
    ErrorCode.REBALANCE_IN_PROGRESS: Reaction.ABORT,
    # these offsets will never be accepted; the producer itself is still usable
    ErrorCode.OFFSET_METADATA_TOO_LARGE: Reaction.ABORT,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: Reaction.ABORT,
    # the coordinator forgot an id that was not used for a week; a new epoch restores it
    ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.ABORT_AND_BUMP,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.ABORT_AND_BUMP,
}

_END_TRANSACTION: Final[dict[int, Reaction]] = {
    **_EVERYWHERE,
    **_STRANGER,
    ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.ABORT_AND_BUMP,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.ABORT_AND_BUMP,
}

COLUMNS: Final[dict[Api, tuple[dict[int, Reaction], Reaction]]] = {
    Api.PRODUCE: (_PRODUCE, Reaction.ABORT_AND_BUMP),
    Api.INIT_PRODUCER_ID: (_INIT_PRODUCER_ID, Reaction.FATAL),
    Api.ADD_PARTITIONS: (_ADD, Reaction.FATAL),
    Api.ADD_OFFSETS: (_ADD, Reaction.FATAL),
    Api.COMMIT_OFFSETS: (_COMMIT_OFFSETS, Reaction.FATAL),
    Api.END_TRANSACTION: (_END_TRANSACTION, Reaction.FATAL),
}
"""The codes treated specially, and the default, by request."""

_HINTS: Final[dict[int, str]] = {
    ErrorCode.MESSAGE_TOO_LARGE: "the topic's max.message.bytes is smaller than this record",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the principal needs WRITE on the topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        "the principal needs IDEMPOTENT_WRITE on the cluster, or WRITE on any topic; "
        "or set enable_idempotence=False"
    ),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "the principal needs WRITE on the transactional id"
    ),
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (
        "transaction_timeout_ms is larger than the broker's transaction.max.timeout.ms"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the principal needs READ on the group",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: (
        "the text beside an offset is longer than the broker's offset.metadata.max.bytes"
    ),
    ErrorCode.INVALID_RECORD: (
        "the topic refuses the record, for instance one without a key where it is compacted"
    ),
    ErrorCode.INVALID_TIMESTAMP: "the topic refuses the record's timestamp",
    ErrorCode.UNKNOWN_TOPIC_ID: "the topic was deleted, or created again under its name",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "there is no such partition, or this broker has not heard of it yet; look at the name, and "
        "whether the topic was deleted"
    ),
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "the broker does not take this compression_type",
}
"""What the user can do about it."""


def reaction(api: Api, code: int) -> Reaction:
    """The reaction to this error code in the answer to this request."""
    named, others = COLUMNS[api]
    return named.get(code, others)


def may_be_written(code: int) -> bool:
    """Whether a broker that answers a Produce with this code may still have the records. Applies to
    codes after which they are sent again: a leader that waits for replicas may meanwhile lose its
    leadership or its disk, or time out."""
    return code not in _BEFORE_APPEND


def is_named(api: Api, code: int) -> bool:
    """Whether the column of this request lists the code, so that its meaning is known."""
    return code in COLUMNS[api][0]


def refusal(api: Api, code: int, message: str | None = None) -> BrokerError:
    """The user's error for a refused request."""
    return broker_error(code, error_name(code), message, api=api.value, hint=_HINTS.get(code, ""))


def produce_error(code: int, tp: TopicPartition, message: str | None) -> Kip848Error:
    """The user's error for a batch that the broker refused permanently."""
    said = f"{shown(tp)}: {message}" if message else shown(tp)
    return broker_error(code, error_name(code), said, api="Produce", hint=_HINTS.get(code, ""))

"""What an error code leads to, by the request that it answers: one table.

A column lists what it names; everything else is its default. The meaning of a reaction is the same
in every column, so that a code has one place where it is decided.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kip848_client._partition_names import shown
from kip848_client._types import TopicPartition
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import Kip848Error, broker_error

__all__ = ["Api", "Reaction", "produce_error", "reaction"]


class Api(Enum):
    """The requests of a producer."""

    PRODUCE = "Produce"
    INIT_PRODUCER_ID = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    END_TRANSACTION = "EndTxn"


class Reaction(Enum):
    """What to do. Without a transactional id there is nothing to abort: the batch fails, and that
    is all of ``ABORT``; ``ABORT_AND_BUMP`` makes the partition's sequences begin anew as well."""

    RETRY = "the same again, later"
    REFRESH = "the same again, when leaders or coordinators were looked up"
    ABORT = "the transaction can only be aborted"
    ABORT_AND_BUMP = "the same, and sequences need another epoch"
    ASK = "InitProducerId with our own id tells whether we may go on or have a successor"
    RECOVER = "this producer is over; a new one may take its place"
    FATAL = "this producer is over, and another one would get the same answer"
    # -- Produce only
    DONE = "the broker has the records already"
    SPLIT = "batches of fewer records may pass; a single record cannot"
    REORDER = "after earlier batches, if there are any; else the broker lacks something for ever"


_PRODUCE: Final[dict[int, Reaction]] = {
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Reaction.DONE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Reaction.REORDER,
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
    # what is refused for itself, UNKNOWN_PRODUCER_ID and INVALID_PRODUCER_ID_MAPPING: the default
}

_COLUMNS: Final[dict[Api, tuple[dict[int, Reaction], Reaction]]] = {
    Api.PRODUCE: (_PRODUCE, Reaction.ABORT_AND_BUMP),
}
"""By request: what is named, and what everything else leads to."""

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
    ErrorCode.INVALID_RECORD: "the topic refuses the record: compacted topics need keys",
    ErrorCode.INVALID_TIMESTAMP: "the topic refuses the record's timestamp",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "the broker does not take this compression_type",
}
"""The way out, for the user."""


def reaction(api: Api, code: int) -> Reaction:
    """What this error code in the answer to this request leads to."""
    named, others = _COLUMNS[api]
    return named.get(code, others)


def produce_error(code: int, tp: TopicPartition, message: str | None) -> Kip848Error:
    """What the user is told of a batch that the broker refused for good."""
    said = f"{shown(tp)}: {message}" if message else shown(tp)
    return broker_error(code, error_name(code), said, api="Produce", hint=_HINTS.get(code, ""))

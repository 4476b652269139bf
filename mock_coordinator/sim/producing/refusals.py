"""What a node answers a producer that cannot serve it at the moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kip848_client.error_codes import ErrorCode

__all__ = ["BEFORE", "LATE", "refusal_of"]

_COORDINATORS: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
_TRANSACTIONS: Final = (*_COORDINATORS, ErrorCode.CONCURRENT_TRANSACTIONS)
_UNWRITTEN: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT)

BEFORE: Final[dict[type, tuple[ErrorCode, ...]]] = {
    ProduceRequest: (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    InitProducerIdRequest: _TRANSACTIONS,
    AddPartitionsToTxnRequest: _TRANSACTIONS,
    AddOffsetsToTxnRequest: _TRANSACTIONS,
    EndTxnRequest: _TRANSACTIONS,
    TxnOffsetCommitRequest: _COORDINATORS,
}
"""By request: refusals after which nothing was done."""
LATE: Final[dict[type, tuple[ErrorCode, ...]]] = {
    ProduceRequest: (
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ),
    InitProducerIdRequest: _UNWRITTEN,
    AddPartitionsToTxnRequest: _UNWRITTEN,
    AddOffsetsToTxnRequest: _UNWRITTEN,
    EndTxnRequest: _UNWRITTEN,
    TxnOffsetCommitRequest: _UNWRITTEN,
}
"""By request: refusals of what was performed."""


def refusal_of(request: Message, code: int) -> Message:
    """The answer to this request that says this of all that it asks for."""
    return _REFUSE[type(request)](request, code)


def _produce(request: ProduceRequest, code: int) -> Message:
    return ProduceResponse(
        responses=tuple(
            ProduceResponseTopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    ProduceResponsePartitionProduceResponse(
                        index=row.index, error_code=code, base_offset=-1
                    )
                    for row in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def _init(request: InitProducerIdRequest, code: int) -> Message:
    del request
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)


def _add_partitions(request: AddPartitionsToTxnRequest, code: int) -> Message:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=tuple(
            AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code
                    )
                    for index in topic.partitions
                ),
            )
            for topic in request.v3_and_below_topics
        )
    )


def _add_offsets(request: AddOffsetsToTxnRequest, code: int) -> Message:
    del request
    return AddOffsetsToTxnResponse(error_code=code)


def _end(request: EndTxnRequest, code: int) -> Message:
    del request
    return EndTxnResponse(error_code=code)


def _commit(request: TxnOffsetCommitRequest, code: int) -> Message:
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=row.partition_index, error_code=code
                    )
                    for row in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


_REFUSE: Final[dict[type, Callable[[Any, int], Message]]] = {
    ProduceRequest: _produce,
    InitProducerIdRequest: _init,
    AddPartitionsToTxnRequest: _add_partitions,
    AddOffsetsToTxnRequest: _add_offsets,
    EndTxnRequest: _end,
    TxnOffsetCommitRequest: _commit,
}

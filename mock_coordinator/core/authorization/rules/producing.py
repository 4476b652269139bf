"""Rules for producers and transactions: Produce, InitProducerId, AddPartitionsToTxn,
AddOffsetsToTxn, EndTxn, WriteTxnMarkers, DescribeTransactions, ListTransactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kip848_client.core.wire.messages.transaction_admin import (
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    WriteTxnMarkersResponse,
    WriteTxnMarkersResponseWritableTxnMarkerPartitionResult,
    WriteTxnMarkersResponseWritableTxnMarkerResult,
    WriteTxnMarkersResponseWritableTxnMarkerTopicResult,
)
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult,
    EndTxnResponse,
    InitProducerIdResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.authorization.requester import (
    ADMITTED,
    Admission,
    Admitted,
    Denied,
    Requester,
    admitted_in_part,
    divided,
)
from mock_coordinator.core.logs.record_batch import HEADER_BYTES, read_header
from mock_coordinator.core.security.acls import Operation

__all__ = [
    "admit_add_offsets_to_txn",
    "admit_add_partitions_to_txn",
    "admit_describe_transactions",
    "admit_end_txn",
    "admit_init_producer_id",
    "admit_list_transactions",
    "admit_produce",
    "admit_write_txn_markers",
]

_CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_TXN_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_TOPIC_IDS_SINCE: Final = 13
_BETWEEN_BROKERS_SINCE: Final = 4


def admit_produce(requester: Requester, request: ProduceRequest) -> Admission:
    """WRITE on the transactional id where there are transactional records, WRITE on topics."""
    if _has_transactional_records(request) and not (
        request.transactional_id is not None
        and requester.may_transact(Operation.WRITE, request.transactional_id)
    ):
        refused = tuple(_unwritten(topic, _TXN_DENIED) for topic in request.topic_data)
        return Denied(ProduceResponse(responses=refused) if request.acks else None)
    kept: list[Any] = []
    denied: list[ProduceResponseTopicProduceResponse] = []
    for topic in request.topic_data:
        by_id = requester.version >= _TOPIC_IDS_SINCE
        name = requester.name_of(topic.topic_id) if by_id else topic.name
        if name is None or requester.may_topic(Operation.WRITE, name):
            kept.append(topic)
        else:
            denied.append(_unwritten(topic, _TOPIC_DENIED))
    if not denied:
        return ADMITTED
    return admitted_in_part(request, "topic_data", kept, "responses", denied)


def _has_transactional_records(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records or b""
            if len(records) >= HEADER_BYTES and read_header(records).is_transactional:
                return True
    return False


def _unwritten(topic: Any, code: ErrorCode) -> ProduceResponseTopicProduceResponse:
    return ProduceResponseTopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=tuple(
            ProduceResponsePartitionProduceResponse(
                index=partition.index, error_code=code, base_offset=-1
            )
            for partition in topic.partition_data
        ),
    )


def admit_init_producer_id(requester: Requester, request: Any) -> Admission:
    """WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster, or WRITE on any
    topic (KIP-679)."""
    if request.transactional_id is not None:
        code = _TXN_DENIED
        fine = requester.may_transact(Operation.WRITE, request.transactional_id)
    else:
        code = _CLUSTER_DENIED
        fine = requester.may_cluster(Operation.IDEMPOTENT_WRITE) or requester.may_any_topic(
            Operation.WRITE
        )
    return ADMITTED if fine else Denied(InitProducerIdResponse(error_code=code, producer_epoch=-1))


def admit_add_partitions_to_txn(
    requester: Requester, request: AddPartitionsToTxnRequest
) -> Admission:
    """WRITE on the transactional id and each topic; versions 4 and later are for brokers
    (CLUSTER_ACTION). One topic that fails holds back all others: they get
    OPERATION_NOT_ATTEMPTED."""
    if requester.version >= _BETWEEN_BROKERS_SINCE:
        if requester.may_cluster(Operation.CLUSTER_ACTION):
            return ADMITTED
        return Denied(AddPartitionsToTxnResponse(error_code=_CLUSTER_DENIED))
    topics = request.v3_and_below_topics
    if not requester.may_transact(Operation.WRITE, request.v3_and_below_transactional_id):
        return _partitions_refused(topics, {topic.name: _TXN_DENIED for topic in topics})
    codes = {
        topic.name: _TOPIC_DENIED
        for topic in topics
        if not requester.may_topic(Operation.WRITE, topic.name)
    }
    if not codes:
        return ADMITTED
    for topic in topics:
        if topic.name not in codes and requester.broker.catalog.topic(topic.name) is None:
            codes[topic.name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _partitions_refused(topics, codes)


def _partitions_refused(topics: Any, codes: Mapping[str, ErrorCode]) -> Admission:
    return Denied(
        AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=tuple(
                AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=tuple(
                        AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult(
                            partition_index=index,
                            partition_error_code=codes.get(
                                topic.name, ErrorCode.OPERATION_NOT_ATTEMPTED
                            ),
                        )
                        for index in topic.partitions
                    ),
                )
                for topic in topics
            )
        )
    )


def admit_add_offsets_to_txn(requester: Requester, request: Any) -> Admission:
    """WRITE on the transactional id, then READ on the group."""
    if not requester.may_transact(Operation.WRITE, request.transactional_id):
        return Denied(AddOffsetsToTxnResponse(error_code=_TXN_DENIED))
    if not requester.may_group(Operation.READ, request.group_id):
        return Denied(AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    return ADMITTED


def admit_end_txn(requester: Requester, request: Any) -> Admission:
    if requester.may_transact(Operation.WRITE, request.transactional_id):
        return ADMITTED
    return Denied(EndTxnResponse(error_code=_TXN_DENIED))


def admit_write_txn_markers(requester: Requester, request: Any) -> Admission:
    """ALTER or CLUSTER_ACTION on the cluster."""
    if requester.may_cluster(Operation.ALTER) or requester.may_cluster(Operation.CLUSTER_ACTION):
        return ADMITTED
    return Denied(
        WriteTxnMarkersResponse(
            markers=tuple(
                WriteTxnMarkersResponseWritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        WriteTxnMarkersResponseWritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                WriteTxnMarkersResponseWritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=_CLUSTER_DENIED
                                )
                                for index in topic.partition_indexes
                            ),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in request.markers
            )
        )
    )


def admit_describe_transactions(requester: Requester, request: Any) -> Admission:
    """DESCRIBE on each transactional id; topics that may not be described are left out."""
    ids = request.transactional_ids
    kept, refused = divided(ids, lambda each: requester.may_transact(Operation.DESCRIBE, each))
    hidden = set(refused)

    def complete(response: Any) -> Any:
        answered = iter(response.transaction_states)
        merged: list[DescribeTransactionsResponseTransactionState] = []
        for each in ids:
            if each in hidden:
                merged.append(
                    DescribeTransactionsResponseTransactionState(
                        error_code=_TXN_DENIED, transactional_id=each
                    )
                )
                continue
            state = next(answered)
            topics = tuple(
                t for t in state.topics if requester.may_topic(Operation.DESCRIBE, t.topic)
            )
            merged.append(replace(state, topics=topics))
        return replace(response, transaction_states=tuple(merged))

    if not kept:
        return Denied(complete(DescribeTransactionsResponse()))
    return Admitted(replace(request, transactional_ids=kept), complete)


def admit_list_transactions(requester: Requester, _request: Any) -> Admission:
    """Only the transactional ids that may be described."""

    def complete(response: Any) -> Any:
        shown = tuple(
            state
            for state in response.transaction_states
            if requester.may_transact(Operation.DESCRIBE, state.transactional_id)
        )
        return replace(response, transaction_states=shown)

    return Admitted(None, complete)

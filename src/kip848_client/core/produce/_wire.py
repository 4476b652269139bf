"""Translates a producer's requests and answers between the core's types and wire messages. Pure.

Every driver of the producer core (the producer, the simulation) uses it. Nothing here raises,
whatever a broker answers: unrequested or empty parts are left out, or passed to the core.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from kip848_client.core.produce._commands import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    DescribeTransaction,
    EndTransaction,
    FindCoordinator,
    InitProducerId,
    SendProduce,
)
from kip848_client.core.produce._events import (
    CoordinatorFound,
    CoordinatorNotFound,
    ProduceAnswered,
    ProducerIdAnswered,
    TransactionDescribed,
    TransactionNotDescribed,
    TxnAnswered,
)
from kip848_client.core.produce._model import Produced, ProducerId, TransactionVersion
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, TopicPartition
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
)
from kip848_client.core.wire.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kip848_client.error_codes import error_name

__all__ = [
    "ADD_OFFSETS_VERSIONS",
    "ADD_PARTITIONS_VERSIONS",
    "DESCRIBE_VERSIONS",
    "FEATURES_VERSIONS",
    "FIND_COORDINATOR_VERSIONS",
    "add_offsets_request",
    "add_partitions_request",
    "commit_offsets_request",
    "commit_offsets_versions",
    "coordinator_answer",
    "describe_transaction_request",
    "end_transaction_answer",
    "end_transaction_request",
    "end_transaction_versions",
    "features_request",
    "find_coordinator_request",
    "init_producer_id_request",
    "init_producer_id_versions",
    "node_endpoints",
    "offsets_added_answer",
    "offsets_answer",
    "partitions_added_answer",
    "produce_answer",
    "produce_request",
    "produce_versions",
    "producer_id_answer",
    "transaction_described_answer",
    "transaction_level",
]

_Versions = tuple[int, int]

ADD_PARTITIONS_VERSIONS: Final = (3, 3)
"""From version 4 on, brokers use this request."""
ADD_OFFSETS_VERSIONS: Final = (3, 4)
DESCRIBE_VERSIONS: Final = (0, 0)
FIND_COORDINATOR_VERSIONS: Final = (4, 6)
"""Version 4 takes a list of keys (KIP-699)."""
FEATURES_VERSIONS: Final = (3, 4)
"""From version 3 on, brokers return the finalized features (KIP-584)."""

_PRODUCE_LOWEST: Final = 3
_PRODUCE_ADDS: Final = 12
"""From this version on, Produce adds the partition to the transaction (KIP-890)."""
_PRODUCE_BY_ID: Final = 13
_OFFSETS_FENCED: Final = 3
"""From this version on, TxnOffsetCommit names the member (KIP-447)."""
_OFFSETS_ADD: Final = 5
_OFFSETS_BY_ID: Final = 6
_END_BUMPS: Final = 5
_INIT_AGAIN: Final = 3
"""From this version on, InitProducerId may name the current producer id and epoch (KIP-360)."""
_INIT_HIGHEST: Final = 5
_TRANSACTION_VERSION: Final = "transaction.version"


# -- Produce -------------------------------------------------------------------------------------


def produce_request(command: SendProduce) -> ProduceRequest:
    """The Produce request for ``command``, valid in each of ``produce_versions``."""
    batches = sorted(command.batches, key=lambda each: each.tp)
    return ProduceRequest(
        transactional_id=command.transactional_id,
        acks=command.acks,
        timeout_ms=command.timeout_ms,
        topic_data=tuple(
            ProduceRequestTopicProduceData(
                name=topic,
                topic_id=topic_id or ZERO_TOPIC_ID,
                partition_data=tuple(
                    ProduceRequestPartitionProduceData(index=each.tp[1], records=each.data)
                    for each in rows
                ),
            )
            for (topic, topic_id), rows in groupby(
                batches, lambda each: (each.tp[0], each.topic_id)
            )
        ),
    )


def produce_versions(command: SendProduce) -> _Versions:
    """The Produce versions for this command: from 13 on with topic ids; in a transaction, those
    that fit its version."""
    has_ids = all(each.topic_id is not None for each in command.batches)
    highest = _PRODUCE_BY_ID if has_ids else _PRODUCE_BY_ID - 1
    if command.transactional_id is None:
        return (_PRODUCE_LOWEST, highest)
    if command.version is TransactionVersion.V2:
        return (_PRODUCE_ADDS, highest)
    return (_PRODUCE_LOWEST, _PRODUCE_ADDS - 1)


def produce_answer(command: SendProduce, response: ProduceResponse) -> ProduceAnswered:
    """The results of the batches that were sent."""
    by_name: dict[tuple[str, int], TopicPartition] = {}
    by_id: dict[tuple[bytes, int], TopicPartition] = {}
    for batch in command.batches:
        by_name[batch.tp] = batch.tp
        if batch.topic_id is not None:
            by_id[batch.topic_id, batch.tp[1]] = batch.tp
    found: dict[TopicPartition, Produced] = {}
    for topic in response.responses:
        for each in topic.partition_responses:
            tp = by_id.get((topic.topic_id, each.index)) or by_name.get((topic.name, each.index))
            if tp is not None:
                found[tp] = _produced(each)
    return ProduceAnswered(command.produce, found, response.throttle_time_ms)


def _produced(told: ProduceResponsePartitionProduceResponse) -> Produced:
    leader = told.current_leader
    return Produced(
        error_code=told.error_code,
        base_offset=told.base_offset,
        log_append_time_ms=told.log_append_time_ms,
        log_start_offset=told.log_start_offset,
        error_message=told.error_message,
        record_errors={
            each.batch_index: each.batch_index_error_message for each in told.record_errors or ()
        },
        leader=None
        if leader.leader_id == leader.leader_epoch == -1
        else (leader.leader_id, leader.leader_epoch),
    )


def node_endpoints(response: ProduceResponse) -> tuple[tuple[int, str, int], ...]:
    """Addresses of the leaders in a Produce response (KIP-951)."""
    return tuple((each.node_id, each.host, each.port) for each in response.node_endpoints)


# -- producer ids --------------------------------------------------------------------------------


def init_producer_id_request(command: InitProducerId) -> InitProducerIdRequest:
    """The InitProducerId request for ``command``."""
    return InitProducerIdRequest(
        transactional_id=command.transactional_id,
        transaction_timeout_ms=command.transaction_timeout_ms,
        producer_id=command.producer.number,
        producer_epoch=command.producer.epoch,
    )


def init_producer_id_versions(command: InitProducerId) -> _Versions:
    """The InitProducerId versions for this command."""
    return (_INIT_AGAIN if command.producer.number >= 0 else 0, _INIT_HIGHEST)


def producer_id_answer(
    command: InitProducerId, response: InitProducerIdResponse
) -> ProducerIdAnswered:
    """The result, with the producer id and epoch if returned."""
    return ProducerIdAnswered(
        command.number,
        response.error_code,
        ProducerId(response.producer_id, response.producer_epoch),
    )


# -- coordinators and features -------------------------------------------------------------------


def find_coordinator_request(command: FindCoordinator) -> FindCoordinatorRequest:
    """The FindCoordinator request for ``command``."""
    return FindCoordinatorRequest(key_type=command.kind.value, coordinator_keys=(command.key,))


def coordinator_answer(
    command: FindCoordinator, response: FindCoordinatorResponse
) -> tuple[CoordinatorFound | CoordinatorNotFound, tuple[tuple[int, str, int], ...]]:
    """The coordinator and its address."""
    for each in response.coordinators:
        if each.key != command.key:
            continue
        if each.error_code:
            why = each.error_message or error_name(each.error_code)
            return CoordinatorNotFound(command.number, each.error_code, why), ()
        address = (each.node_id, each.host, each.port)
        return CoordinatorFound(command.number, each.node_id), (address,)
    why = "FindCoordinator was answered without a coordinator"
    return CoordinatorNotFound(command.number, 0, why), ()


def features_request() -> ApiVersionsRequest:
    """The ApiVersions request, which a broker answers with the finalized features."""
    return ApiVersionsRequest(
        client_software_name="kip848-client", client_software_version="unspecified"
    )


def transaction_level(response: ApiVersionsResponse) -> int | None:
    """The finalized level of ``transaction.version``: 0 if the cluster has none, ``None`` if the
    answer does not contain it."""
    if response.error_code or response.finalized_features_epoch < 0:
        return None
    return next(
        (
            each.max_version_level
            for each in response.finalized_features
            if each.name == _TRANSACTION_VERSION
        ),
        0,
    )


# -- transactions --------------------------------------------------------------------------------


def _numbers(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return by_topic


def add_partitions_request(command: AddPartitions) -> AddPartitionsToTxnRequest:
    """The AddPartitionsToTxn request (v3) for ``command``."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=command.transactional_id,
        v3_and_below_producer_id=command.producer.number,
        v3_and_below_producer_epoch=command.producer.epoch,
        v3_and_below_topics=tuple(
            AddPartitionsToTxnRequestAddPartitionsToTxnTopic(name=topic, partitions=tuple(numbers))
            for topic, numbers in _numbers(command.partitions).items()
        ),
    )


def partitions_added_answer(
    command: AddPartitions, response: AddPartitionsToTxnResponse
) -> TxnAnswered:
    """The results of the requested partitions."""
    asked = {tp: tp for tp in command.partitions}
    found: dict[TopicPartition, int] = {}
    for topic in response.results_by_topic_v3_and_below:
        for each in topic.results_by_partition:
            tp = asked.get(TopicPartition(topic.name, each.partition_index))
            if tp is not None:
                found[tp] = each.partition_error_code
    return TxnAnswered(command.number, partitions=found)


def add_offsets_request(command: AddOffsets) -> AddOffsetsToTxnRequest:
    """The AddOffsetsToTxn request for ``command``."""
    return AddOffsetsToTxnRequest(
        transactional_id=command.transactional_id,
        producer_id=command.producer.number,
        producer_epoch=command.producer.epoch,
        group_id=command.group_id,
    )


def offsets_added_answer(command: AddOffsets, response: AddOffsetsToTxnResponse) -> TxnAnswered:
    """Whether the group is part of the transaction."""
    return TxnAnswered(command.number, response.error_code)


def commit_offsets_request(command: CommitOffsets) -> TxnOffsetCommitRequest:
    """The TxnOffsetCommit request for ``command``, valid in each of ``commit_offsets_versions``."""
    group = command.group
    rows: dict[tuple[str, TopicId | None], list[TopicPartition]] = {}
    for tp, wanted in command.offsets.items():
        rows.setdefault((tp.topic, wanted.topic_id), []).append(tp)
    return TxnOffsetCommitRequest(
        transactional_id=command.transactional_id,
        group_id=group.group_id,
        producer_id=command.producer.number,
        producer_epoch=command.producer.epoch,
        generation_id_or_member_epoch=group.member_epoch,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=tuple(
            TxnOffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id or ZERO_TOPIC_ID,
                partitions=tuple(_offset(command, tp) for tp in partitions),
            )
            for (topic, topic_id), partitions in rows.items()
        ),
    )


def _offset(command: CommitOffsets, tp: TopicPartition) -> TxnOffsetCommitRequestPartition:
    wanted = command.offsets[tp]
    return TxnOffsetCommitRequestPartition(
        partition_index=tp.partition,
        committed_offset=wanted.offset,
        committed_leader_epoch=wanted.leader_epoch,
        committed_metadata=wanted.metadata,
    )


def commit_offsets_versions(command: CommitOffsets) -> _Versions:
    """The TxnOffsetCommit versions for this command: from 6 on with topic ids."""
    if command.version is TransactionVersion.V1:
        return (_OFFSETS_FENCED, _OFFSETS_ADD - 1)
    has_ids = all(each.topic_id is not None for each in command.offsets.values())
    return (_OFFSETS_ADD, _OFFSETS_BY_ID if has_ids else _OFFSETS_BY_ID - 1)


def offsets_answer(command: CommitOffsets, response: TxnOffsetCommitResponse) -> TxnAnswered:
    """The results of the offsets that were sent."""
    by_name: dict[tuple[str, int], TopicPartition] = {}
    by_id: dict[tuple[bytes, int], TopicPartition] = {}
    for tp, wanted in command.offsets.items():
        by_name[tp] = tp
        if wanted.topic_id is not None:
            by_id[wanted.topic_id, tp.partition] = tp
    found: dict[TopicPartition, int] = {}
    for topic in response.topics:
        for each in topic.partitions:
            key = each.partition_index
            meant = by_id.get((topic.topic_id, key)) or by_name.get((topic.name, key))
            if meant is not None:
                found[meant] = each.error_code
    return TxnAnswered(command.number, partitions=found)


def end_transaction_request(command: EndTransaction) -> EndTxnRequest:
    """The EndTxn request for ``command``."""
    return EndTxnRequest(
        transactional_id=command.transactional_id,
        producer_id=command.producer.number,
        producer_epoch=command.producer.epoch,
        committed=command.commit,
    )


def end_transaction_versions(command: EndTransaction) -> _Versions:
    """The EndTxn versions that fit the transaction's version."""
    if command.version is TransactionVersion.V2:
        return (_END_BUMPS, _END_BUMPS)
    return (0, _END_BUMPS - 1)


def end_transaction_answer(command: EndTransaction, response: EndTxnResponse) -> TxnAnswered:
    """The result of the end, with the next producer id and epoch if returned."""
    producer: ProducerId | None = None
    if response.producer_id >= 0:
        producer = ProducerId(response.producer_id, response.producer_epoch)
    return TxnAnswered(command.number, response.error_code, producer=producer)


def describe_transaction_request(command: DescribeTransaction) -> DescribeTransactionsRequest:
    """The DescribeTransactions request for one transactional id."""
    return DescribeTransactionsRequest(transactional_ids=(command.transactional_id,))


def transaction_described_answer(
    command: DescribeTransaction, response: DescribeTransactionsResponse
) -> TransactionDescribed | TransactionNotDescribed:
    """The state of the transaction."""
    for told in response.transaction_states:
        if told.transactional_id == command.transactional_id:
            return TransactionDescribed(command.number, told.error_code, told.transaction_state)
    return TransactionNotDescribed(command.number, for_good=False)

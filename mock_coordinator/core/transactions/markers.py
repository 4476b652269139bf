"""Markers in partitions: WriteTxnMarkers and DescribeProducers (APIs 27 and 61), and the markers of
our own coordinator.

A partition accepts a marker whether or not it has an open transaction of the producer. It refuses
the marker of a producer that was fenced since (INVALID_PRODUCER_EPOCH 47) or of a coordinator that
was replaced (TRANSACTION_COORDINATOR_FENCED 52). A marker for a partition of ``__consumer_offsets``
goes to the group coordinator, and decides about its pending offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kip848_client.core.wire.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersResponsePartitionResponse,
    DescribeProducersResponseProducerState,
    DescribeProducersResponseTopicResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersRequestWritableTxnMarker,
    WriteTxnMarkersResponse,
    WriteTxnMarkersResponseWritableTxnMarkerPartitionResult,
    WriteTxnMarkersResponseWritableTxnMarkerResult,
    WriteTxnMarkersResponseWritableTxnMarkerTopicResult,
)
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.groups.records.state_records import TransactionEnd
from mock_coordinator.core.groups.service.shards import GroupShards
from mock_coordinator.core.map_orders import java_order, partition_code, string_map_order
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.state.leadership import leader_problem
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, name_problem
from mock_coordinator.core.transaction_coordinator.environment import Ending
from mock_coordinator.core.transaction_coordinator.records import ClientVersion, TxnPartition

__all__ = ["describe_producers", "write_ending", "write_txn_markers"]


@dataclass(frozen=True, slots=True)
class _Marker:
    """What is written to a partition. ``coordinator_epoch`` is the leader epoch of the id's
    partition of ``__transaction_state``; ``raised``: the transaction's end raised the epoch."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    raised: bool = False


def write_ending(
    broker: Broker, groups: GroupShards, now_ms: int, ending: Ending, coordinator_epoch: int
) -> tuple[TxnPartition, ...]:
    """Write the markers of a transaction. Partitions that were deleted, or whose producer is ahead
    of the transaction already, need none. Returns those that have no leader now, and must get
    theirs later."""
    marker = _Marker(ending.producer_id, ending.producer_epoch, ending.committed, coordinator_epoch)
    left: list[TxnPartition] = []
    for topic, partition in ending.partitions:
        if _is_led(broker, topic, partition):
            _write(broker, groups, now_ms, topic, partition, marker)
        else:
            left.append((topic, partition))
    return tuple(left)


def _is_led(broker: Broker, topic_name: str, partition: int) -> bool:
    """Whether a running node leads a partition. One that does not exist needs no leader."""
    topic = broker.catalog.topic(topic_name)
    if topic is None or not 0 <= partition < topic.partitions:
        return True
    leader = broker.nodes.get(broker.partition_state(topic, partition).leader)
    return leader is not None and leader.up


def _write(
    broker: Broker,
    groups: GroupShards,
    now_ms: int,
    topic_name: str,
    partition: int,
    marker: _Marker,
) -> ErrorCode:
    topic = broker.catalog.topic(topic_name)
    log = None if topic is None else broker.logs.of(topic, partition)
    if topic_name == OFFSETS_TOPIC and topic is None:  # it is created at its first use
        _end_offsets(groups, now_ms, partition, marker)
        return ErrorCode.NONE
    if topic is None or log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    problem = leader_problem(broker, topic, partition, log)
    if problem is None:
        problem = log.producers.marker_refusal(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            raised=marker.raised,
        )
    if problem is not None:
        return problem
    if topic_name == OFFSETS_TOPIC:
        _end_offsets(groups, now_ms, partition, marker)
        return ErrorCode.NONE
    log.end_transaction(
        now_ms,
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        committed=marker.committed,
    )
    broker.logs.note_growth(topic, partition)
    return ErrorCode.NONE


def _end_offsets(groups: GroupShards, now_ms: int, partition: int, marker: _Marker) -> None:
    end = TransactionEnd(
        "", marker.producer_id, marker.producer_epoch, marker.committed, marker.coordinator_epoch
    )
    groups.complete_transaction(now_ms, partition, end)


def write_txn_markers(
    broker: Broker, groups: GroupShards, now_ms: int, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Write the markers that another broker, or an administrator, asks for. There is one row for
    each producer, also when it names several, and none for one without partitions."""
    producers: dict[int, dict[tuple[str, int], ErrorCode]] = {}
    for asked in request.markers:
        written = _written(broker, groups, now_ms, asked)
        if written:
            producers.setdefault(asked.producer_id, {}).update(written)
    return WriteTxnMarkersResponse(
        markers=tuple(
            WriteTxnMarkersResponseWritableTxnMarkerResult(
                producer_id=producer_id, topics=_by_topic(producers[producer_id])
            )
            for producer_id in java_order(producers, lambda each: each ^ each >> 32)
        )
    )


def _exists(broker: Broker, name: str, index: int) -> bool:
    topic = broker.catalog.topic(name)
    if topic is None and name == OFFSETS_TOPIC:  # it is created at its first use
        return 0 <= index < broker.config.integer("offsets.topic.num.partitions")
    return topic is not None and broker.logs.of(topic, index) is not None


def _by_topic(
    written: Mapping[tuple[str, int], ErrorCode],
) -> tuple[WriteTxnMarkersResponseWritableTxnMarkerTopicResult, ...]:
    topics: dict[str, list[WriteTxnMarkersResponseWritableTxnMarkerPartitionResult]] = {}
    for name, index in java_order(written, partition_code):
        result = WriteTxnMarkersResponseWritableTxnMarkerPartitionResult(
            partition_index=index, error_code=written[name, index]
        )
        topics.setdefault(name, []).append(result)
    return tuple(
        WriteTxnMarkersResponseWritableTxnMarkerTopicResult(
            name=name, partitions=tuple(topics[name])
        )
        for name in string_map_order(topics)
    )


def _written(
    broker: Broker,
    groups: GroupShards,
    now_ms: int,
    asked: WriteTxnMarkersRequestWritableTxnMarker,
) -> dict[tuple[str, int], ErrorCode]:
    """What became of one marker in each of its partitions."""
    marker = _Marker(
        asked.producer_id,
        asked.producer_epoch,
        asked.transaction_result,
        asked.coordinator_epoch,
        raised=asked.transaction_version >= ClientVersion.V2,
    )
    impossible = asked.producer_epoch < 0 or asked.transaction_version < 0

    def write(name: str, index: int) -> ErrorCode:
        if not _exists(broker, name, index):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if impossible:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return _write(broker, groups, now_ms, name, index, marker)

    named = [(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]
    return {partition: write(*partition) for partition in dict.fromkeys(named)}


def describe_producers(
    broker: Broker, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Who wrote to partitions lately, and whose transaction is open in them (KIP-664)."""
    return DescribeProducersResponse(
        topics=tuple(
            DescribeProducersResponseTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _producers(broker, topic.name, index) for index in topic.partition_indexes
                ),
            )
            for topic in request.topics
        )
    )


def _producers(
    broker: Broker, name: str, partition: int
) -> DescribeProducersResponsePartitionResponse:
    answer = DescribeProducersResponsePartitionResponse(partition_index=partition)
    problem = name_problem(name)
    topic = broker.catalog.topic(name)
    log = None if topic is None else broker.logs.of(topic, partition)
    if problem is not None:
        answer.error_code, answer.error_message = ErrorCode.INVALID_TOPIC_EXCEPTION, problem
    elif topic is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.error_message = default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif log is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif broker.reached not in (None, *broker.partition_state(topic, partition).replicas):
        answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        answer.active_producers = tuple(
            DescribeProducersResponseProducerState(
                producer_id=producer_id,
                producer_epoch=state.epoch,
                last_sequence=state.last_sequence,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=-1 if state.first_offset is None else state.first_offset,
            )
            for producer_id, state in log.producers.active
        )
    return answer

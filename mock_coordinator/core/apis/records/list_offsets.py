"""ListOffsets (key 2) and OffsetForLeaderEpoch (key 23): finding offsets without reading
records."""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochRequestOffsetForLeaderTopic,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderEpochResponseOffsetForLeaderTopicResult,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.map_orders import grouped_as_scala
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.state.leadership import leader_problem
from mock_coordinator.core.topics.catalog import Topic

__all__ = ["list_offsets", "offset_for_leader_epoch"]

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6

_SINCE_VERSION: Final = {
    _LATEST: 1,
    _EARLIEST: 1,
    _MAX_TIMESTAMP: 7,  # KIP-734
    _EARLIEST_LOCAL: 8,  # KIP-405
    _LATEST_TIERED: 9,  # KIP-1005
    _EARLIEST_PENDING_UPLOAD: 11,  # KIP-1023
}
"""The version that introduced each special timestamp; older ones answer UNSUPPORTED_VERSION."""

_Partition = ListOffsetsResponseListOffsetsPartitionResponse


def list_offsets(call: ApiCall[ListOffsetsRequest]) -> ListOffsetsResponse:
    """The offset that each timestamp stands for. A partition that is named twice is refused."""
    broker, version, request = call.broker, call.version, call.request
    twice: set[tuple[str, int]] = set()
    asked: dict[tuple[str, int], ListOffsetsRequestListOffsetsPartition] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            if key in asked:
                twice.add(key)
            asked[key] = partition

    def answer(name: str, index: int) -> _Partition:
        if (name, index) in twice:
            return _error(index, ErrorCode.INVALID_REQUEST)
        return _listed(broker, version, request, name, asked[name, index])

    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsResponseListOffsetsTopicResponse(
                name=name, partitions=tuple(answer(name, index) for index in indexes)
            )
            for name, indexes in grouped_as_scala(asked).items()
        )
    )


def _listed(
    broker: Broker,
    version: int,
    request: ListOffsetsRequest,
    name: str,
    asked: ListOffsetsRequestListOffsetsPartition,
) -> _Partition:
    index = asked.partition_index
    if _is_too_new(version, asked.timestamp):
        return _error(index, ErrorCode.UNSUPPORTED_VERSION)
    known = broker.catalog.topic(name)
    log = None if known is None else broker.logs.of(known, index)
    if known is None or log is None:
        return _error(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    problem = leader_problem(broker, known, index, log, epoch=asked.current_leader_epoch)
    return _list_partition(version, request.isolation_level, asked, log, problem)


def _is_too_new(version: int, timestamp: int) -> bool:
    """Whether a special timestamp means nothing in this version."""
    return timestamp < 0 and version < _SINCE_VERSION.get(timestamp, version + 1)


def _error(index: int, code: ErrorCode) -> _Partition:
    return _Partition(partition_index=index, error_code=code)


def _list_partition(
    version: int,
    isolation_level: int,
    asked: ListOffsetsRequestListOffsetsPartition,
    log: PartitionLog,
    problem: ErrorCode | None,
) -> _Partition:
    index, timestamp = asked.partition_index, asked.timestamp
    if isolation_level not in (0, 1):
        return _error(index, ErrorCode.UNKNOWN_SERVER_ERROR)
    if problem is not None:
        return _error(index, problem)
    epoch = log.leader_epoch if version >= 4 else -1
    if timestamp == _LATEST:
        return _Partition(
            partition_index=index, offset=log.readable_end(isolation_level), leader_epoch=epoch
        )
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return _Partition(partition_index=index, offset=log.log_start_offset, leader_epoch=epoch)
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _Partition(partition_index=index)  # there is no tiered storage here
    if timestamp == _MAX_TIMESTAMP:
        found = log.latest_timestamp()
    else:
        found = log.first_at_or_after(timestamp)
    if found is None or found.offset >= log.readable_end(isolation_level):
        return _Partition(partition_index=index)
    return _Partition(
        partition_index=index, timestamp=found.timestamp, offset=found.offset, leader_epoch=epoch
    )


def offset_for_leader_epoch(
    call: ApiCall[OffsetForLeaderEpochRequest],
) -> OffsetForLeaderEpochResponse:
    """Where each leader epoch ended."""
    broker, request = call.broker, call.request
    return OffsetForLeaderEpochResponse(
        topics=tuple(_epochs_of_topic(broker, topic) for topic in request.topics)
    )


def _epochs_of_topic(
    broker: Broker, topic: OffsetForLeaderEpochRequestOffsetForLeaderTopic
) -> OffsetForLeaderEpochResponseOffsetForLeaderTopicResult:
    known = broker.catalog.topic(topic.topic)
    answers = tuple(_epoch_of_partition(broker, asked, known) for asked in topic.partitions)
    return OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(
        topic=topic.topic, partitions=answers
    )


def _epoch_of_partition(
    broker: Broker,
    asked: OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    topic: Topic | None,
) -> OffsetForLeaderEpochResponseEpochEndOffset:
    answer = OffsetForLeaderEpochResponseEpochEndOffset(partition=asked.partition)
    log = None if topic is None else broker.logs.of(topic, asked.partition)
    if topic is None or log is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return answer
    error = leader_problem(broker, topic, asked.partition, log, epoch=asked.current_leader_epoch)
    if error is not None:
        answer.error_code = error
        return answer
    answer.leader_epoch, answer.end_offset = log.end_of_epoch(asked.leader_epoch)
    return answer

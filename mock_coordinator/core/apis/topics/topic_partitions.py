"""DescribeTopicPartitions (key 75): topics in order of their names, in pages (KIP-966).

A page ends after ``response_partition_limit`` partitions, if necessary within a topic; the cursor
says where the next page begins. Without topics in the request, the pages cover all topics.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic,
)
from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition as _Partition,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.apis.topics.metadata import TOPIC_OPERATIONS, partition_now
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.core.topics.topic_names import INTERNAL_TOPICS, name_problem

__all__ = ["describe_topic_partitions"]

_Topic = DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic
_Cursor = DescribeTopicPartitionsResponseCursor

_LIMIT: Final = "max.request.partition.size.limit"


def describe_topic_partitions(
    call: ApiCall[DescribeTopicPartitionsRequest],
) -> DescribeTopicPartitionsResponse:
    """One page of topics."""
    broker, request = call.broker, call.request
    asked = [topic.name for topic in request.topics]
    cursor = request.cursor
    malformed = _malformed(request, asked)
    if malformed is not None:
        return DescribeTopicPartitionsResponse(
            topics=tuple(_Topic(name=name, error_code=malformed) for name in asked)
        )
    first = "" if cursor is None else cursor.topic_name
    everything = not asked
    names = broker.catalog.topics if everything else asked
    room = max(min(broker.config.integer(_LIMIT), request.response_partition_limit), 1)
    found: list[_Topic] = []
    for name in sorted({name: None for name in names if name >= first}):
        if room == 0:
            return _page(found, _Cursor(topic_name=name, partition_index=0))
        topic = broker.catalog.topic(name)
        if topic is None:
            found.append(_unknown(name))
            continue
        start = cursor.partition_index if cursor is not None and name == first else 0
        end = min(start + room, topic.partitions)
        found.append(_described(broker, topic, range(start, end)))
        if end < topic.partitions:
            return _page(found, _Cursor(topic_name=name, partition_index=end))
        room -= max(end - start, 0)
    return _page(found, None)


def _malformed(request: DescribeTopicPartitionsRequest, asked: list[str]) -> ErrorCode | None:
    cursor = request.cursor
    if cursor is None:
        return ErrorCode.UNKNOWN_SERVER_ERROR if "" in asked else None
    if cursor.partition_index < 0:
        return ErrorCode.INVALID_REQUEST
    later = sorted(name for name in asked if name >= cursor.topic_name)
    if asked and later[:1] != [cursor.topic_name]:
        return ErrorCode.INVALID_REQUEST
    return None


def _page(found: list[_Topic], cursor: _Cursor | None) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=tuple(found), next_cursor=cursor)


def _unknown(name: str) -> _Topic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name_problem(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return _Topic(
        name=name,
        error_code=code,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _described(broker: Broker, topic: Topic, indexes: range) -> _Topic:
    return _Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        topic_authorized_operations=TOPIC_OPERATIONS,
        partitions=tuple(_partition(broker, topic, index) for index in indexes),
    )


def _partition(broker: Broker, topic: Topic, index: int) -> _Partition:
    state = broker.partition_state(topic, index)
    return _Partition(
        **partition_now(broker, topic, index),
        eligible_leader_replicas=state.eligible,
        last_known_elr=(),
    )

"""Rules for reading about topics: Metadata, DescribeTopicPartitions, ListOffsets,
OffsetForLeaderEpoch, DescribeProducers. A topic that must not be described looks as if it did not
exist."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kip848_client.core.types import ZERO_TOPIC_ID
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderEpochResponseOffsetForLeaderTopicResult,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataResponseTopic
from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic,
)
from kip848_client.core.wire.messages.transaction_admin import (
    DescribeProducersResponsePartitionResponse,
    DescribeProducersResponseTopicResponse,
)
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.authorization.requester import (
    Admission,
    Admitted,
    Requester,
    admitted_in_part,
    divided,
)
from mock_coordinator.core.security.acls import Operation, ResourceType
from mock_coordinator.core.state.broker import NO_OPERATIONS
from mock_coordinator.core.topics.topic_names import INTERNAL_TOPICS

__all__ = [
    "admit_describe_producers",
    "admit_describe_topic_partitions",
    "admit_list_offsets",
    "admit_metadata",
    "admit_offset_for_leader_epoch",
]

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def admit_metadata(requester: Requester, request: MetadataRequest) -> Admission:
    """Key 3: DESCRIBE on topics, CREATE to create them on first mention; DESCRIBE on the cluster
    for its authorized operations (versions 8 to 10)."""
    entries = request.topics
    wants_all = entries is None or (requester.version == 0 and not entries)
    if wants_all or entries is None:
        return Admitted(request, lambda response: _finished(requester, request, response, (), True))
    by_id = any(bytes(entry.topic_id) != ZERO_TOPIC_ID for entry in entries)
    kept: list[Any] = []
    denied: list[MetadataResponseTopic] = []
    for entry in dict.fromkeys((entry.name, bytes(entry.topic_id)) for entry in entries):
        name = requester.name_of(entry[1]) if by_id else entry[0]
        original = next(e for e in entries if (e.name, bytes(e.topic_id)) == entry)
        if name is None:
            kept.append(original)  # an unknown id, or malformed: the handler knows the answer
        elif not requester.may_topic(Operation.DESCRIBE, name):
            denied.append(
                MetadataResponseTopic(
                    error_code=_DENIED,
                    name=None if by_id else name,
                    topic_id=entry[1] if by_id else ZERO_TOPIC_ID,
                )
            )
        elif not by_id and _may_not_create(requester, request, name):
            internal = name in INTERNAL_TOPICS
            denied.append(
                MetadataResponseTopic(error_code=_DENIED, name=name, is_internal=internal)
            )
        else:
            kept.append(original)
    hide_all = not kept  # without topics, version 0 would answer with all of them
    return Admitted(
        replace(request, topics=tuple(kept)),
        lambda response: _finished(
            requester,
            request,
            replace(response, topics=()) if hide_all else response,
            denied,
            False,
        ),
    )


def _may_not_create(requester: Requester, request: MetadataRequest, name: str) -> bool:
    if requester.broker.catalog.topic(name) is not None:
        return False
    asked = requester.version < 4 or request.allow_auto_topic_creation
    if not asked or not requester.broker.config.boolean("auto.create.topics.enable"):
        return False
    return not requester.may_cluster(Operation.CREATE) and not requester.may_topic(
        Operation.CREATE, name
    )


def _finished(
    requester: Requester, request: MetadataRequest, response: Any, denied: Any, everything: bool
) -> Any:
    topics = list(response.topics)
    if everything:
        topics = [topic for topic in topics if requester.may_topic(Operation.DESCRIBE, topic.name)]
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                topic.topic_authorized_operations = requester.operations(
                    ResourceType.TOPIC, topic.name
                )
    cluster = NO_OPERATIONS
    if request.include_cluster_authorized_operations and 8 <= requester.version <= 10:
        described = requester.may_cluster(Operation.DESCRIBE)
        cluster = requester.operations(ResourceType.CLUSTER) if described else 0
    return replace(response, topics=(*topics, *denied), cluster_authorized_operations=cluster)


def admit_describe_topic_partitions(requester: Requester, request: Any) -> Admission:
    """Key 75: as Metadata; all topics means those that may be described."""
    wants_all = not request.topics
    kept = [t for t in request.topics if requester.may_topic(Operation.DESCRIBE, t.name)]
    kept_names = {topic.name for topic in kept}
    denied = tuple(
        DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic(
            error_code=_DENIED, name=name
        )
        for name in dict.fromkeys(t.name for t in request.topics)
        if name not in kept_names
    )

    def complete(response: Any) -> Any:
        topics = [
            topic
            for topic in response.topics
            if (wants_all and requester.may_topic(Operation.DESCRIBE, topic.name))
            or topic.name in kept_names
        ]
        for topic in topics:
            topic.topic_authorized_operations = requester.operations(ResourceType.TOPIC, topic.name)
        return replace(response, topics=(*topics, *denied))

    return Admitted(replace(request, topics=tuple(kept)), complete)


def admit_list_offsets(requester: Requester, request: Any) -> Admission:
    """Key 2: DESCRIBE on topics."""
    kept, refused = divided(
        request.topics, lambda topic: requester.may_topic(Operation.DESCRIBE, topic.name)
    )
    denied = tuple(
        ListOffsetsResponseListOffsetsTopicResponse(
            name=topic.name,
            partitions=tuple(
                ListOffsetsResponseListOffsetsPartitionResponse(
                    partition_index=partition.partition_index, error_code=_DENIED
                )
                for partition in topic.partitions
            ),
        )
        for topic in refused
    )
    return admitted_in_part(request, "topics", kept, "topics", denied)


def admit_offset_for_leader_epoch(requester: Requester, request: Any) -> Admission:
    """Key 23: CLUSTER_ACTION, or DESCRIBE on each topic."""
    if requester.may_cluster(Operation.CLUSTER_ACTION):
        return Admitted(request)
    kept, refused = divided(
        request.topics, lambda topic: requester.may_topic(Operation.DESCRIBE, topic.topic)
    )
    denied = tuple(
        OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=tuple(
                OffsetForLeaderEpochResponseEpochEndOffset(
                    partition=partition.partition, error_code=_DENIED
                )
                for partition in topic.partitions
            ),
        )
        for topic in refused
    )
    return admitted_in_part(request, "topics", kept, "topics", denied)


def admit_describe_producers(requester: Requester, request: Any) -> Admission:
    """Key 61: READ on topics."""
    kept, refused = divided(
        request.topics, lambda topic: requester.may_topic(Operation.READ, topic.name)
    )
    denied = tuple(
        DescribeProducersResponseTopicResponse(
            name=topic.name,
            partitions=tuple(
                DescribeProducersResponsePartitionResponse(
                    partition_index=index,
                    error_code=_DENIED,
                    error_message=default_message(_DENIED),
                )
                for index in topic.partition_indexes
            ),
        )
        for topic in refused
    )
    return admitted_in_part(request, "topics", kept, "topics", denied)

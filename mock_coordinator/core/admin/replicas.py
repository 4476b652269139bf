"""ElectLeaders (key 43), AlterPartitionReassignments (key 45), ListPartitionReassignments (key 46).

A partition whose first replica leads it needs no election. Otherwise that replica is elected when
it runs. All nodes share one disk, so that a reassignment is done as soon as it is asked for: none
is ever under way.
"""

from __future__ import annotations

from typing import Final

from kip848_client.wire import ErrorCode, default_message
from kip848_client.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestReassignablePartition,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsResponseReassignablePartitionResponse,
    AlterPartitionReassignmentsResponseReassignableTopicResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersResponsePartitionResult,
    ElectLeadersResponseReplicaElectionResult,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from mock_coordinator.core.broker import Broker
from mock_coordinator.core.create_topics import TopicRefused, check_replicas

__all__ = ["alter_reassignments", "elect_leaders", "list_reassignments"]

_Elected = ElectLeadersResponsePartitionResult
_Election = ElectLeadersResponseReplicaElectionResult
_Reassigned = AlterPartitionReassignmentsResponseReassignablePartitionResponse

_ELECTION_TYPES: Final = (0, 1)  # preferred, unclean


def elect_leaders(broker: Broker, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Say of each partition that it has its leader; of all partitions at once, nothing at all."""
    asked = request.topic_partitions
    if request.election_type not in _ELECTION_TYPES:
        text = f"Unknown election type {request.election_type}"
        return ElectLeadersResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            replica_election_results=tuple(
                _Election(
                    topic=topic.topic,
                    partition_result=tuple(
                        _Elected(
                            partition_id=index,
                            error_code=ErrorCode.INVALID_REQUEST,
                            error_message=text,
                        )
                        for index in topic.partitions
                    ),
                )
                for topic in asked or ()
            ),
        )
    if asked is None:
        results = tuple(_Election(topic=name) for name in broker.catalog.topics)
    else:
        results = tuple(
            _Election(
                topic=topic.topic,
                partition_result=tuple(
                    _elected(broker, topic.topic, index) for index in topic.partitions
                ),
            )
            for topic in asked
        )
    return ElectLeadersResponse(replica_election_results=results)


def _elected(broker: Broker, name: str, index: int) -> _Elected:
    topic = broker.catalog.topic(name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        text = f"No such topic as {name}"
    elif not 0 <= index < topic.partitions:
        text = f"No such partition as {name}-{index}"
    else:
        code = ErrorCode.ELECTION_NOT_NEEDED
        text = default_message(code)
    return _Elected(partition_id=index, error_code=code, error_message=text)


def alter_reassignments(
    broker: Broker, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Accept the replicas that a partition has, refuse all others."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if request.topics else "",
        responses=tuple(
            AlterPartitionReassignmentsResponseReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _reassigned(broker, topic.name, asked) for asked in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _reassigned(
    broker: Broker, name: str, asked: AlterPartitionReassignmentsRequestReassignablePartition
) -> _Reassigned:
    index = asked.partition_index
    topic = broker.catalog.topic(name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    text: str | None = None
    if topic is None:
        text = f"Unable to find a topic named {name}."
    elif not 0 <= index < topic.partitions:
        text = f"Unable to find partition {name}:{index}."
    elif asked.replicas is None:
        code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    else:
        code = ErrorCode.NONE
        try:
            check_replicas(broker, asked.replicas)
        except TopicRefused as refused:
            code, text = refused.code, refused.message
    return _Reassigned(partition_index=index, error_code=code, error_message=text)


def list_reassignments(
    _broker: Broker, _request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """None is ever under way."""
    return ListPartitionReassignmentsResponse(error_message=None)

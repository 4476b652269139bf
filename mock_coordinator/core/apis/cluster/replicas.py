"""ElectLeaders (key 43), AlterPartitionReassignments (key 45), ListPartitionReassignments (key 46).

If the first replica leads its partition, no election is needed. Otherwise it is elected if its
broker runs. All brokers share a disk, so a reassignment completes at once and none is ever in
progress.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.replicas import (
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
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.apis.topics.create_topics import check_replicas
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.catalog import Topic

__all__ = ["alter_reassignments", "elect_leaders", "list_reassignments"]

_Elected = ElectLeadersResponsePartitionResult
_Election = ElectLeadersResponseReplicaElectionResult
_Reassigned = AlterPartitionReassignmentsResponseReassignablePartitionResponse

_PREFERRED: Final = 0
_UNCLEAN: Final = 1
_WHOLE_ERROR_SINCE: Final = 1
"""From this version on a refusal of the whole request has a field."""


def _none_elected(
    version: int, request: ElectLeadersRequest, code: ErrorCode, text: str | None
) -> ElectLeadersResponse:
    """The refusal of a request as a whole."""
    return ElectLeadersResponse(
        error_code=code if version >= _WHOLE_ERROR_SINCE else ErrorCode.NONE,
        replica_election_results=tuple(
            _Election(
                topic=topic.topic,
                partition_result=tuple(
                    _Elected(partition_id=index, error_code=code, error_message=text)
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


def elect_leaders(call: ApiCall[ElectLeadersRequest]) -> ElectLeadersResponse:
    """Have the first replica of each partition lead; of all partitions, the answer names only those
    that needed it."""
    broker, version, request = call.broker, call.version, call.request
    asked = request.topic_partitions
    if asked == ():
        return ElectLeadersResponse()
    if request.timeout_ms <= 0:
        return _none_elected(version, request, ErrorCode.REQUEST_TIMED_OUT, None)
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        text = f"Unknown election type {request.election_type}"
        return _none_elected(version, request, ErrorCode.INVALID_REQUEST, text)
    unclean = request.election_type == _UNCLEAN
    if asked is None:
        results = tuple(
            _Election(topic=topic.name, partition_result=_needed(broker, topic, unclean=unclean))
            for topic in broker.catalog.topics.values()
        )
    else:
        results = tuple(
            _Election(
                topic=topic.topic,
                partition_result=tuple(
                    _elected(broker, topic.topic, index, unclean=unclean)
                    for index in topic.partitions
                ),
            )
            for topic in asked
        )
    return ElectLeadersResponse(replica_election_results=results)


def _needed(broker: Broker, topic: Topic, *, unclean: bool) -> tuple[_Elected, ...]:
    """The partitions of a topic that were not led as they should be."""
    results = (
        _elected(broker, topic.name, index, unclean=unclean) for index in range(topic.partitions)
    )
    return tuple(each for each in results if each.error_code != ErrorCode.ELECTION_NOT_NEEDED)


def _elected(broker: Broker, name: str, index: int, *, unclean: bool) -> _Elected:
    topic = broker.catalog.topic(name)
    code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if topic is None:
        text = f"No such topic as {name}"
    elif not 0 <= index < topic.partitions:
        text = f"No such partition as {name}-{index}"
    else:
        code = _election(broker, topic, index, unclean=unclean)
        text = default_message(code) if code else None
    return _Elected(partition_id=index, error_code=code, error_message=text)


def _election(broker: Broker, topic: Topic, index: int, *, unclean: bool) -> ErrorCode:
    """Have the first replica lead, when it can and does not; an unclean election is for partitions
    that have no leader."""
    state = broker.partition_state(topic, index)
    preferred = broker.nodes[state.replicas[0]]
    if state.leader == preferred.node_id or (unclean and state.leader is not None):
        return ErrorCode.ELECTION_NOT_NEEDED
    if not preferred.up or preferred.fenced:
        if unclean:
            return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    broker.disk.leaders.want(topic, index)
    return ErrorCode.NONE


def alter_reassignments(
    call: ApiCall[AlterPartitionReassignmentsRequest],
) -> AlterPartitionReassignmentsResponse:
    """Give partitions other replicas, which have all records at once."""
    broker, request = call.broker, call.request
    if request.timeout_ms <= 0 and request.topics:
        return _not_reassigned_in_time(request)
    same_size = not request.allow_replication_factor_change
    return AlterPartitionReassignmentsResponse(
        # a request for nothing is answered with the default (seen on Kafka 4.4.0)
        allow_replication_factor_change=not (request.topics and same_size),
        error_message=None if request.topics else "",
        responses=tuple(
            AlterPartitionReassignmentsResponseReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _reassigned(broker, topic.name, asked, same_size=same_size)
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _not_reassigned_in_time(
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse:
    code = ErrorCode.REQUEST_TIMED_OUT
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=None,
        responses=tuple(
            AlterPartitionReassignmentsResponseReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _Reassigned(
                        partition_index=asked.partition_index, error_code=code, error_message=None
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _reassigned(
    broker: Broker,
    name: str,
    asked: AlterPartitionReassignmentsRequestReassignablePartition,
    *,
    same_size: bool,
) -> _Reassigned:
    index = asked.partition_index
    code, text = ErrorCode.NONE, None
    try:
        _reassign(broker, name, index, asked.replicas, same_size=same_size)
    except Refused as refused:
        code, text = refused.code, refused.message
    return _Reassigned(partition_index=index, error_code=code, error_message=text)


def _reassign(
    broker: Broker, name: str, index: int, replicas: tuple[int, ...] | None, *, same_size: bool
) -> None:
    """Check one partition and want its new replicas. Raises ``Refused``."""
    topic = broker.catalog.topic(name)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        raise Refused(unknown, f"Unable to find a topic named {name}.")
    if not 0 <= index < topic.partitions:
        raise Refused(unknown, f"Unable to find partition {name}:{index}.")
    if replicas is None:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    check_replicas(broker, replicas)
    before = len(broker.partition_state(topic, index).replicas)
    if same_size and len(replicas) != before:
        text = f"The replication factor is changed from {before} to {len(replicas)}"
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if all(broker.nodes[node_id].fenced for node_id in replicas):
        text = "none of the replicas runs, and a reassignment is done at once or not at all"
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    broker.disk.leaders.want(topic, index, replicas)


def list_reassignments(
    _call: ApiCall[ListPartitionReassignmentsRequest],
) -> ListPartitionReassignmentsResponse:
    """None is ever under way."""
    return ListPartitionReassignmentsResponse(error_message=None)

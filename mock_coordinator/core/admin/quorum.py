"""DescribeQuorum (key 55), UnregisterBroker (64), AddRaftVoter (80), RemoveRaftVoter (81) and
UnregisterController (94): one controller, in the broker's process, that nobody can add to.

There is no metadata log. Its length is told as the number of changes of topics so far, so that
it grows, and the controller's own listener is not told, because there is none.
"""

from __future__ import annotations

from typing import Final

from kip848_client.error_codes import ErrorCode, default_message
from kip848_client.wire.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
    DescribeQuorumResponseTopicData,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from mock_coordinator.core.broker import Broker
from mock_coordinator.core.map_orders import string_map_order

__all__ = [
    "add_raft_voter",
    "describe_quorum",
    "remove_raft_voter",
    "unregister_broker",
    "unregister_controller",
]

_Partition = DescribeQuorumResponsePartitionData

_LISTENER: Final = "CONTROLLER"
_METADATA_TOPIC: Final = "__cluster_metadata"
_EPOCH: Final = 1
_NODES_SINCE: Final = 2


def describe_quorum(
    broker: Broker, now_ms: int, version: int, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    """The one voter of the metadata partition. Kafka refuses a request that asks for more."""
    asked = request.topics
    good = (
        len(asked) == 1
        and asked[0].topic_name == _METADATA_TOPIC
        and [each.partition_index for each in asked[0].partitions] == [0]
    )
    if not good:
        return DescribeQuorumResponse(topics=tuple(_refused(topic) for topic in asked))
    end, controller = broker.catalog.version, broker.nodes.controller_id
    voter = DescribeQuorumResponseReplicaState(
        replica_id=controller,
        log_end_offset=end,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = _Partition(
        leader_id=controller,
        leader_epoch=_EPOCH,
        high_watermark=end,
        current_voters=(voter,),
    )
    topic = DescribeQuorumResponseTopicData(topic_name=_METADATA_TOPIC, partitions=(partition,))
    nodes = (DescribeQuorumResponseNode(node_id=controller),)
    return DescribeQuorumResponse(topics=(topic,), nodes=nodes if version >= _NODES_SINCE else ())


def _refused(topic: DescribeQuorumRequestTopicData) -> DescribeQuorumResponseTopicData:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponseTopicData(
        topic_name=topic.topic_name,
        partitions=tuple(
            _Partition(
                partition_index=each.partition_index,
                error_code=code,
                error_message=default_message(code),
            )
            for each in topic.partitions
        ),
    )


def unregister_broker(broker: Broker, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Only brokers that are gone could be unregistered, and there are none."""
    if broker.nodes.get(request.broker_id) is not None:
        text = "a broker that serves requests is not unregistered here"
        return UnregisterBrokerResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=text)
    text = f"Broker ID {request.broker_id} is not currently registered"
    return UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
        error_message=text if broker.profile.unregister_says_why else "",
    )


def unregister_controller(
    broker: Broker, request: UnregisterControllerRequest
) -> UnregisterControllerResponse:
    """The only controller is the active one."""
    if request.controller_id == broker.nodes.controller_id:
        return UnregisterControllerResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Controller cannot unregister itself while it is active.",
        )
    return UnregisterControllerResponse(
        error_code=ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
        error_message=f"Controller ID {request.controller_id} is not currently registered.",
    )


def add_raft_voter(broker: Broker, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """The quorum is static (kraft.version 0)."""
    listeners = request.listeners
    code, text = _quorum_refusal(broker, request.cluster_id, "adding")
    endpoints = {each.name.upper(): f"{each.host}/<unresolved>:{each.port}" for each in listeners}
    if code != ErrorCode.UNSUPPORTED_VERSION:
        pass
    elif _is_no_voter(request.voter_id, request.voter_directory_id):
        code, text = ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter"
    elif _LISTENER not in endpoints:
        shown = ", ".join(
            f"ListenerName({name})={endpoints[name]}" for name in string_map_order(endpoints)
        )
        code = ErrorCode.INVALID_REQUEST
        text = (
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{shown}}})) "
            f"for the default listener ListenerName({_LISTENER})"
        )
    return AddRaftVoterResponse(error_code=code, error_message=text)


def remove_raft_voter(broker: Broker, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """The quorum is static (kraft.version 0)."""
    code, text = _quorum_refusal(broker, request.cluster_id, "removing")
    if code == ErrorCode.UNSUPPORTED_VERSION and _is_no_voter(
        request.voter_id, request.voter_directory_id
    ):
        code, text = ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
    return RemoveRaftVoterResponse(error_code=code, error_message=text)


def _is_no_voter(voter_id: int, directory_id: bytes) -> bool:
    return voter_id < 0 or directory_id == bytes(16)


def _quorum_refusal(broker: Broker, cluster_id: str | None, what: str) -> tuple[ErrorCode, str]:
    own = broker.disk.cluster_id
    if cluster_id is not None and cluster_id != own:
        text = f'The given id "{cluster_id}" doesn\'t match the cluster id "{own}"'
        return ErrorCode.INCONSISTENT_CLUSTER_ID, text
    return (
        ErrorCode.UNSUPPORTED_VERSION,
        f"Cluster doesn't support {what} voter because the kraft.version feature is 0",
    )

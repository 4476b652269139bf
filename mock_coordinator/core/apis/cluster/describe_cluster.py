"""DescribeCluster (key 60): the brokers, for administrators (KIP-700, KIP-1073)."""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeClusterResponseDescribeClusterBroker,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.apis.topics.metadata import CLUSTER_OPERATIONS
from mock_coordinator.core.state.broker import NO_OPERATIONS

__all__ = ["describe_cluster"]

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def describe_cluster(call: ApiCall[DescribeClusterRequest]) -> DescribeClusterResponse:
    """The cluster's id and members."""
    broker, request = call.broker, call.request
    if request.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an "
            "endpoint of type CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    operations = request.include_cluster_authorized_operations
    shown = tuple(broker.nodes) if request.include_fenced_brokers else broker.nodes.alive
    return DescribeClusterResponse(
        cluster_id=broker.disk.cluster_id,
        controller_id=broker.nodes.controller_id,
        brokers=tuple(
            DescribeClusterResponseDescribeClusterBroker(
                broker_id=node.node_id,
                host=node.host,
                port=node.port,
                rack=node.rack,
                is_fenced=node.fenced,
            )
            for node in shown
        ),
        cluster_authorized_operations=CLUSTER_OPERATIONS if operations else NO_OPERATIONS,
    )

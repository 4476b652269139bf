"""DescribeCluster (key 60): the one broker, for administrators (KIP-700)."""

from __future__ import annotations

from typing import Final

from kip848_client.wire import ErrorCode
from kip848_client.wire.messages.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeClusterResponseDescribeClusterBroker,
)
from mock_coordinator.core.broker import NO_OPERATIONS, Broker
from mock_coordinator.core.metadata import CLUSTER_OPERATIONS

__all__ = ["describe_cluster"]

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def describe_cluster(broker: Broker, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """The cluster's id and members."""
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
    return DescribeClusterResponse(
        cluster_id=broker.disk.cluster_id,
        controller_id=broker.node_id,
        brokers=(
            DescribeClusterResponseDescribeClusterBroker(
                broker_id=broker.node_id,
                host=broker.host,
                port=broker.port,
                rack=broker.config.rack,
            ),
        ),
        cluster_authorized_operations=CLUSTER_OPERATIONS if operations else NO_OPERATIONS,
    )

"""APIs of groups, which the group coordinators answer (``groups``)."""

from __future__ import annotations

from typing import Any

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall

__all__ = ["coordinate_group", "describe_switched_off", "heartbeat_switched_off"]


def coordinate_group(call: ApiCall[Any]) -> Message | None:
    """Ask the coordinator of the group, or of each group that is named."""
    return call.services.groups.handle(call.now_ms, call.received)


def heartbeat_switched_off(
    _call: ApiCall[ConsumerGroupHeartbeatRequest],
) -> ConsumerGroupHeartbeatResponse:
    """Where ``group.coordinator.rebalance.protocols`` lacks ``consumer``."""
    return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)


def describe_switched_off(
    call: ApiCall[ConsumerGroupDescribeRequest],
) -> ConsumerGroupDescribeResponse:
    """Where ``group.coordinator.rebalance.protocols`` lacks ``consumer``: each group is refused."""
    return ConsumerGroupDescribeResponse(
        groups=tuple(
            ConsumerGroupDescribeResponseDescribedGroup(
                group_id=each, error_code=ErrorCode.UNSUPPORTED_VERSION
            )
            for each in call.request.group_ids
        )
    )

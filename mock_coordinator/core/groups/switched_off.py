"""Consumer groups (KIP-848) where ``group.coordinator.rebalance.protocols`` lacks ``consumer``.

Their APIs are advertised all the same, and every request is answered with UNSUPPORTED_VERSION: once
for the whole answer, or for each group that is asked for. Such a broker looks at the setting before
anything else, so that a client without rights gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kip848_client.error_codes import ErrorCode
from kip848_client.wire._fields import Message
from kip848_client.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from kip848_client.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

__all__ = ["NO_CONSUMER_GROUPS"]

_REFUSED: Final = ErrorCode.UNSUPPORTED_VERSION


def _heartbeat(_request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=_REFUSED)


def _describe(request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=tuple(
            ConsumerGroupDescribeResponseDescribedGroup(group_id=each, error_code=_REFUSED)
            for each in request.group_ids
        )
    )


NO_CONSUMER_GROUPS: Final[Mapping[int, Callable[[Any], Message]]] = {
    ConsumerGroupHeartbeatRequest.API_KEY: _heartbeat,
    ConsumerGroupDescribeRequest.API_KEY: _describe,
}
"""API key -> what refuses a request."""

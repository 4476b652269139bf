"""APIs that are told, and refused: share groups (KIP-932), streams groups (KIP-1071), and consumer
groups where their protocol is switched off.

No share group and no streams group is coordinated here. So this is a broker that knows both and has
them switched off: ``share.version`` and ``streams.version`` are supported features at level 0, and
each request is answered with UNSUPPORTED_VERSION where the API has its errors: once for the whole
answer, or for each group that is asked for. Such a broker looks at the feature before anything
else, so whoever asks, may they or not, for whatever group, hears the same.

What share coordinators are asked to keep (keys 83 to 87) is not among these: a broker with the
feature off serves them to other brokers, and what is not kept must not be accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kip848_client.error_codes import ErrorCode, default_message
from kip848_client.wire._fields import Message
from kip848_client.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from kip848_client.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kip848_client.wire.messages.share_fetch import ShareAcknowledgeResponse, ShareFetchResponse
from kip848_client.wire.messages.share_group import (
    ShareGroupDescribeResponse,
    ShareGroupDescribeResponseDescribedGroup,
    ShareGroupHeartbeatResponse,
)
from kip848_client.wire.messages.share_group_offsets import (
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroup,
)
from kip848_client.wire.messages.streams_group import (
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseDescribedGroup,
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from kip848_client.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

__all__ = ["NO_CONSUMER_GROUPS", "UNIMPLEMENTED"]

_REFUSED: Final = ErrorCode.UNSUPPORTED_VERSION


def _each(response: type[Any], row: type[Any]) -> Callable[[Any], Message]:
    """The same refusal for each group that is described."""
    return lambda request: response(
        groups=tuple(row(group_id=each, error_code=_REFUSED) for each in request.group_ids)
    )


def _describe_share_offsets(request: DescribeShareGroupOffsetsRequest) -> Message:
    return DescribeShareGroupOffsetsResponse(
        groups=tuple(
            DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroup(
                group_id=group.group_id, error_code=_REFUSED
            )
            for group in request.groups
        )
    )


def _wholly(response: type[Any], **fields: Any) -> Callable[[Any], Message]:
    """The same refusal whatever is asked."""
    return lambda _request: response(error_code=_REFUSED, **fields)


_TEXT: Final = default_message(_REFUSED)

UNIMPLEMENTED: Final[Mapping[int, Callable[[Any], Message]]] = {
    76: _wholly(ShareGroupHeartbeatResponse),
    77: _each(ShareGroupDescribeResponse, ShareGroupDescribeResponseDescribedGroup),
    78: _wholly(ShareFetchResponse),
    79: _wholly(ShareAcknowledgeResponse),
    88: _wholly(StreamsGroupHeartbeatResponse),
    89: _each(StreamsGroupDescribeResponse, StreamsGroupDescribeResponseDescribedGroup),
    90: _describe_share_offsets,
    91: _wholly(AlterShareGroupOffsetsResponse, error_message=_TEXT),
    92: _wholly(DeleteShareGroupOffsetsResponse, error_message=_TEXT),
    93: _wholly(StreamsGroupTopologyDescriptionUpdateResponse),
}
"""API key -> what refuses a request."""

NO_CONSUMER_GROUPS: Final[Mapping[int, Callable[[Any], Message]]] = {
    68: _wholly(ConsumerGroupHeartbeatResponse),
    69: _each(ConsumerGroupDescribeResponse, ConsumerGroupDescribeResponseDescribedGroup),
}
"""The same, of a broker whose ``group.coordinator.rebalance.protocols`` lacks ``consumer``."""

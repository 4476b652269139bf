"""Responses of a broker that does not coordinate a group, or has not loaded it yet.

Theory of operation
===================

Kafka validates a request itself (ids, names, authorization) before it looks for the group's
coordinator. So an invalid request gets the same error everywhere, and only a valid one gets
NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS. Here the request is first given to a coordinator
without groups: errors in its response that do not depend on any group are kept, and everything else
is replaced. Observed on a cluster of three brokers of Kafka 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire import APIS
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
)
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupDescribeRequest,
    ConnectGroupDescribeResponse,
    ConnectGroupDescribeResponseDescribedGroup,
)
from kip848_client.core.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteGroupsResponseDeletableGroupResult,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
)
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from kip848_client.core.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.profile import Profile

__all__ = ["refusal"]

_DECIDED_BEFORE_LOOKUP: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
    }
)
"""Refusals that are decided before a coordinator is looked for."""

_DENIED: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED)

_BATCHED_FETCH_SINCE: Final = 8
_FETCH_ERROR_SINCE: Final = 2
_NULL_PROTOCOL_SINCE: Final = 7


def refusal(
    profile: Profile, received: RequestReceived, code: ErrorCode, answer: Message | None
) -> Message:
    """The answer of a broker that cannot serve a request about groups because of ``code``.

    ``answer`` is what a coordinator of no groups says; ``None`` when it would let the request wait.
    """
    kind = type(received.request)
    checked = profile.heartbeats_checked_by_any or kind is not ConsumerGroupHeartbeatRequest
    if answer is not None and _error(answer) in (_DECIDED_BEFORE_LOOKUP if checked else _DENIED):
        return answer
    if kind is SyncGroupRequest and _error(answer) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
        return answer or HeartbeatResponse()
    refuse = _REFUSE.get(kind)
    if refuse is not None:
        return refuse(received, code, answer)
    response: Callable[..., Message] = APIS[kind.API_KEY].response
    return response(error_code=code)


def _error(answer: Message | None) -> int:
    code = getattr(answer, "error_code", 0)
    return code if isinstance(code, int) else 0


def _heartbeat(_received: RequestReceived, code: ErrorCode, _answer: Any) -> Message:
    # a classic member is not to be troubled while its group is loaded
    loading = code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else code)


def _join(received: RequestReceived, code: ErrorCode, _answer: Any) -> Message:
    request: Any = received.request
    name = None if received.version >= _NULL_PROTOCOL_SINCE else ""
    return JoinGroupResponse(
        error_code=code, protocol_name=name, leader="", member_id=request.member_id
    )


def _per_partition(_received: RequestReceived, code: ErrorCode, answer: Any) -> Message:
    """Of a commit: topics that do not exist are refused as such, the rest because of ``code``."""
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                partition
                if partition.error_code in _DECIDED_BEFORE_LOOKUP
                else replace(partition, error_code=code)
                for partition in topic.partitions
            ),
        )
        for topic in answer.topics
    )
    refused: Message = replace(answer, topics=topics)
    return refused


def _offset_fetch(received: RequestReceived, code: ErrorCode, answer: Any) -> Message:
    request: Any = received.request
    if received.version >= _BATCHED_FETCH_SINCE:
        known = {
            group.group_id: group
            for group in answer.groups
            if group.error_code in _DECIDED_BEFORE_LOOKUP
        }
        return OffsetFetchResponse(
            groups=tuple(
                known[group.group_id]
                if group.group_id in known
                else OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
                for group in request.groups
            )
        )
    if received.version >= _FETCH_ERROR_SINCE:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        )
    )


def _consumer_describe(_received: RequestReceived, code: ErrorCode, answer: Any) -> Message:
    described = ConsumerGroupDescribeResponseDescribedGroup
    return ConsumerGroupDescribeResponse(groups=_refused_groups(described, code, answer))


def _connect_describe(_received: RequestReceived, code: ErrorCode, answer: Any) -> Message:
    described = ConnectGroupDescribeResponseDescribedGroup
    return ConnectGroupDescribeResponse(groups=_refused_groups(described, code, answer))


def _refused_groups(described: type[Any], code: ErrorCode, answer: Any) -> tuple[Any, ...]:
    return tuple(
        group
        if group.error_code in _DECIDED_BEFORE_LOOKUP
        else described(group_id=group.group_id, error_code=code)
        for group in answer.groups
    )


def _describe(_received: RequestReceived, code: ErrorCode, answer: Any) -> Message:
    return DescribeGroupsResponse(
        groups=tuple(
            group
            if group.error_code in _DECIDED_BEFORE_LOOKUP
            else DescribeGroupsResponseDescribedGroup(group_id=group.group_id, error_code=code)
            for group in answer.groups
        )
    )


def _delete(_received: RequestReceived, code: ErrorCode, answer: Any) -> Message:
    return DeleteGroupsResponse(
        results=tuple(
            result
            if result.error_code in _DECIDED_BEFORE_LOOKUP
            else DeleteGroupsResponseDeletableGroupResult(
                group_id=result.group_id, error_code=code, error_message=None
            )
            for result in answer.results
        )
    )


_REFUSE: Final[dict[type, Callable[[RequestReceived, ErrorCode, Any], Message]]] = {
    ConnectGroupDescribeRequest: _connect_describe,
    ConsumerGroupDescribeRequest: _consumer_describe,
    DeleteGroupsRequest: _delete,
    DescribeGroupsRequest: _describe,
    HeartbeatRequest: _heartbeat,
    JoinGroupRequest: _join,
    OffsetCommitRequest: _per_partition,
    OffsetFetchRequest: _offset_fetch,
    TxnOffsetCommitRequest: _per_partition,
}

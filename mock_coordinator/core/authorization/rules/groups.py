"""Rules for groups: join, describe, find and delete; heartbeats of both protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.classic_group import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from kip848_client.core.wire.messages.client_assignors import (
    ConsumerGroupInstallAssignmentResponse,
    ConsumerGroupPrepareAssignmentResponse,
)
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupDescribeResponse,
    ConnectGroupDescribeResponseDescribedGroup,
    ConnectGroupHeartbeatResponse,
    ConnectGroupInstallAssignmentResponse,
    ConnectGroupPrepareAssignmentResponse,
)
from kip848_client.core.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsResponse,
    DeleteGroupsResponseDeletableGroupResult,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
)
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.authorization.requester import (
    ADMITTED,
    Admission,
    Admitted,
    AuthorizationRule,
    Denied,
    Requester,
    admitted_in_part,
    divided,
)
from mock_coordinator.core.security.acls import Operation, ResourceType
from mock_coordinator.core.state.broker import NO_OPERATIONS

__all__ = [
    "admit_connect_group_describe",
    "admit_connect_group_heartbeat",
    "admit_connect_group_install_assignment",
    "admit_connect_group_prepare_assignment",
    "admit_consumer_group_describe",
    "admit_consumer_group_heartbeat",
    "admit_consumer_group_install_assignment",
    "admit_consumer_group_prepare_assignment",
    "admit_delete_groups",
    "admit_describe_groups",
    "admit_find_coordinator",
    "admit_heartbeat",
    "admit_join_group",
    "admit_leave_group",
    "admit_list_groups",
    "admit_sync_group",
]

_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)
_BATCHED_SINCE: Final = 4
_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2


def admit_consumer_group_heartbeat(
    requester: Requester, request: ConsumerGroupHeartbeatRequest
) -> Admission:
    """READ on the group, then DESCRIBE on every topic that is subscribed to by name."""
    if not requester.may_group(Operation.READ, request.group_id):
        return Denied(ConsumerGroupHeartbeatResponse(error_code=_DENIED))
    names = dict.fromkeys(request.subscribed_topic_names or ())
    if all(requester.may_topic(Operation.DESCRIBE, name) for name in names):
        return ADMITTED
    return Denied(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))


def admit_join_group(requester: Requester, request: Any) -> Admission:
    if requester.may_group(Operation.READ, request.group_id):
        return ADMITTED
    return Denied(
        JoinGroupResponse(
            error_code=_DENIED,
            protocol_name=None if requester.version >= 7 else "",
            generation_id=-1,
        )
    )


def admit_sync_group(requester: Requester, request: Any) -> Admission:
    if requester.may_group(Operation.READ, request.group_id):
        return ADMITTED
    return Denied(SyncGroupResponse(error_code=_DENIED))


def admit_heartbeat(requester: Requester, request: Any) -> Admission:
    if requester.may_group(Operation.READ, request.group_id):
        return ADMITTED
    return Denied(HeartbeatResponse(error_code=_DENIED))


def admit_leave_group(requester: Requester, request: Any) -> Admission:
    if requester.may_group(Operation.READ, request.group_id):
        return ADMITTED
    return Denied(LeaveGroupResponse(error_code=_DENIED))


def admit_describe_groups(requester: Requester, request: Any) -> Admission:
    kept, denied = _describable(requester, request.groups, DescribeGroupsResponseDescribedGroup)
    if not kept:
        return Denied(DescribeGroupsResponse(groups=denied))

    def complete(response: Any) -> Any:
        _set_operations(requester, request, response.groups)
        return replace(response, groups=(*denied, *response.groups))

    return Admitted(replace(request, groups=kept), complete)


def admit_consumer_group_describe(requester: Requester, request: Any) -> Admission:
    kept, denied = _describable(
        requester, request.group_ids, ConsumerGroupDescribeResponseDescribedGroup
    )
    if not kept:
        return Denied(ConsumerGroupDescribeResponse(groups=denied))

    def complete(response: Any) -> Any:
        _set_operations(requester, request, response.groups)
        shown = tuple(_without_hidden_topics(requester, group) for group in response.groups)
        return replace(response, groups=(*denied, *shown))

    return Admitted(replace(request, group_ids=kept), complete)


def admit_connect_group_describe(requester: Requester, request: Any) -> Admission:
    """DESCRIBE on each group, as for ConsumerGroupDescribe; there are no topics to hide."""
    kept, denied = _describable(
        requester, request.group_ids, ConnectGroupDescribeResponseDescribedGroup
    )
    if not kept:
        return Denied(ConnectGroupDescribeResponse(groups=denied))

    def complete(response: Any) -> Any:
        _set_operations(requester, request, response.groups)
        return replace(response, groups=(*denied, *response.groups))

    return Admitted(replace(request, group_ids=kept), complete)


def _describable(
    requester: Requester, group_ids: Iterable[str], described: type[Any]
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The groups that the requester may describe, and the answers for the others."""
    kept, refused = divided(group_ids, lambda each: requester.may_group(Operation.DESCRIBE, each))
    return kept, tuple(described(group_id=each, error_code=_DENIED) for each in refused)


def _set_operations(requester: Requester, request: Any, groups: Any) -> None:
    for group in groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = requester.operations(ResourceType.GROUP, group.group_id)
        else:
            group.authorized_operations = NO_OPERATIONS


def _without_hidden_topics(
    requester: Requester, group: ConsumerGroupDescribeResponseDescribedGroup
) -> ConsumerGroupDescribeResponseDescribedGroup:
    """A group with an assigned topic that the client may not see is not shown at all."""
    topics = dict.fromkeys(
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    )
    if all(requester.may_topic(Operation.DESCRIBE, topic) for topic in topics):
        return group
    return ConsumerGroupDescribeResponseDescribedGroup(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message=_HIDDEN_TOPICS,
    )


def admit_list_groups(requester: Requester, _request: Any) -> Admission:
    """DESCRIBE on the cluster shows all, else DESCRIBE on each."""
    if requester.may_cluster(Operation.DESCRIBE):
        return ADMITTED

    def complete(response: Any) -> Any:
        shown = tuple(
            group
            for group in response.groups
            if requester.may_group(Operation.DESCRIBE, group.group_id)
        )
        return replace(response, groups=shown)

    return Admitted(None, complete)


def admit_delete_groups(requester: Requester, request: Any) -> Admission:
    names = tuple(dict.fromkeys(request.groups_names))
    kept, refused = divided(names, lambda each: requester.may_group(Operation.DELETE, each))
    denied = tuple(
        DeleteGroupsResponseDeletableGroupResult(group_id=group_id, error_code=_DENIED)
        for group_id in refused
    )
    if not kept:
        return Denied(DeleteGroupsResponse(results=denied))
    return admitted_in_part(request, "groups_names", kept, "results", denied)


def admit_find_coordinator(requester: Requester, request: FindCoordinatorRequest) -> Admission:
    """DESCRIBE on the group or transactional id; CLUSTER_ACTION for share groups."""
    if requester.version < _BATCHED_SINCE:
        code = _coordinator_denied(requester, request.key_type, request.key)
        if code is None:
            return ADMITTED
        return Denied(
            FindCoordinatorResponse(
                error_code=code, error_message=default_message(code), node_id=-1, host="", port=-1
            )
        )
    codes = {
        key: _coordinator_denied(requester, request.key_type, key)
        for key in request.coordinator_keys
    }
    kept = tuple(key for key in request.coordinator_keys if codes[key] is None)
    if len(kept) == len(request.coordinator_keys):
        return ADMITTED

    def complete(response: Any) -> Any:
        found = list(response.coordinators)
        merged: list[FindCoordinatorResponseCoordinator] = []
        for key in request.coordinator_keys:
            code = codes[key]
            merged.append(found.pop(0) if code is None else _no_coordinator(key, code))
        return replace(response, coordinators=tuple(merged))

    if not kept:
        return Denied(complete(FindCoordinatorResponse()))
    return Admitted(replace(request, coordinator_keys=kept), complete)


def _coordinator_denied(requester: Requester, key_type: int, key: str) -> ErrorCode | None:
    if key_type == _GROUP and not requester.may_group(Operation.DESCRIBE, key):
        return _DENIED
    if key_type == _TRANSACTION and not requester.may_transact(Operation.DESCRIBE, key):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if key_type == _SHARE and not requester.may_cluster(Operation.CLUSTER_ACTION):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return None


def _no_coordinator(key: str, code: ErrorCode) -> FindCoordinatorResponseCoordinator:
    message = default_message(code) if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else ""
    return FindCoordinatorResponseCoordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )


def _reading_group(refused: Callable[..., Message]) -> AuthorizationRule:
    """READ on the group, as heartbeats need it: for the draft protocols."""

    def rule(requester: Requester, request: Any) -> Admission:
        if requester.may_group(Operation.READ, request.group_id):
            return ADMITTED
        return Denied(refused(error_code=_DENIED))

    return rule


admit_consumer_group_prepare_assignment: Final = _reading_group(
    ConsumerGroupPrepareAssignmentResponse
)
admit_consumer_group_install_assignment: Final = _reading_group(
    ConsumerGroupInstallAssignmentResponse
)
admit_connect_group_heartbeat: Final = _reading_group(ConnectGroupHeartbeatResponse)
admit_connect_group_prepare_assignment: Final = _reading_group(
    ConnectGroupPrepareAssignmentResponse
)
admit_connect_group_install_assignment: Final = _reading_group(
    ConnectGroupInstallAssignmentResponse
)

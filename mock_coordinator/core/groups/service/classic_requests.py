"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup, for groups of all types.

Groups of all types share one name space. Requests for a classic group are decided by its own
functions. A consumer or Connect group with members also serves members of the classic protocol
(KIP-848, "Upgrade to the New Protocol"); without members it is replaced by a classic group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kip848_client.core.connect import PROTOCOL_TYPE
from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    LeaveGroupResponse,
    LeaveGroupResponseMemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.classic.join import JoinDecision, decide_join, refused_join
from mock_coordinator.core.groups.classic.rebalance import join_answer
from mock_coordinator.core.groups.classic.session import (
    decide_heartbeat,
    decide_leave,
    leaving_members,
)
from mock_coordinator.core.groups.classic.sync import SyncDecision, decide_sync
from mock_coordinator.core.groups.classic_members.catch_up import (
    decide_heartbeat_to_reconciled_group,
    decide_sync_to_consumer_group,
)
from mock_coordinator.core.groups.classic_members.join import decide_join_to_consumer_group
from mock_coordinator.core.groups.classic_members.leave import decide_leave_from_consumer_group
from mock_coordinator.core.groups.connect.classic_workers import (
    decide_join_to_connect_group,
    decide_leave_from_connect_group,
    decide_sync_to_connect_group,
)
from mock_coordinator.core.groups.offsets.administration import group_tombstones
from mock_coordinator.core.groups.records.state_records import StateRecord
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = ["heartbeat", "join_group", "leave_group", "sync_group"]

_PROTOCOL_VERSION: Final = 5
"""From this version on, SyncGroup must name the protocol (KIP-559)."""
_SEVERAL_VERSION: Final = 3
"""From this version on, LeaveGroup is answered for each member."""


def join_group(
    env: Environment, now_ms: int, received: RequestReceived, request: JoinGroupRequest
) -> JoinDecision:
    """Decide one JoinGroup. Refusals are answers."""
    decision = _join_group(env, now_ms, received, request)
    if decision.response is not None:
        join_answer(received, decision.response)
    return decision


def _join_group(
    env: Environment, now_ms: int, received: RequestReceived, request: JoinGroupRequest
) -> JoinDecision:
    config = env.config
    low_ms = config.integer("group.min.session.timeout.ms")
    high_ms = config.integer("group.max.session.timeout.ms")
    if not request.group_id:
        return Decision(refused_join(ErrorCode.INVALID_GROUP_ID, request.member_id))
    if not low_ms <= request.session_timeout_ms <= high_ms:
        return Decision(refused_join(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
    group = env.state.groups.get(request.group_id)
    tombstones: Sequence[StateRecord] = ()
    if isinstance(group, ConnectGroup):
        if not group.is_empty:
            return decide_join_to_connect_group(env, now_ms, received, request, group)
        if request.protocol_type != PROTOCOL_TYPE:  # its name is for workers
            refusal = refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
            return Decision(refusal)
        if request.member_id:
            return Decision(refused_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        tombstones, group = group_tombstones(group), None
    if isinstance(group, ConsumerGroup):
        if not group.is_empty:
            return decide_join_to_consumer_group(env, now_ms, received, request, group)
        if request.member_id:
            refusal = refused_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return Decision(refusal, forget=request.group_id)
        tombstones, group = group_tombstones(group), None
    return decide_join(env, now_ms, received, request, group, tombstones)


def sync_group(
    env: Environment, now_ms: int, received: RequestReceived, request: SyncGroupRequest
) -> SyncDecision:
    """Decide one SyncGroup. Refusals are answers."""
    try:
        return _sync_group(env, now_ms, received, request)
    except Refused as err:
        return Decision(SyncGroupResponse(error_code=err.code))


def _sync_group(
    env: Environment, now_ms: int, received: RequestReceived, request: SyncGroupRequest
) -> SyncDecision:
    named = request.protocol_type is not None and request.protocol_name is not None
    if received.version >= _PROTOCOL_VERSION and not named:
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        raise Refused(ErrorCode.INVALID_GROUP_ID)
    group = env.state.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        return decide_sync(env, now_ms, received, request, group)
    if isinstance(group, ConsumerGroup):
        return decide_sync_to_consumer_group(env, now_ms, group, request)
    if isinstance(group, ConnectGroup):
        return decide_sync_to_connect_group(env, now_ms, group, request)
    raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)


def heartbeat(
    env: Environment, now_ms: int, received: RequestReceived, request: HeartbeatRequest
) -> Decision[HeartbeatResponse]:
    """Decide one Heartbeat. Refusals are answers."""
    del received
    try:
        return _heartbeat(env, now_ms, request)
    except Refused as err:
        return Decision(HeartbeatResponse(error_code=err.code))


def _heartbeat(
    env: Environment, now_ms: int, request: HeartbeatRequest
) -> Decision[HeartbeatResponse]:
    if not request.group_id:
        raise Refused(ErrorCode.INVALID_GROUP_ID)
    group = env.state.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        return decide_heartbeat(now_ms, request, group)
    if isinstance(group, ReconciledGroup):
        return decide_heartbeat_to_reconciled_group(env, now_ms, group, request)
    raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)


def leave_group(
    env: Environment, now_ms: int, received: RequestReceived, request: LeaveGroupRequest
) -> Decision[LeaveGroupResponse]:
    """Decide one LeaveGroup. Refusals are answers, for each member from version 3 on."""
    if not request.group_id:
        return Decision(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
    members = leaving_members(received.version, request)
    group = env.state.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        decision = decide_leave(env, now_ms, request, members, group)
    elif isinstance(group, ConsumerGroup):
        decision = decide_leave_from_consumer_group(env, now_ms, group, members)
    elif isinstance(group, ConnectGroup):
        decision = decide_leave_from_connect_group(env, now_ms, group, members)
    else:
        decision = Decision(_nobody_there(members))
    if received.version < _SEVERAL_VERSION:
        decision.response = LeaveGroupResponse(error_code=_only_error(decision.response))
    return decision


def _only_error(response: LeaveGroupResponse) -> int:
    return response.error_code or next((each.error_code for each in response.members), 0)


def _nobody_there(members: Sequence[LeaveGroupRequestMemberIdentity]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=tuple(
            LeaveGroupResponseMemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for member in members
        )
    )

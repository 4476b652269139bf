"""Heartbeat (API 12) and LeaveGroup (API 13) of a classic group.

A heartbeat only keeps the session alive. The response REBALANCE_IN_PROGRESS tells the member to
join again. LeaveGroup removes one or more members, also by instance id (KIP-345), so that
administrators can use it as well.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    LeaveGroupResponse,
    LeaveGroupResponseMemberResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.classic.rebalance import Rebalance
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.classic_identity import require_generation, require_member
from mock_coordinator.core.groups.state.consumer_group import GroupState
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.refused import Refused

__all__ = ["decide_heartbeat", "decide_leave", "leaving_members", "session_timer"]

_SEVERAL_VERSION: Final = 3
"""From this version on LeaveGroup names several members."""


def session_timer(group: ClassicGroup, now_ms: int, member_id: str) -> TimerChange:
    """Restart the member's session."""
    timer = Timer(TimerKind.CLASSIC_SESSION, group.group_id, member_id)
    return TimerChange(timer, now_ms + group.live.members[member_id].session_timeout_ms)


def decide_heartbeat(
    now_ms: int, request: HeartbeatRequest, group: ClassicGroup
) -> Decision[HeartbeatResponse]:
    """Decide one Heartbeat to a classic group.

    Raises ``Refused``: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION.
    """
    live = group.live
    require_member(live, request.member_id, request.group_instance_id)
    require_generation(live, request.generation_id)
    response = HeartbeatResponse()
    if live.state is GroupState.PREPARING_REBALANCE:
        response.error_code = ErrorCode.REBALANCE_IN_PROGRESS
    return Decision(response, timers=[session_timer(group, now_ms, request.member_id)])


def leaving_members(
    version: int, request: LeaveGroupRequest
) -> tuple[LeaveGroupRequestMemberIdentity, ...]:
    """The members that a request of any version names."""
    if version >= _SEVERAL_VERSION:
        return request.members
    return (LeaveGroupRequestMemberIdentity(member_id=request.member_id),)


def decide_leave(
    env: Environment,
    now_ms: int,
    request: LeaveGroupRequest,
    members: tuple[LeaveGroupRequestMemberIdentity, ...],
    group: ClassicGroup,
) -> Decision[LeaveGroupResponse]:
    """Decide one LeaveGroup to a classic group; each member has an answer of its own, which may be
    UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    step = Rebalance(env, now_ms, request.group_id, group.live)
    answers: list[LeaveGroupResponseMemberResponse] = []
    for member in members:
        answer = LeaveGroupResponseMemberResponse(
            member_id=member.member_id, group_instance_id=member.group_instance_id
        )
        try:
            _take_out(step, member)
        except Refused as err:
            answer.error_code = err.code
        answers.append(answer)
    if any(answer.error_code == ErrorCode.NONE for answer in answers):
        if step.live.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            step.prepare()
        else:
            step.maybe_complete_join()
    return step.decision(LeaveGroupResponse(members=tuple(answers)))


def _take_out(step: Rebalance, member: LeaveGroupRequestMemberIdentity) -> None:
    live, member_id = step.live, member.member_id
    if not member_id and member.group_instance_id is not None:
        member_id = live.static_members.get(member.group_instance_id, "")
        if not member_id:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    elif member_id in live.pending_joins:
        live.remove(member_id)
        step.cancel_session(member_id)
        return
    else:
        require_member(live, member_id, member.group_instance_id)
    step.cancel_session(member_id)
    step.remove(member_id)

"""SyncGroup (API 14) of a classic group: the leader sends the assignment, all other members get
it."""

from __future__ import annotations

from dataclasses import replace

from kip848_client.core.wire.messages.classic_group import SyncGroupRequest, SyncGroupResponse
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.classic.rebalance import Rebalance
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.classic_identity import require_generation, require_member
from mock_coordinator.core.groups.state.classic_live import LiveGroup
from mock_coordinator.core.groups.state.consumer_group import GroupState
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = ["SyncDecision", "decide_sync"]

SyncDecision = Decision[SyncGroupResponse | None]
"""None: the member waits for the leader."""


def decide_sync(
    env: Environment,
    now_ms: int,
    received: RequestReceived,
    request: SyncGroupRequest,
    group: ClassicGroup,
) -> SyncDecision:
    """Decide one SyncGroup to a classic group.

    Raises ``Refused``: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL or REBALANCE_IN_PROGRESS.
    """
    live, member_id = group.live, request.member_id
    if live.state is GroupState.EMPTY:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    require_member(live, member_id, request.group_instance_id)
    require_generation(live, request.generation_id)
    _require_protocol(live, request)
    if live.state is GroupState.PREPARING_REBALANCE:
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)
    step = Rebalance(env, now_ms, request.group_id, live)
    step.synced(member_id)
    if live.state is GroupState.STABLE:
        return step.decision(
            SyncGroupResponse(
                protocol_type=live.protocol_type,
                protocol_name=live.protocol,
                assignment=live.members[member_id].assignment,
            )
        )
    step.live.members[member_id] = replace(live.members[member_id], awaiting_sync=received)
    if live.leader == member_id:
        step.complete_sync({each.member_id: bytes(each.assignment) for each in request.assignments})
    return step.decision(None)


def _require_protocol(live: LiveGroup, request: SyncGroupRequest) -> None:
    """Raise ``Refused`` INCONSISTENT_GROUP_PROTOCOL when a member names another protocol than
    the group's (KIP-559)."""
    for named, actual in (
        (request.protocol_type, live.protocol_type),
        (request.protocol_name, live.protocol),
    ):
        if named is not None and actual is not None and named != actual:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

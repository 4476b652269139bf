"""SyncGroup and Heartbeat of a classic member in a consumer group (KIP-848, migration).

SyncGroup returns the member's current assignment and ignores the assignments in the request: there
is no leader. Heartbeat is the only way to make the member join: it returns REBALANCE_IN_PROGRESS
when the group has a newer target, when the member has to revoke something, and when partitions that
it waits for are free.
"""

from __future__ import annotations

from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    HeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import WireError
from mock_coordinator.core.groups.classic_members.members import (
    classic_member,
    is_behind,
    is_waiting_for_others,
    rejoin_timer,
)
from mock_coordinator.core.groups.migration.embedded import written_for
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.state.classic_live import CONSUMER_PROTOCOL_TYPE
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.refused import Refused

__all__ = ["decide_heartbeat_to_reconciled_group", "decide_sync_to_consumer_group"]


def decide_sync_to_consumer_group(
    env: Environment, now_ms: int, group: ConsumerGroup, request: SyncGroupRequest
) -> Decision[SyncGroupResponse]:
    """Raises ``Refused``: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION or
    INCONSISTENT_GROUP_PROTOCOL. REBALANCE_IN_PROGRESS is an answer, because it starts a timer."""
    member, classic = classic_member(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    favourite = classic.supported_protocols[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
        request.protocol_name not in (None, favourite.name)
    ):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if is_behind(env, group, member) and member.state is not MemberState.UNREVOKED_PARTITIONS:
        response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return Decision(response, timers=rejoin_timer(env, group, member, now_ms))
    try:
        assignment = written_for(
            env.catalog, member.assigned, favourite.metadata, member.current.metadata
        )
    except WireError as err:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from err
    group_id, member_id = group.group_id, member.member_id
    return Decision(
        SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment,
        ),
        timers=[
            TimerChange(Timer(TimerKind.MEMBER_SYNC, group_id, member_id), None),
            TimerChange(
                Timer(TimerKind.SESSION, group_id, member_id), now_ms + classic.session_timeout_ms
            ),
        ],
    )


def decide_heartbeat_to_reconciled_group(
    env: Environment, now_ms: int, group: ReconciledGroup, request: HeartbeatRequest
) -> Decision[HeartbeatResponse]:
    """Raises ``Refused``: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION."""
    member, classic = classic_member(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    session = Timer(TimerKind.SESSION, group.group_id, member.member_id)
    timers = [TimerChange(session, now_ms + classic.session_timeout_ms)]
    has_work = member.state is MemberState.UNREVOKED_PARTITIONS or (
        member.state is MemberState.UNRELEASED_PARTITIONS
        and not is_waiting_for_others(group, member)
    )
    if not has_work and not is_behind(env, group, member):
        return Decision(HeartbeatResponse(), timers=timers)
    timers += rejoin_timer(env, group, member, now_ms)
    return Decision(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), timers=timers)

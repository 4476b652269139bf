"""JoinGroup, SyncGroup and LeaveGroup of a worker that uses the classic protocol in a Connect group
(the Connect proposal, "Migration To the New Protocol"; Heartbeat is the one of all such members).

Theory of operation
===================

As in consumer groups (``classic_members``), JoinGroup is answered at once, a leader does not exist,
and one JoinGroup is one step towards the target. The worker's metadata has its current allocation;
the response has the difference to the new one, as items to start and to stop. So a worker that must
give something up joins twice, and what it keeps is never stopped.

Only workers whose metadata a member of the new protocol can read are admitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kip848_client.core.connect import PROTOCOL_TYPE
from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequestMemberIdentity,
    LeaveGroupResponse,
    LeaveGroupResponseMemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import WireError
from mock_coordinator.core.groups.classic.join import offered_protocols, rebalance_timeout_ms
from mock_coordinator.core.groups.classic_members.members import (
    classic_member,
    is_behind,
    rejoin_timer,
)
from mock_coordinator.core.groups.client_assignors.sender import require_served
from mock_coordinator.core.groups.connect.fencing import fence_workers
from mock_coordinator.core.groups.connect.update import WorkerUpdate
from mock_coordinator.core.groups.membership.identity import require_room
from mock_coordinator.core.groups.migration.policy import is_disabled
from mock_coordinator.core.groups.records.connect_protocol import (
    Spoken,
    assignment_for,
    spoken,
    under_known_names,
)
from mock_coordinator.core.groups.records.connect_records import (
    ConnectGroupEpoch,
    ConnectWorkerMetadata,
    WorkerSubscription,
)
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import ClassicMemberMetadata, GroupEpoch
from mock_coordinator.core.groups.state.connect_group import ConnectGroup, subscription_of
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = [
    "decide_join_to_connect_group",
    "decide_leave_from_connect_group",
    "decide_sync_to_connect_group",
]

_MEMBER_ID_VERSION: Final = 4
"""From this version on, a member first asks for an id and then joins with it (KIP-394)."""
_INCONSISTENT: Final = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def decide_join_to_connect_group(
    env: Environment,
    now_ms: int,
    received: RequestReceived,
    request: JoinGroupRequest,
    group: ConnectGroup,
) -> Decision[JoinGroupResponse | None]:
    """Decide one JoinGroup to a Connect group that has members. Refusals are answers."""
    join = _Join(env, now_ms, group=group, received=received, request=request)
    try:
        return join.decide()
    except Refused as err:
        return Decision(JoinGroupResponse(error_code=err.code, member_id=request.member_id))


@dataclass(slots=True)
class _Join(WorkerUpdate):
    """One JoinGroup on its way through the steps."""

    group: ConnectGroup = field(kw_only=True)
    received: RequestReceived = field(kw_only=True)
    request: JoinGroupRequest = field(kw_only=True)

    def decide(self) -> Decision[JoinGroupResponse | None]:
        """Raises ``Refused`` (without a message) when the worker is refused."""
        env, group, request = self.env, self.group, self.request
        said = self._said()
        member_id = request.member_id or env.new_member_id()
        max_size = env.config.integer("group.consumer.max.size")
        require_room(env.profile, group, max_size, member_id, None)
        if not request.member_id and self.received.version >= _MEMBER_ID_VERSION:
            required = ErrorCode.MEMBER_ID_REQUIRED
            return Decision(JoinGroupResponse(error_code=required, member_id=member_id))
        known = group.members.get(member_id)
        if known is not None and known.classic is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        before = known or Member(member_id)
        bumps = known is None or _has_news(known, said)
        epoch = group.epoch + bumps
        after = Member(member_id, self._subscription(before, epoch), before.current)
        require_served(group, after)
        if after.subscription != before.subscription:
            self.records.append(
                ConnectWorkerMetadata(group.group_id, member_id, after.subscription)
            )
        if bumps:
            self.records.append(ConnectGroupEpoch(group.group_id, GroupEpoch(epoch)))
        owned = under_known_names(said.allocation, (before.assigned, before.pending_revocation))
        member = self.towards_target(group, after, owned)
        self._arm(member_id)
        response = JoinGroupResponse(
            generation_id=member.epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=said.protocol.group_protocol,
            member_id=member_id,
        )
        return Decision(response, self.records, self.timers)

    def _said(self) -> Spoken:
        """What the worker says, if a worker of this kind may be in the group at all."""
        request = self.request
        names = {protocol.name for protocol in request.protocols}
        if (
            is_disabled(self.env.config)
            or request.protocol_type != PROTOCOL_TYPE
            or request.group_instance_id is not None
            or not names & _common_protocols(self.group, names)
        ):
            raise Refused(_INCONSISTENT)
        try:
            return spoken(offered_protocols(request))
        except WireError as err:
            raise Refused(_INCONSISTENT) from err

    def _subscription(self, before: Member, epoch: int) -> WorkerSubscription:
        request, client = self.request, self.received.client
        return WorkerSubscription(
            client_id=client.client_id or "",
            client_host=client.host,
            rebalance_timeout_ms=rebalance_timeout_ms(self.received, request),
            classic=ClassicMemberMetadata(request.session_timeout_ms, offered_protocols(request)),
            joined_epoch=subscription_of(before).joined_epoch or epoch,
        )

    def _arm(self, member_id: str) -> None:
        """It has joined in time; now it must ask for its assignment in time."""
        request, group_id = self.request, self.group.group_id
        self.timers.append(TimerChange(Timer(TimerKind.MEMBER_JOIN, group_id, member_id), None))
        self.arm(TimerKind.SESSION, group_id, member_id, request.session_timeout_ms)
        timeout_ms = max(rebalance_timeout_ms(self.received, request), 0)
        self.arm(TimerKind.MEMBER_SYNC, group_id, member_id, timeout_ms)


def _common_protocols(group: ConnectGroup, names: set[str]) -> set[str]:
    """Those that all classic workers support, so that they can go on among themselves."""
    common = set(names)
    for member in group.members.values():
        if member.classic is not None:
            common &= {each.name for each in member.classic.supported_protocols}
    return common


def _has_news(known: Member, said: Spoken) -> bool:
    """Whether the worker says something new to an assignor. What it runs is not: that is the
    coordinator's own work, and the group would never come to rest."""
    assert known.classic is not None, "a worker of the new protocol"
    old, new = spoken(known.classic.supported_protocols), said
    return (old.protocol, old.metadata.url, old.metadata.config_offset, old.metadata.data) != (
        new.protocol,
        new.metadata.url,
        new.metadata.config_offset,
        new.metadata.data,
    )


def decide_sync_to_connect_group(
    env: Environment, now_ms: int, group: ConnectGroup, request: SyncGroupRequest
) -> Decision[SyncGroupResponse]:
    """Raises ``Refused``: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION or
    INCONSISTENT_GROUP_PROTOCOL. REBALANCE_IN_PROGRESS is an answer, because it starts a timer."""
    member, classic = classic_member(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    if request.protocol_type not in (None, PROTOCOL_TYPE):
        raise Refused(_INCONSISTENT)
    said = spoken(classic.supported_protocols)
    # it may still speak of the protocol that the classic group had agreed on
    outdated = request.protocol_name not in (None, said.protocol.group_protocol)
    stopping = member.state is MemberState.UNREVOKED_PARTITIONS
    if outdated or (is_behind(env, group, member) and not stopping):
        response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return Decision(response, timers=rejoin_timer(env, group, member, now_ms))
    group_id, member_id = group.group_id, member.member_id
    session = Timer(TimerKind.SESSION, group_id, member_id)
    return Decision(
        SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment_for(said, member.assigned, member.current.metadata),
        ),
        timers=[
            TimerChange(Timer(TimerKind.MEMBER_SYNC, group_id, member_id), None),
            TimerChange(session, now_ms + classic.session_timeout_ms),
        ],
    )


def decide_leave_from_connect_group(
    env: Environment,
    now_ms: int,
    group: ConnectGroup,
    members: Iterable[LeaveGroupRequestMemberIdentity],
) -> Decision[LeaveGroupResponse]:
    """Every classic worker whom the request names goes; UNKNOWN_MEMBER_ID is an answer of its own
    for each that is none."""
    answers: list[LeaveGroupResponseMemberResponse] = []
    leaving: dict[str, Member] = {}
    for asked in members:
        answer = LeaveGroupResponseMemberResponse(
            member_id=asked.member_id, group_instance_id=asked.group_instance_id
        )
        member = group.members.get(asked.member_id)
        if member is None or member.classic is None or asked.group_instance_id is not None:
            answer.error_code = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            leaving[member.member_id] = member
        answers.append(answer)
    response = LeaveGroupResponse(members=tuple(answers))
    if not leaving:
        return Decision(response)
    return fence_workers(env, now_ms, group, leaving.values()).answering(response)

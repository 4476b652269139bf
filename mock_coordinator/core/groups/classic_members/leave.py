"""LeaveGroup in a consumer group: one or more members of both protocols.

All members that the request names correctly are removed, with a single step of the group epoch. An
administrator may name a static member by its instance id alone (KIP-345).
"""

from __future__ import annotations

from collections.abc import Iterable

from kip848_client.core.wire.messages.classic_group import (
    LeaveGroupRequestMemberIdentity,
    LeaveGroupResponse,
    LeaveGroupResponseMemberResponse,
)
from mock_coordinator.core.groups.consumer.leave import fence
from mock_coordinator.core.groups.membership.identity import leaving_member
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.refused import Refused

__all__ = ["decide_leave_from_consumer_group"]


def decide_leave_from_consumer_group(
    env: Environment,
    now_ms: int,
    group: ConsumerGroup,
    members: Iterable[LeaveGroupRequestMemberIdentity],
) -> Decision[LeaveGroupResponse]:
    """Never raises for a member: UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID are answers of their
    own."""
    answers: list[LeaveGroupResponseMemberResponse] = []
    leaving: dict[str, Member] = {}
    for asked in members:
        answer = LeaveGroupResponseMemberResponse(
            member_id=asked.member_id, group_instance_id=asked.group_instance_id
        )
        try:
            member = _named(group, asked)
        except Refused as err:
            answer.error_code = err.code
        else:
            leaving[member.member_id] = member
        answers.append(answer)
    response = LeaveGroupResponse(members=tuple(answers))
    if not leaving:
        return Decision(response)
    try:
        return fence(env, now_ms, group, tuple(leaving.values())).answering(response)
    except Refused as err:  # a downgrade that cannot be done: no member goes
        return Decision(LeaveGroupResponse(error_code=err.code))


def _named(group: ConsumerGroup, asked: LeaveGroupRequestMemberIdentity) -> Member:
    static = group.static_member(asked.group_instance_id)
    if static is not None and not asked.member_id:
        return static
    return leaving_member(group, asked.member_id, asked.group_instance_id)

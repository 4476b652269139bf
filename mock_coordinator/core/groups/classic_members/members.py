"""The sender of a classic request in a consumer group, and whether the request is valid now.

A classic member has a generation where a consumer member has an epoch; both are one number. It
learns of a new target only through REBALANCE_IN_PROGRESS, and then joins again. Returning that
error therefore starts a timer, within which the member must have joined.
"""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.membership.identity import leaving_member
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import ClassicMemberMetadata
from mock_coordinator.core.groups.state.environment import Environment, TimerChange
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.refused import Refused

__all__ = ["classic_member", "is_behind", "is_waiting_for_others", "rejoin_timer"]


def classic_member(
    group: ReconciledGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[Member, ClassicMemberMetadata]:
    """The member that sends SyncGroup or Heartbeat.

    Raises ``Refused``: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION.
    """
    member = leaving_member(group, member_id, instance_id)
    if member.classic is None:
        raise Refused(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {member.member_id} does not use the classic protocol.",
        )
    if generation != member.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def is_behind(env: Environment, group: ReconciledGroup, member: Member) -> bool:
    """Whether there is something newer than what the member joined for."""
    # while a member computes there is nothing to join for yet
    by_target = env.profile.classic_rejoin_by_assignment_epoch or not group.broker_computes
    return member.epoch < (group.assignment_epoch if by_target else group.epoch)


def is_waiting_for_others(group: ReconciledGroup, member: Member) -> bool:
    """Whether a partition of the member's target is still held (by another member), or held
    back."""
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    target = group.target_of(member.member_id)
    is_held_back = group.release_rule(member.member_id, target)
    for topic_id, partitions in target.items():
        mine = member.assigned.get(topic_id, {})
        holders = group.holders.get(topic_id, {})
        if any(
            partition not in mine
            and (
                partition in holders
                or (is_held_back is not None and is_held_back(topic_id, partition))
            )
            for partition in partitions
        ):
            return True
    return False


def rejoin_timer(
    env: Environment, group: ReconciledGroup, member: Member, now_ms: int
) -> list[TimerChange]:
    """Give the member its rebalance timeout to join again, unless that is running already."""
    timer = Timer(TimerKind.MEMBER_JOIN, group.group_id, member.member_id)
    if env.timers.deadline_of(timer) is not None:
        return []
    timeout_ms = max(member.subscription.rebalance_timeout_ms, 0)
    return [TimerChange(timer, now_ms + timeout_ms)]

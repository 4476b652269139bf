"""Members that leave: permanently (-1), temporarily (-2), or because their time is up.

Removing members deletes their records and raises the group epoch; the next heartbeat of any other
member computes the new target. A static member that leaves temporarily stays in the group and in
its target; only its epoch says that it is away, and its session continues to run out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kip848_client.core.types import STATIC_LEAVE_EPOCH
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from mock_coordinator.core.groups.assignment.current_assignment import away
from mock_coordinator.core.groups.assignment.subscriptions import epoch_records, summarize
from mock_coordinator.core.groups.membership.identity import leaving_member, removal_records
from mock_coordinator.core.groups.migration.downgrade import can_downgrade, downgrade
from mock_coordinator.core.groups.records.state_records import (
    CurrentMemberAssignment,
    RegularExpression,
    StateRecord,
    TargetAssignmentMetadata,
    TargetEpoch,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.groups.state.timers import Timer, TimerKind

__all__ = ["fence", "leave", "stopped_timers"]

_MEMBER_TIMERS: Final = (
    TimerKind.SESSION,
    TimerKind.REBALANCE,
    TimerKind.MEMBER_JOIN,
    TimerKind.MEMBER_SYNC,
)


def leave(
    env: Environment, now_ms: int, request: ConsumerGroupHeartbeatRequest
) -> Decision[ConsumerGroupHeartbeatResponse]:
    """A heartbeat with epoch -1 or -2.

    Raises ``Refused``: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    group = env.state.consumer_group(request.group_id)
    member = leaving_member(group, request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.member_epoch == STATIC_LEAVE_EPOCH:
        current = away(env.profile, member.current)
        record = CurrentMemberAssignment(group.group_id, member.member_id, current)
        return Decision(response, [record])
    return fence(env, now_ms, group, (member,)).answering(response)


def fence(
    env: Environment, now_ms: int, group: ConsumerGroup, members: Sequence[Member]
) -> Decision[None]:
    """Remove these members of the group, with one step of the group epoch for all of them.

    When only classic members are left, the group may become a classic group instead.
    """
    if can_downgrade(env, group, members):
        return downgrade(env, now_ms, group, members)
    records: list[StateRecord] = []
    for member in members:
        records += removal_records(group, member.member_id)
    unused = _unused_regexes(group, members)
    records += [RegularExpression(group.group_id, regex, None) for regex in unused]
    summary = summarize(env, _remaining_topics(group, members, unused))
    epoch = group.epoch + 1
    records += epoch_records(group, summary, epoch, bump=True)
    if env.profile.empty_group_advances_target and len(members) == len(group.members):
        records.append(TargetAssignmentMetadata(group.group_id, TargetEpoch(epoch)))
    return Decision(None, records, stopped_timers(group, members))


def stopped_timers(group: ReconciledGroup, members: Iterable[Member]) -> list[TimerChange]:
    """The timers of members that are removed end with them."""
    return [
        TimerChange(Timer(kind, group.group_id, member.member_id), None)
        for member in members
        for kind in _MEMBER_TIMERS
    ]


def _unused_regexes(group: ConsumerGroup, members: Iterable[Member]) -> list[str]:
    """The resolved regexes whose last users these members are."""
    users: dict[str, int] = {}
    for member in members:
        regex = member.subscription.subscribed_topic_regex
        if regex:
            users[regex] = users.get(regex, 0) + 1
    return [regex for regex, count in users.items() if group.regexes.get(regex) == count]


def _remaining_topics(
    group: ConsumerGroup, members: Iterable[Member], unused: Iterable[str]
) -> list[str]:
    """The topics that a member still subscribes to."""
    counts = {name: sum(count) for name, count in group.subscribed_topics().items()}
    for member in members:
        for name in member.subscription.subscribed_topic_names:
            counts[name] -= 1
    for regex in unused:
        resolved = group.resolved.get(regex)
        for name in () if resolved is None else resolved.topics:
            counts[name] -= 1
    return [name for name, count in counts.items() if count > 0]

"""A consumer group becomes a classic group when its last consumer member leaves (KIP-848,
migration).

Theory of operation
===================

The condition: at least one member remains, all remaining members use the classic protocol, the
policy allows it, and a classic group may have that many members. The consumer group's records are
deleted, member by member, and one ``GroupMetadata`` record replaces them: its generation is the
group epoch, its assignments are the *targets*, which members may not have reached. So the group
begins a rebalance at once; until it is over the members learn of it in their next Heartbeat.

One case needs no rebalance: a static member returns with the classic protocol in place of the last
consumer member, with the same subscription. Then the group is Stable at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kip848_client.core.assignors import Partitions
from kip848_client.core.wire.messages.classic_group import JoinGroupResponse
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import WireError
from mock_coordinator.core.groups.assignment.current_assignment import OwnedReport
from mock_coordinator.core.groups.assignment.target_assignment import Sender
from mock_coordinator.core.groups.classic.rebalance import Rebalance
from mock_coordinator.core.groups.membership.member_update import MemberUpdate
from mock_coordinator.core.groups.migration.embedded import written_for
from mock_coordinator.core.groups.migration.policy import allows_downgrade
from mock_coordinator.core.groups.records.state_records import (
    CurrentMemberAssignment,
    GroupEpochMetadata,
    MemberMetadata,
    PartitionMetadata,
    RegularExpression,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from mock_coordinator.core.groups.state.classic_live import (
    CONSUMER_PROTOCOL_TYPE,
    LiveGroup,
    LiveMember,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup, GroupState
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.refused import Refused

__all__ = ["can_downgrade", "downgrade", "downgrade_by_replacement", "joined", "may_replace"]

_GROUP_MAX_SIZE: Final = "group.max.size"


def can_downgrade(env: Environment, group: ConsumerGroup, leaving: Sequence[Member]) -> bool:
    """Whether the group becomes a classic group when these members are gone."""
    remaining = len(group.members) - len(leaving)
    classic = group.classic_members - sum(member.classic is not None for member in leaving)
    return (
        0 < remaining <= env.config.integer(_GROUP_MAX_SIZE)
        and classic == remaining
        and allows_downgrade(env.config)
    )


def may_replace(env: Environment, group: ConsumerGroup, replaced: Member) -> bool:
    """Whether the group becomes a classic group when a classic member takes this one's place."""
    return (
        replaced.classic is None
        and group.classic_members == len(group.members) - 1
        and allows_downgrade(env.config)
        and len(group.members) <= env.config.integer(_GROUP_MAX_SIZE)
    )


def downgrade(
    env: Environment, now_ms: int, group: ConsumerGroup, leaving: Sequence[Member]
) -> Decision[None]:
    """The group without these members, as a classic group that begins to rebalance."""
    gone = {member.member_id for member in leaving}
    staying = [group.members[each] for each in group.order if each not in gone]
    targets = {member.member_id: group.target_of(member.member_id) for member in staying}
    rebalance = _converted(env, now_ms, group, staying, targets)
    rebalance.prepare()
    decision = rebalance.decision(None)
    decision.records[:0] = _tombstones(group, group.order)
    return decision


def downgrade_by_replacement(
    update: MemberUpdate,
    group: ConsumerGroup,
    sender: Sender,
    epoch: int,
    owned: OwnedReport,
    *,
    bumped: bool,
) -> Decision[JoinGroupResponse | None]:
    """The group with the sender of a JoinGroup in the place of its last consumer member.

    ``epoch`` is what the group epoch would be, ``bumped`` whether the sender's wishes moved it.
    """
    env, now_ms, joining = update.env, update.now_ms, sender.after
    replaced = group.static_member(joining.instance_id) or sender.before
    target = group.target_of(joining.member_id, joining.instance_id)
    outdated = bumped
    if env.profile.classic_rejoin_by_assignment_epoch:
        outdated = epoch > group.assignment_epoch
    if not outdated:
        reached = (group.assignment_epoch, target)
        joining = update.reconciled(group, joining, reached, owned, changed=bumped)
    staying = [group.members[each] for each in group.order if each != replaced.member_id]
    targets = {member.member_id: group.target_of(member.member_id) for member in staying}
    targets[joining.member_id] = group.target_of(replaced.member_id)
    rebalance = _converted(env, now_ms, group, [*staying, joining], targets)
    if outdated:
        rebalance.prepare()
    decision = rebalance.decision(joined(joining))
    renamed = (joining.member_id if each == replaced.member_id else each for each in group.order)
    decision.records[:0] = [*update.records, *_tombstones(group, list(renamed))]
    join_timer = Timer(TimerKind.MEMBER_JOIN, group.group_id, joining.member_id)
    decision.timers.append(TimerChange(join_timer, None))
    return decision


def joined(member: Member) -> JoinGroupResponse | None:
    """The answer of a rebalance that is over before it began: without a leader, without a list."""
    protocols = () if member.classic is None else member.classic.supported_protocols
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=next((each.name for each in protocols), None),
        member_id=member.member_id,
    )


def _converted(
    env: Environment,
    now_ms: int,
    group: ConsumerGroup,
    members: Iterable[Member],
    targets: dict[str, Partitions],
) -> Rebalance:
    """The classic group of these members, stored, Stable, and expecting their heartbeats.

    Raises ``Refused`` GROUP_ID_NOT_FOUND when a member's embedded subscription cannot be read.
    """
    live = LiveGroup(protocol_type=CONSUMER_PROTOCOL_TYPE, generation=group.epoch)
    live.enter(GroupState.STABLE, now_ms)
    for member in members:
        live.put(_live_member(member))
    live.protocol = live.elected_protocol()
    live.subscribed_topics = live.known_topics()
    for member_id, converted in list(live.members.items()):
        metadata = converted.metadata(live.protocol)
        try:
            said = group.metadata_of(member_id)
            assignment = written_for(env.catalog, targets[member_id], metadata, said)
        except WireError as err:
            why = f"Cannot downgrade the classic group {group.group_id}: {err}."
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, why) from err
        live.members[member_id] = replace(converted, assignment=assignment)
    rebalance = Rebalance(env, now_ms, group.group_id, live)
    rebalance.store()
    for member_id, converted in live.members.items():
        rebalance.arm_session(member_id, converted.session_timeout_ms)
    return rebalance


def _live_member(member: Member) -> LiveMember:
    subscription, classic = member.subscription, member.classic
    return LiveMember(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms if classic else 0,
        protocols=classic.supported_protocols if classic else (),
    )


def _tombstones(group: ConsumerGroup, member_ids: Iterable[str]) -> list[StateRecord]:
    """What deletes a consumer group with its members, in Kafka's order."""
    group_id, ids = group.group_id, list(member_ids)
    return [
        *(CurrentMemberAssignment(group_id, member_id, None) for member_id in ids),
        *(TargetAssignmentMember(group_id, member_id, None) for member_id in ids),
        TargetAssignmentMetadata(group_id, None),
        *(MemberMetadata(group_id, member_id, None) for member_id in ids),
        *(RegularExpression(group_id, regex, None) for regex in group.resolved),
        PartitionMetadata(group_id, None),
        GroupEpochMetadata(group_id, None),
    ]

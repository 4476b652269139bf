"""A classic group becomes a consumer group when a consumer heartbeat joins it (KIP-848, migration).

Theory of operation
===================

The generation becomes the group epoch, and every member becomes a classic member of the consumer
group at that epoch; its assignment in that generation is both its current assignment and its
target. A member whose request waits in the classic group gets REBALANCE_IN_PROGRESS, joins again
and is then in the new group. The heartbeat that caused the upgrade is then decided as if the group
had always been a consumer group.

For that the group is created while the heartbeat is decided; only its records make it permanent.
The waiting requests are answered even if the conversion fails later, or the heartbeat is refused:
Kafka does so, and the group then continues as a classic group.

A group that has never completed a generation cannot be converted, and the heartbeat gets -1. That
looks like a bug of Kafka's (4.0 to 4.4), and clients should expect it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kip848_client.core.assignors import NO_PARTITIONS, Partitions, string_map_order
from kip848_client.core.wire.messages.classic_group import JoinGroupResponse, SyncGroupResponse
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import WireError
from mock_coordinator.core.groups.assignment.subscriptions import TopicSummary, summarize
from mock_coordinator.core.groups.classic.rebalance import Rebalance
from mock_coordinator.core.groups.migration.embedded import partitions_of
from mock_coordinator.core.groups.migration.policy import allows_upgrade
from mock_coordinator.core.groups.records.assignor_values import (
    CLASSIC_VERSION,
    NO_METADATA,
    AssignmentMetadata,
    ClientAssignor,
)
from mock_coordinator.core.groups.records.consumer_protocol import (
    ConsumerSubscription,
    read_assignment,
    read_subscription,
)
from mock_coordinator.core.groups.records.state_records import (
    ClassicMemberMetadata,
    CurrentAssignment,
    CurrentMemberAssignment,
    GroupEpoch,
    GroupEpochMetadata,
    GroupMetadata,
    MemberMetadata,
    MemberSubscription,
    PartitionMetadata,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TargetEpoch,
)
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.classic_live import LiveGroup, LiveMember
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.refused import Refused

__all__ = ["Upgrade", "UpgradeRefused", "upgrade"]

_REJOIN: Final = ErrorCode.REBALANCE_IN_PROGRESS


class UpgradeRefused(Refused):
    """The group stays classic; ``anyway`` is what happens nevertheless."""

    def __init__(self, refusal: Refused, anyway: Decision[None]) -> None:
        super().__init__(refusal.code, refusal.message)
        self.anyway = anyway


@dataclass(slots=True)
class Upgrade:
    """A classic group on its way: ``group`` is what it will be once ``records`` are applied.

    ``replies`` and ``timers`` of ``succeeded`` belong to the upgrade, those of ``failed`` to a
    refusal after all.
    """

    group: ConsumerGroup
    records: list[StateRecord]
    succeeded: Decision[None]
    failed: Decision[None]


def upgrade(
    env: Environment,
    now_ms: int,
    classic: ClassicGroup,
    offer: tuple[ClientAssignor, ...] = (),
) -> Upgrade:
    """Convert a classic group that has members, because of a member that offers these assignors.

    Raises ``Refused`` GROUP_ID_NOT_FOUND (with the reason), or ``UpgradeRefused``.
    """
    _require_upgradable(env, classic)
    failed = _all_told_to_rejoin(env, now_ms, classic)
    try:
        group, summary = _converted(env, classic, offer)
    except Refused as err:
        raise UpgradeRefused(err, failed) from err
    over = Rebalance(env, now_ms, classic.group_id, classic.live)
    over.refuse_all(_REJOIN)
    succeeded = over.decision(None)
    succeeded.live = None
    for member in group.members.values():
        timer = Timer(TimerKind.SESSION, group.group_id, member.member_id)
        timeout_ms = member.classic.session_timeout_ms if member.classic else 0
        succeeded.timers.append(TimerChange(timer, now_ms + timeout_ms))
    return Upgrade(group, _records(env, group, summary), succeeded, failed)


def _require_upgradable(env: Environment, classic: ClassicGroup) -> None:
    reason = None
    if not allows_upgrade(env.config):
        reason = "online upgrade is disabled."
    elif not classic.live.uses_consumer_protocol:
        reason = "the group does not use the consumer embedded protocol."
    elif len(classic.live.members) > env.config.integer("group.consumer.max.size"):
        reason = "the group size exceeds the consumer group maximum size."
    if reason is not None:
        raise _refused(classic.group_id, reason)


def _refused(group_id: str, reason: str) -> Refused:
    return Refused(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because {reason}",
    )


def _all_told_to_rejoin(env: Environment, now_ms: int, classic: ClassicGroup) -> Decision[None]:
    """The unchanged classic group, without its waiting requests."""
    step = Rebalance(env, now_ms, classic.group_id, classic.live)
    for member_id in list(step.live.members):
        step.answer_join(member_id, JoinGroupResponse(error_code=_REJOIN, member_id=member_id))
        step.answer_sync(member_id, SyncGroupResponse(error_code=_REJOIN))
    return step.decision(None)


def _converted(
    env: Environment, classic: ClassicGroup, offer: tuple[ClientAssignor, ...]
) -> tuple[ConsumerGroup, TopicSummary]:
    """The consumer group, in memory only. Raises ``Refused`` GROUP_ID_NOT_FOUND or
    UNKNOWN_SERVER_ERROR."""
    live = classic.live
    group = ConsumerGroup(classic.group_id, live.generation)
    goes_on = any(
        each.name == live.protocol and each.minimum_version <= CLASSIC_VERSION for each in offer
    )
    for member_id in string_map_order(live.members):
        member, target = _member(env, group, live, live.members[member_id], keeps_data=goes_on)
        _require_free(group, target)
        group.adopt(member, target)
    summary = summarize(env, group.by_name)
    group.topic_shapes, group.metadata_hash = summary.shapes, summary.metadata_hash
    return group, summary


def _require_free(group: ConsumerGroup, target: Partitions) -> None:
    """A leader that gave a partition to two members leaves a group that cannot be upgraded: Kafka
    fails where it would note a second owner."""
    for topic_id, partitions in target.items():
        if not group.holders.get(topic_id, {}).keys().isdisjoint(partitions):
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)


def _member(
    env: Environment, group: ConsumerGroup, live: LiveGroup, old: LiveMember, *, keeps_data: bool
) -> tuple[Member, Partitions]:
    target, said = _target(env, group.group_id, old, keeps_data=keeps_data)
    subscription = _subscription(group.group_id, live, old)
    member = Member(
        old.member_id,
        MemberSubscription(
            instance_id=old.instance_id,
            rack_id=subscription.rack_id or None,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            subscribed_topic_names=tuple(sorted(set(subscription.topics))),
            classic=ClassicMemberMetadata(old.session_timeout_ms, old.protocols),
        ),
        CurrentAssignment(
            member_epoch=live.generation,
            previous_member_epoch=live.generation,
            assigned={
                topic_id: dict.fromkeys(partitions, live.generation)
                for topic_id, partitions in target.items()
            },
            metadata=said,
        ),
    )
    return member, target


def _target(
    env: Environment, group_id: str, old: LiveMember, *, keeps_data: bool
) -> tuple[Partitions, AssignmentMetadata]:
    """What the member was assigned, and what the assignor said to it. The latter can be kept only
    when a member comes that runs that assignor; the broker does not."""
    if not old.assignment:
        return NO_PARTITIONS, NO_METADATA
    try:
        assignment = read_assignment(old.assignment)[1]
    except WireError as err:
        raise _refused(group_id, "the embedded consumer protocol is malformed.") from err
    if assignment.user_data and not keeps_data:
        raise _refused(
            group_id,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade.",
        )
    said = NO_METADATA
    if assignment.user_data:
        said = AssignmentMetadata(CLASSIC_VERSION, assignment.user_data)
    return partitions_of(env.catalog, assignment.assigned_partitions), said


def _subscription(group_id: str, live: LiveGroup, old: LiveMember) -> ConsumerSubscription:
    """What the member said in the protocol of the generation."""
    if all(each.name != live.protocol for each in old.protocols):
        # no generation yet, or one that it was not there for
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        return read_subscription(old.metadata(live.protocol))[1]
    except WireError as err:
        raise _refused(group_id, "the embedded consumer protocol is malformed.") from err


def _records(env: Environment, group: ConsumerGroup, summary: TopicSummary) -> list[StateRecord]:
    """What makes the group so, in Kafka's order."""
    group_id, members = group.group_id, [group.members[each] for each in group.order]
    records: list[StateRecord] = [GroupMetadata(group_id)]
    records += [MemberMetadata(group_id, each.member_id, each.subscription) for each in members]
    if not env.profile.metadata_hash:
        records.append(PartitionMetadata(group_id, summary.shapes))
    records.append(GroupEpochMetadata(group_id, GroupEpoch(group.epoch, summary.metadata_hash)))
    records += [
        TargetAssignmentMember(
            group_id, each.member_id, group.target_of(each.member_id), each.current.metadata
        )
        for each in members
    ]
    records.append(TargetAssignmentMetadata(group_id, TargetEpoch(group.assignment_epoch)))
    records += [CurrentMemberAssignment(group_id, each.member_id, each.current) for each in members]
    return records

"""A Connect group becomes a classic group when its last worker of the new protocol leaves (the
Connect proposal, "Migration To the New Protocol").

As for consumer groups (``downgrade``): the generation is the group epoch, and a rebalance begins at
once. Its leader computes from the items that the workers report, so these continue to run; the
items of the worker that left are reassigned in that rebalance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kip848_client.core.connect import PROTOCOL_TYPE
from mock_coordinator.core.groups.classic.rebalance import Rebalance
from mock_coordinator.core.groups.membership.identity import removal_records
from mock_coordinator.core.groups.migration.policy import allows_downgrade
from mock_coordinator.core.groups.records.connect_protocol import assignment_for, spoken
from mock_coordinator.core.groups.records.state_records import ClassicMemberMetadata, StateRecord
from mock_coordinator.core.groups.state.classic_live import LiveGroup, LiveMember
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.reconciled_group import GroupState

__all__ = ["can_downgrade_workers", "downgrade_workers"]

_GROUP_MAX_SIZE: Final = "group.max.size"


def can_downgrade_workers(env: Environment, group: ConnectGroup, leaving: Sequence[Member]) -> bool:
    """Whether the group becomes a classic group when these workers are gone."""
    remaining = len(group.members) - len(leaving)
    classic = group.classic_members - sum(member.classic is not None for member in leaving)
    return (
        0 < remaining <= env.config.integer(_GROUP_MAX_SIZE)
        and classic == remaining
        and allows_downgrade(env.config)
    )


def downgrade_workers(
    env: Environment, now_ms: int, group: ConnectGroup, leaving: Sequence[Member]
) -> Decision[None]:
    """The group without these workers, as a classic group that begins to rebalance."""
    gone = {member.member_id for member in leaving}
    live = LiveGroup(protocol_type=PROTOCOL_TYPE, generation=group.epoch)
    live.enter(GroupState.STABLE, now_ms)
    for member in group.members.values():
        if member.member_id not in gone and member.classic is not None:
            live.put(_live_member(member, member.classic))
    live.protocol = live.elected_protocol()
    rebalance = Rebalance(env, now_ms, group.group_id, live)
    rebalance.store()
    for member_id, converted in live.members.items():
        rebalance.arm_session(member_id, converted.session_timeout_ms)
    rebalance.prepare()
    decision = rebalance.decision(None)
    decision.records[:0] = _tombstones(group)
    return decision


def _live_member(member: Member, classic: ClassicMemberMetadata) -> LiveMember:
    subscription = member.subscription
    return LiveMember(
        member_id=member.member_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocols=classic.supported_protocols,
        assignment=assignment_for(
            spoken(classic.supported_protocols), member.assigned, member.current.metadata
        ),
    )


def _tombstones(group: ConnectGroup) -> list[StateRecord]:
    """What deletes a Connect group with its members."""
    records: list[StateRecord] = []
    for member_id in group.members:
        records += removal_records(group, member_id)
    types = group.records
    return [*records, types.target_epoch(group.group_id, None), types.epoch(group.group_id, None)]

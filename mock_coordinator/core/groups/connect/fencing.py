"""Removal of workers that leave, or whose time is up."""

from __future__ import annotations

from collections.abc import Iterable

from mock_coordinator.core.groups.consumer.leave import stopped_timers
from mock_coordinator.core.groups.membership.identity import removal_records
from mock_coordinator.core.groups.migration.worker_downgrade import (
    can_downgrade_workers,
    downgrade_workers,
)
from mock_coordinator.core.groups.records.connect_records import ConnectGroupEpoch
from mock_coordinator.core.groups.records.state_records import GroupEpoch, StateRecord
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.groups.state.member import Member

__all__ = ["fence_workers"]


def fence_workers(
    env: Environment, now_ms: int, group: ConnectGroup, members: Iterable[Member]
) -> Decision[None]:
    """Remove these workers, with one step of the group epoch for all of them. What the target gave
    them is unassigned until the next target.

    When only workers of the classic protocol are left, the group may become a classic group
    instead.
    """
    gone = tuple(members)
    if can_downgrade_workers(env, group, gone):
        decision = downgrade_workers(env, now_ms, group, gone)
        decision.timers += stopped_timers(group, group.members.values())
        return decision
    records: list[StateRecord] = []
    for member in gone:
        records += removal_records(group, member.member_id)
    records.append(ConnectGroupEpoch(group.group_id, GroupEpoch(group.epoch + 1)))
    return Decision(None, records, stopped_timers(group, gone))

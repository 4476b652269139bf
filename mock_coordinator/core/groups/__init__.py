"""The group coordinator: consumer groups (KIP-848), simple groups, and their offsets."""

from __future__ import annotations

from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import StateRecord
from mock_coordinator.core.groups.service.coordinator import GroupCoordinator
from mock_coordinator.core.groups.service.meter import CoordinatorMetric
from mock_coordinator.core.groups.service.snapshot import GroupSnapshot, MemberSnapshot
from mock_coordinator.core.groups.state.consumer_group import GroupState, GroupType

__all__ = [
    "CoordinatorMetric",
    "GroupCoordinator",
    "GroupSnapshot",
    "GroupState",
    "GroupType",
    "MemberSnapshot",
    "MemberState",
    "StateRecord",
]

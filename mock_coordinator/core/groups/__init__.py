"""The group coordinator: consumer groups (KIP-848), simple groups, and their offsets."""

from __future__ import annotations

from mock_coordinator.core.groups.consumer_group import GroupState, GroupType
from mock_coordinator.core.groups.coordinator import GroupCoordinator
from mock_coordinator.core.groups.member_state import MemberState
from mock_coordinator.core.groups.records import StateRecord
from mock_coordinator.core.groups.snapshot import GroupSnapshot, MemberSnapshot

__all__ = [
    "GroupCoordinator",
    "GroupSnapshot",
    "GroupState",
    "GroupType",
    "MemberSnapshot",
    "MemberState",
    "StateRecord",
]

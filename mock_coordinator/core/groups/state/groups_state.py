"""All groups and offsets of a coordinator, and the one function that changes them.

``apply`` accepts every record that a broker could have written, in any order that compaction
leaves: a record for a group that does not exist creates it, a tombstone for something unknown is
ignored (KIP-848, and Kafka's own replay).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from mock_coordinator.core.groups.records.connect_records import (
    ConnectCurrentAssignment,
    ConnectGroupEpoch,
    ConnectTargetMember,
    ConnectTargetMetadata,
    ConnectWorkerMetadata,
)
from mock_coordinator.core.groups.records.state_records import (
    CurrentMemberAssignment,
    GroupEpochMetadata,
    GroupMetadata,
    MemberMetadata,
    OffsetAndMetadata,
    OffsetCommit,
    PartitionMetadata,
    RegularExpression,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TransactionEnd,
)
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.classic_live import LiveGroup
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.errors import group_id_not_found, not_a_consumer_group
from mock_coordinator.core.groups.state.pending_offsets import PendingOffset, PendingOffsets
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.profile import Profile

__all__ = ["ClassicGroup", "Group", "GroupOffsets", "GroupsState"]


Group: TypeAlias = ConsumerGroup | ClassicGroup | ConnectGroup

GroupOffsets: TypeAlias = dict[str, dict[int, OffsetAndMetadata]]
"""topic -> partition -> committed offset"""


class GroupsState:
    """Group id -> group of any type, and the committed offsets, which outlive conversions."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.groups: dict[str, Group] = {}
        self.forgotten: dict[str, ConsumerGroup] = {}
        self.offsets: dict[str, GroupOffsets] = {}
        self.pending = PendingOffsets()
        self._applied = 0
        self._positions: dict[tuple[str, str, int], int] = {}
        self._appliers: dict[type[StateRecord], Callable[..., None]] = {
            OffsetCommit: self._apply_offset,
            TransactionEnd: self._apply_transaction_end,
            GroupMetadata: self._apply_group_metadata,
            GroupEpochMetadata: self._apply_epoch,
            PartitionMetadata: self._apply_partition_metadata,
            MemberMetadata: self._apply_member,
            TargetAssignmentMetadata: self._apply_target_metadata,
            TargetAssignmentMember: self._apply_target_member,
            CurrentMemberAssignment: self._apply_current,
            RegularExpression: self._apply_regex,
            ConnectGroupEpoch: self._apply_epoch,
            ConnectWorkerMetadata: self._apply_member,
            ConnectTargetMetadata: self._apply_target_metadata,
            ConnectTargetMember: self._apply_target_member,
            ConnectCurrentAssignment: self._apply_current,
        }

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """The consumer group of this id. Raises ``Refused`` GROUP_ID_NOT_FOUND when there is
        none, or one of another type."""
        group = self.groups.get(group_id)
        if group is None:
            raise group_id_not_found(group_id)
        if not isinstance(group, ConsumerGroup):
            raise not_a_consumer_group(group_id)
        return group

    def new_consumer_group(self, group_id: str) -> ConsumerGroup:
        """A group as it is before its first record; not stored."""
        return ConsumerGroup(group_id, self._profile.first_group_epoch)

    def touch_simple_group(self, group_id: str) -> None:
        """Create a simple group in memory, as Kafka does before it knows whether a commit will
        store anything. Without a record it does not survive a restart."""
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id)

    def set_live(self, group_id: str, live: LiveGroup) -> None:
        """What is going on in a classic group from now on; it must exist. No record carries it."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            group.live = live

    def forget(self, group_id: str) -> None:
        """Lose a consumer group from memory and leave its records, as Kafka does when a member
        joins an empty one with a member id: its next life begins with the first epochs. What
        describes and lists groups reads what is written, and sees the group until the next
        record."""
        group = self.groups.pop(group_id, None)
        if isinstance(group, ConsumerGroup):
            self.forgotten[group_id] = group

    def described(self) -> dict[str, Group]:
        """The groups as administrators see them."""
        return {**self.forgotten, **self.groups} if self.forgotten else self.groups

    def committed(self, group_id: str, topic: str, partition: int) -> OffsetAndMetadata | None:
        """A committed offset."""
        return self.offsets.get(group_id, {}).get(topic, {}).get(partition)

    def apply(self, record: StateRecord) -> None:
        """Change the state as the record says."""
        self._applied += 1
        self._appliers[type(record)](record)

    # --- One method for each record type ----------------------------------------------------------

    def _consumer_group(self, record: StateRecord, *, made: bool) -> ConsumerGroup | None:
        """The consumer group of a record; a new one when there is none and it has to be made."""
        group = self.groups.get(record.group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not made:
            return None
        self.groups.pop(record.group_id, None)  # an empty classic group gives way
        group = self.groups[record.group_id] = self.new_consumer_group(record.group_id)
        return group

    def _reconciled_group(self, record: StateRecord, *, made: bool) -> ReconciledGroup | None:
        """The group of a record that groups of more than one type have."""
        if type(record) not in _CONNECT_RECORDS:
            return self._consumer_group(record, made=made)
        group = self.groups.get(record.group_id)
        if isinstance(group, ConnectGroup):
            return group
        if not made:
            return None
        self.groups.pop(record.group_id, None)
        group = self.groups[record.group_id] = ConnectGroup(record.group_id)
        return group

    def _apply_offset(self, record: OffsetCommit) -> None:
        if record.value is not None:
            if record.group_id not in self.groups:
                self.groups[record.group_id] = ClassicGroup(record.group_id)
            if record.producer is None:
                self._commit(
                    record.group_id, record.topic, record.partition, record.value, self._applied
                )
            else:
                place = (record.group_id, record.topic, record.partition)
                offset = PendingOffset(*place, record.value, self._applied)
                self.pending.add(record.producer, offset)
            return
        self.pending.forget(record.group_id, record.topic, record.partition)
        self._positions.pop((record.group_id, record.topic, record.partition), None)
        topics = self.offsets.get(record.group_id, {})
        partitions = topics.get(record.topic, {})
        partitions.pop(record.partition, None)
        if not partitions:
            topics.pop(record.topic, None)
        if not topics:
            self.offsets.pop(record.group_id, None)

    def _commit(
        self, group_id: str, topic: str, partition: int, value: OffsetAndMetadata, position: int
    ) -> None:
        self._positions[group_id, topic, partition] = position
        self.offsets.setdefault(group_id, {}).setdefault(topic, {})[partition] = value

    def _apply_transaction_end(self, record: TransactionEnd) -> None:
        for offset in self.pending.end(record.producer_id):
            place = (offset.group_id, offset.topic, offset.partition)
            if record.committed and self._positions.get(place, -1) < offset.position:
                self._commit(*place, offset.value, offset.position)

    def _apply_group_metadata(self, record: GroupMetadata) -> None:
        if record.value is not None:
            self.groups[record.group_id] = ClassicGroup(record.group_id, record.value)
        elif isinstance(self.groups.get(record.group_id), ClassicGroup):
            del self.groups[record.group_id]

    def _apply_epoch(self, record: GroupEpochMetadata) -> None:
        group = self._reconciled_group(record, made=record.value is not None)
        if group is None:
            return
        if record.value is not None:
            group.apply_epoch(record.value)
        else:
            del self.groups[record.group_id]

    def _apply_partition_metadata(self, record: PartitionMetadata) -> None:
        group = self._consumer_group(record, made=record.value is not None)
        if group is not None:
            group.apply_topic_shapes(record.value)

    def _apply_member(self, record: MemberMetadata) -> None:
        group = self._reconciled_group(record, made=record.value is not None)
        if group is not None:
            group.apply_subscription(record.member_id, record.value)

    def _apply_target_metadata(self, record: TargetAssignmentMetadata) -> None:
        group = self._reconciled_group(record, made=record.value is not None)
        if group is not None:
            group.apply_target_epoch(record.value)

    def _apply_target_member(self, record: TargetAssignmentMember) -> None:
        group = self._reconciled_group(record, made=record.value is not None)
        if group is not None:
            group.apply_target(record.member_id, record.value, record.metadata)

    def _apply_current(self, record: CurrentMemberAssignment) -> None:
        group = self._reconciled_group(record, made=record.value is not None)
        if group is not None:
            group.apply_current(record.member_id, record.value)

    def _apply_regex(self, record: RegularExpression) -> None:
        group = self._consumer_group(record, made=record.value is not None)
        if group is not None:
            group.apply_regex(record.regex, record.value)


_CONNECT_RECORDS: Final = frozenset(
    {
        ConnectCurrentAssignment,
        ConnectGroupEpoch,
        ConnectTargetMember,
        ConnectTargetMetadata,
        ConnectWorkerMetadata,
    }
)

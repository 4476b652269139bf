"""What the coordinator's records say about its groups, read without trust in it.

The checkers do not ask the coordinator what it thinks; they keep these groups from the records that
it writes (``__consumer_offsets``, in effect) and judge by that. Nothing here knows why a record was
written, so an error in the coordinator's decisions cannot hide in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kip848_client.core.types import TopicId, TopicIdPartition
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    CurrentMemberAssignment,
    GroupEpochMetadata,
    MemberMetadata,
    MemberSubscription,
    OffsetCommit,
    OwnedPartitions,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)

__all__ = ["RecordedGroup", "RecordedGroups", "RecordedMember", "partitions_of"]

NO_PARTITIONS: Final = frozenset[TopicIdPartition]()


def partitions_of(owned: OwnedPartitions) -> frozenset[TopicIdPartition]:
    """Owned partitions as a set."""
    return frozenset((TopicId(t), p) for t, numbers in owned.items() for p in numbers)


@dataclass(slots=True)
class RecordedMember:
    """A member as its latest records have it."""

    subscription: MemberSubscription = field(default_factory=MemberSubscription)
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: frozenset[TopicIdPartition] = NO_PARTITIONS
    revoking: frozenset[TopicIdPartition] = NO_PARTITIONS

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What no other member may be given."""
        return self.assigned | self.revoking


@dataclass(slots=True)
class RecordedGroup:
    """A group as its latest records have it."""

    epoch: int = 0
    assignment_epoch: int = 0
    members: dict[str, RecordedMember] = field(default_factory=dict[str, RecordedMember])
    targets: dict[str, frozenset[TopicIdPartition]] = field(
        default_factory=dict[str, frozenset[TopicIdPartition]]
    )
    offsets: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])


class RecordedGroups:
    """All groups. ``note`` must be called with every record, in order.

    ``first_epoch`` is that of a group whose records give none: from 4.3 on a group may have
    members and nothing to assign.
    """

    def __init__(self, first_epoch: int) -> None:
        self._first_epoch = first_epoch
        self.groups: dict[str, RecordedGroup] = {}
        self._notes: dict[type[StateRecord], Callable[[RecordedGroup, Any], None]] = {
            GroupEpochMetadata: self._group_epoch,
            TargetAssignmentMetadata: self._assignment_epoch,
            MemberMetadata: self._member,
            CurrentMemberAssignment: self._current,
            TargetAssignmentMember: self._target,
            OffsetCommit: self._offset,
        }

    def group(self, group_id: str) -> RecordedGroup:
        """The group of this id; an empty one when no record spoke of it."""
        return self.groups.get(group_id) or self._new()

    def member(self, group_id: str, member_id: str) -> RecordedMember | None:
        """The member of this id, ``None`` when it is not in the group."""
        group = self.groups.get(group_id)
        return None if group is None else group.members.get(member_id)

    def note(self, record: StateRecord) -> None:
        """Enter a record."""
        enter = self._notes.get(type(record))
        if enter is not None:
            group = self.groups.get(record.group_id)
            if group is None:
                group = self.groups[record.group_id] = self._new()
            enter(group, record)

    def _new(self) -> RecordedGroup:
        return RecordedGroup(epoch=self._first_epoch, assignment_epoch=self._first_epoch)

    def _group_epoch(self, group: RecordedGroup, record: GroupEpochMetadata) -> None:
        if record.value is None:
            self.groups[record.group_id] = replace(self._new(), offsets=group.offsets)
        else:
            group.epoch = record.value.epoch

    def _assignment_epoch(self, group: RecordedGroup, record: TargetAssignmentMetadata) -> None:
        group.assignment_epoch = 0 if record.value is None else record.value.assignment_epoch

    def _member(self, group: RecordedGroup, record: MemberMetadata) -> None:
        if record.value is None:
            group.members.pop(record.member_id, None)
        else:
            member = group.members.setdefault(record.member_id, RecordedMember())
            member.subscription = record.value

    def _current(self, group: RecordedGroup, record: CurrentMemberAssignment) -> None:
        value = record.value
        if value is None:
            member = group.members.get(record.member_id)
            if member is not None:
                member.assigned = member.revoking = NO_PARTITIONS
            return
        member = group.members.setdefault(record.member_id, RecordedMember())
        member.epoch = value.member_epoch
        member.previous_epoch = value.previous_member_epoch
        member.state = value.state
        member.assigned = partitions_of(value.assigned)
        member.revoking = partitions_of(value.pending_revocation)

    def _target(self, group: RecordedGroup, record: TargetAssignmentMember) -> None:
        if record.value is None:
            group.targets.pop(record.member_id, None)
        else:
            group.targets[record.member_id] = frozenset(
                (TopicId(t), p) for t, numbers in record.value.items() for p in numbers
            )

    def _offset(self, group: RecordedGroup, record: OffsetCommit) -> None:
        key = (record.topic, record.partition)
        if record.value is None:
            group.offsets.pop(key, None)
        else:
            group.offsets[key] = record.value.offset

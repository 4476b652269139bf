"""Targets that Kafka computes without a look at the member in whose request it does so.

A request that brings a pattern whose topics are not known yet does not move the group epoch. If the
target is due nevertheless, because the epoch moved before, Kafka computes it for all members, this
one included, but takes from before the request whether all of them subscribe to the same (asked of
4.0 to 4.4 by the differential suite). Then the topics of one member count for all, and those of the
others can be in no target until the group epoch moves again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mock_coordinator.core.groups.records.state_records import (
    GroupEpochMetadata,
    MemberMetadata,
    MemberSubscription,
    StateRecord,
    TargetAssignmentMetadata,
)
from mock_coordinator.sim.recorded_groups import RecordedGroup, RecordedGroups

__all__ = ["BlindTargets"]


class BlindTargets:
    """Finds them in the records. ``written`` is to be called with those of each step, before the
    groups know them."""

    def __init__(self) -> None:
        self._found: set[tuple[str, int]] = set()

    def written(self, groups: RecordedGroups, records: Sequence[StateRecord]) -> None:
        """The coordinator wrote these in one step."""
        moved = {each.group_id for each in records if isinstance(each, GroupEpochMetadata)}
        for record in records:
            if not isinstance(record, TargetAssignmentMetadata) or record.value is None:
                continue
            group_id = record.group_id
            mine = [
                each
                for each in records
                if isinstance(each, MemberMetadata) and each.group_id == group_id
            ]
            target = group_id, record.value.assignment_epoch
            if group_id not in moved and _is_blind(groups.group(group_id), mine):
                self._found.add(target)
            else:
                self._found.discard(target)

    def has(self, group_id: str, group: RecordedGroup) -> bool:
        """Whether the target of this group is one."""
        return (group_id, group.assignment_epoch) in self._found


def _is_blind(group: RecordedGroup, changes: Iterable[MemberMetadata]) -> bool:
    """Whether a member brings a pattern, and all subscribed to the same before."""
    before = {
        (frozenset(each.subscription.subscribed_topic_names), _pattern(each.subscription))
        for each in group.members.values()
    }
    patterns = {pattern for _, pattern in before}
    brought = {_pattern(each.value) for each in changes if each.value is not None} - {""}
    return len(before) == 1 and bool(brought - patterns)


def _pattern(subscription: MemberSubscription) -> str:
    return subscription.subscribed_topic_regex

"""A group whose members the coordinator moves towards a target: what all such groups share.

Theory of operation
===================

KIP-848's state machine is independent of what is assigned. Members have epochs, a target has the
future assignment of each of them, and none is given what another one still holds. What is assigned
is a *resource*, an opaque id with numbered parts: a topic and its partitions in a consumer group, a
connector and its tasks in a Connect group (``connect.items``). This class has the members, their
targets, and the owner of each part; subclasses have the members' metadata and the types of their
records (``records``).

The ``apply_*`` methods are the only writers, one for each record type. Besides the values of the
records they keep *derived* state, which answers each question of a heartbeat with a dictionary
look-up, independent of the group's size. ``computing`` is *transient*: no record has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import ClassVar, Final, TypeVar

from kip848_client.core.assignors import NO_PARTITIONS, Partitions
from kip848_client.core.types import TopicId
from mock_coordinator.core.groups.records.assignor_values import NO_METADATA, AssignmentMetadata
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    CurrentAssignment,
    GroupEpoch,
    MemberSubscription,
    OwnedPartitions,
    RecordTypes,
    TargetEpoch,
)
from mock_coordinator.core.groups.state.member import Member

__all__ = ["REMOVED", "GroupState", "GroupType", "ReconciledGroup", "counted"]

K = TypeVar("K", int, str)

REMOVED: Final = CurrentAssignment(member_epoch=-1, previous_member_epoch=-1)
"""What a tombstone leaves of a current assignment."""


class GroupType(StrEnum):
    """The kinds of groups that share one namespace; the values are those of ListGroups v5.
    ``CONNECT`` is not Kafka's."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    CONNECT = "connect"


class GroupState(StrEnum):
    """The states of groups, as APIs spell them. ``DEAD`` is never stored."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ReconciledGroup:
    """The common half of consumer and Connect groups. Read it freely; only records may change
    it."""

    __slots__ = (
        "_stable_at",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "classic_members",
        "computing",
        "epoch",
        "group_id",
        "holders",
        "members",
        "offers",
        "static_members",
        "target_assignor",
        "target_error",
        "target_metadata",
        "targets",
    )

    type: ClassVar[GroupType]
    records: ClassVar[RecordTypes]
    """The types of the records that are written about such a group."""
    gathers: ClassVar[bool] = False
    """Whether it waits for company before a member computes its first target."""

    def __init__(self, group_id: str, first_epoch: int) -> None:
        self.group_id = group_id
        self.epoch = first_epoch
        self.assignment_epoch = first_epoch
        self.assignment_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Partitions] = {}
        self.target_metadata: dict[str, AssignmentMetadata] = {}
        self.target_error = 0
        self.target_assignor = ""
        """the client-side assignor that computed the target"""
        self.offers = 0
        """members that offer to compute the assignment themselves"""
        self.classic_members = 0
        """members that use the classic protocol"""
        self.holders: dict[TopicId, dict[int, str]] = {}
        """resource -> part -> the member that has it, assigned or pending revocation"""
        self._stable_at: dict[int, int] = {}  # member epoch -> members in STABLE at it
        self.computing: str | None = None
        """the member that was chosen to compute the target"""

    # --- Questions --------------------------------------------------------------------------------

    @property
    def state(self) -> GroupState:
        """Derived from the epochs and the members, in constant time."""
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if self._stable_at.get(self.assignment_epoch, 0) != len(self.members):
            return GroupState.RECONCILING
        return GroupState.STABLE

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def client_assigned(self) -> bool:
        """Whether members offer assignors of their own, and none offers nothing. Those of the
        classic protocol go along."""
        return self.offers > 0 and self.offers + self.classic_members == len(self.members)

    @property
    def broker_computes(self) -> bool:
        """Whether the next target is the broker's."""
        return not self.client_assigned

    @property
    def last_to_compute(self) -> str | None:
        """The member that computed the target, where that is remembered beyond a fail-over."""
        return None

    @property
    def eldest(self) -> str | None:
        """The member whose wishes settle what the votes leave open, where seniority counts."""
        return None

    def release_rule(
        self, member_id: str, target: Partitions
    ) -> Callable[[TopicId, int], bool] | None:
        """Says of a resource and a part of this target whether the member has to wait for it even
        though it is free, where there is such a rule."""
        del member_id, target
        return None

    def metadata_of(self, member_id: str, instance_id: str | None = None) -> AssignmentMetadata:
        """What the target says to a member beside its parts; see ``target_of``."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        metadata = self.target_metadata.get(member_id, NO_METADATA)
        return replace(metadata, error=self.target_error) if self.target_error else metadata

    def static_member(self, instance_id: str | None) -> Member | None:
        """The member that has this instance id."""
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str, instance_id: str | None = None) -> Partitions:
        """A member's target; with an instance id, that of the member that has the instance id."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.targets.get(member_id, NO_PARTITIONS)

    # --- Changes: one method for each record type -------------------------------------------------

    def apply_epoch(self, value: GroupEpoch) -> None:
        """The group epoch."""
        self.epoch = value.epoch

    def apply_subscription(self, member_id: str, value: MemberSubscription | None) -> None:
        """What a member says about itself. The tombstone removes the member."""
        member = self.members.get(member_id)
        old = MemberSubscription() if member is None else member.subscription
        if value is None:
            if member is None:
                return
            self._forget(member)
            self._count_subscription(old, MemberSubscription())
            return
        if member is None:
            member = Member(member_id)
            self._count_progress(member.current, 1)
        self._put(replace(member, subscription=value))
        self._count_subscription(old, value)
        if old.instance_id is not None and old.instance_id != value.instance_id:
            self.static_members.pop(old.instance_id, None)
        if value.instance_id is not None:
            self.static_members[value.instance_id] = member_id

    def apply_target_epoch(self, value: TargetEpoch | None) -> None:
        """The group epoch that the target is for."""
        if value is None:
            self.assignment_epoch = -1
            self.assignment_timestamp_ms = 0
            self.target_error = 0
            self.target_assignor = ""
        else:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.timestamp_ms
            self.target_error = value.error
            self.target_assignor = value.assignor

    def apply_target(
        self, member_id: str, value: Partitions | None, metadata: AssignmentMetadata = NO_METADATA
    ) -> None:
        """What a member should have in the end."""
        if value is None or metadata == NO_METADATA:
            self.target_metadata.pop(member_id, None)
        else:
            self.target_metadata[member_id] = metadata
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = value

    def apply_current(self, member_id: str, value: CurrentAssignment | None) -> None:
        """How far a member is. The tombstone takes what it has and leaves the member."""
        member = self.members.get(member_id)
        if member is None:
            if value is None:
                return
            member = Member(member_id)
        else:
            self._count_progress(member.current, -1)
        current = REMOVED if value is None else value
        self._count_progress(current, 1)
        self._move(member_id, member.current, current)
        self._put(replace(member, current=current))

    def adopt(self, member: Member, target: Partitions) -> None:
        """Put a member in as a whole: an upgrade (KIP-848) decides on a group that no record has
        made yet."""
        self._put(member)
        self._count_subscription(MemberSubscription(), member.subscription)
        self._count_progress(member.current, 1)
        self._move(member.member_id, CurrentAssignment(), member.current)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.apply_target(member.member_id, target, member.current.metadata)

    # --- Derived state ----------------------------------------------------------------------------

    def _put(self, member: Member) -> None:
        self.members[member.member_id] = member

    def _forget(self, member: Member) -> None:
        self._count_progress(member.current, -1)
        self._move(member.member_id, member.current, REMOVED)
        del self.members[member.member_id]
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _count_progress(self, current: CurrentAssignment, change: int) -> None:
        if current.state is MemberState.STABLE:
            counted(self._stable_at, current.member_epoch, change)

    def _count_subscription(self, old: MemberSubscription, new: MemberSubscription) -> None:
        self.offers += bool(new.client_assignors) - bool(old.client_assignors)
        self.classic_members += (new.classic is not None) - (old.classic is not None)

    def _move(self, member_id: str, old: CurrentAssignment, new: CurrentAssignment) -> None:
        """Free what the member no longer has, then note what it has now."""
        if old.assigned is not new.assigned or old.pending_revocation is not new.pending_revocation:
            self._free(member_id, old.assigned)
            self._free(member_id, old.pending_revocation)
            self._hold(member_id, new.assigned)
            self._hold(member_id, new.pending_revocation)

    def _free(self, member_id: str, owned: OwnedPartitions) -> None:
        for topic_id, partitions in owned.items():
            holders = self.holders.get(topic_id)
            if holders is None:
                continue
            for partition in partitions:
                if holders.get(partition) == member_id:
                    del holders[partition]
            if not holders:
                del self.holders[topic_id]

    def _hold(self, member_id: str, owned: OwnedPartitions) -> None:
        for topic_id, partitions in owned.items():
            holders = self.holders.setdefault(topic_id, {})
            for partition in partitions:
                holders[partition] = member_id


def counted(counts: dict[K, int], key: K, change: int) -> None:
    """Add to a counter; a counter at zero does not exist."""
    count = counts.get(key, 0) + change
    if count > 0:
        counts[key] = count
    else:
        counts.pop(key, None)

"""One consumer group: what its records say, and what follows from them.

Theory of operation
===================

The fields fall into three kinds. *Primary* state is what records carry: epochs, members, targets,
resolved regexes. *Derived* state is kept in step by the ``apply_*`` methods, which are the only
writers: who holds a partition, how many members subscribe to a topic, the votes for an assignor,
how many members are done. It makes every question of a heartbeat a dictionary look-up, however
large the group. *Transient* state (``metadata_fresh``) is not in the records and is lost when a
broker is replaced; losing it costs one look at the topics at the next heartbeat.

``order`` and ``vote_order`` mirror Kafka's hash tables, because the order of members decides
targets (see ``kip848_client.assignors``). They follow every put that a record causes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Final, TypeVar

from kip848_client._types import TopicId
from kip848_client.assignors import (
    NO_PARTITIONS,
    Partitions,
    SubscriptionType,
    TimelineOrder,
    subscription_type,
)
from mock_coordinator.core.groups.client_assignors.values import NO_METADATA, AssignmentMetadata
from mock_coordinator.core.groups.member import Member
from mock_coordinator.core.groups.member_state import MemberState
from mock_coordinator.core.groups.records import (
    ClassicMemberMetadata,
    CurrentAssignment,
    GroupEpoch,
    MemberSubscription,
    OwnedPartitions,
    ResolvedRegex,
    TargetEpoch,
    TopicShape,
)

__all__ = ["REMOVED", "ConsumerGroup", "GroupState", "GroupType"]

K = TypeVar("K", int, str)

REMOVED: Final = CurrentAssignment(member_epoch=-1, previous_member_epoch=-1)
"""What a tombstone leaves of a current assignment."""


class GroupType(StrEnum):
    """The kinds of groups that share one namespace; the values are those of ListGroups v5."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class GroupState(StrEnum):
    """The states of groups, as APIs spell them. ``DEAD`` is never stored."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerGroup:
    """A group of type consumer. Read it freely; only records may change it."""

    __slots__ = (
        "_stable_at",
        "_subscription_type",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "by_name",
        "by_regex",
        "classic_members",
        "classic_protocols",
        "computing",
        "epoch",
        "group_id",
        "holders",
        "members",
        "metadata_fresh",
        "metadata_hash",
        "offers",
        "order",
        "regexes",
        "resolved",
        "static_members",
        "target_error",
        "target_metadata",
        "targets",
        "topic_shapes",
        "vote_order",
        "votes",
    )

    type: Final = GroupType.CONSUMER

    def __init__(self, group_id: str, first_epoch: int) -> None:
        self.group_id = group_id
        self.epoch = first_epoch
        self.assignment_epoch = first_epoch
        self.assignment_timestamp_ms = 0
        self.metadata_hash = 0
        self.topic_shapes: tuple[TopicShape, ...] = ()
        self.members: dict[str, Member] = {}
        self.order = TimelineOrder()
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Partitions] = {}
        self.target_metadata: dict[str, AssignmentMetadata] = {}
        self.target_error = 0
        self.resolved: dict[str, ResolvedRegex] = {}
        self.by_name: dict[str, int] = {}
        """topic -> members that subscribe to it by name"""
        self.by_regex: dict[str, int] = {}
        """topic -> resolved regexes in use that match it"""
        self.regexes: dict[str, int] = {}
        """regex -> members that use it"""
        self.votes: dict[str, int] = {}
        """server assignor -> members that ask for it"""
        self.vote_order = TimelineOrder()
        self.classic_members = 0
        """members that use the classic protocol"""
        self.classic_protocols: dict[str, int] = {}
        """name of a classic protocol -> classic members that support it"""
        self.offers = 0
        """members that offer to compute the assignment themselves"""
        self.holders: dict[TopicId, dict[int, str]] = {}
        """topic id -> partition -> the member that has it, assigned or pending revocation"""
        self._stable_at: dict[int, int] = {}  # member epoch -> members in STABLE at it
        self._subscription_type: SubscriptionType | None = SubscriptionType.HOMOGENEOUS
        self.metadata_fresh = False
        self.computing: str | None = None
        """the member that was chosen to compute the target; transient, too"""

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
    def subscription_type(self) -> SubscriptionType:
        """Whether all members subscribed to the same when a member last changed.

        A regex that is resolved or dropped since then does not count: Kafka looks again only when
        a record of a member is applied.
        """
        if self._subscription_type is None:
            self._subscription_type = subscription_type(
                len(self.members), self.subscribed_topics(), self.regexes.values()
            )
        return self._subscription_type

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def client_assigned(self) -> bool:
        """Whether members offer assignors of their own, and none offers nothing."""
        return self.offers > 0 and self.offers + self.classic_members == len(self.members)

    def metadata_of(self, member_id: str, instance_id: str | None = None) -> AssignmentMetadata:
        """What the target says to a member beside its partitions; see ``target_of``."""
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

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether any member subscribes to the topic, by name or by a resolved regex."""
        return topic in self.by_name or topic in self.by_regex

    def subscribed_topics(self) -> dict[str, tuple[int, int]]:
        """topic -> (members by name, resolved regexes), as the records applied so far say."""
        counts = {name: (count, self.by_regex.get(name, 0)) for name, count in self.by_name.items()}
        for name, count in self.by_regex.items():
            if name not in counts:
                counts[name] = (0, count)
        return counts

    def ordered_votes(self) -> dict[str, int]:
        """The votes for assignors in the order of Kafka's table."""
        return {name: self.votes[name] for name in self.vote_order}

    def target_of(self, member_id: str, instance_id: str | None = None) -> Partitions:
        """A member's target; with an instance id, that of the member that has the instance id."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.targets.get(member_id, NO_PARTITIONS)

    def newest_regex(self) -> ResolvedRegex | None:
        """One of the resolved regexes; all are refreshed together."""
        return next(iter(self.resolved.values()), None)

    def supports_classic_protocols(self, names: Iterable[str]) -> bool:
        """Whether all classic members support one of these; always, when there is none of them."""
        return any(self.classic_protocols.get(name, 0) == self.classic_members for name in names)

    # --- Changes: one method for each record type -------------------------------------------------

    def apply_epoch(self, value: GroupEpoch) -> None:
        """Key type 3."""
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def apply_topic_shapes(self, value: tuple[TopicShape, ...] | None) -> None:
        """Key type 4."""
        self.topic_shapes = value or ()

    def apply_subscription(self, member_id: str, value: MemberSubscription | None) -> None:
        """Key type 5. The tombstone removes the member."""
        member = self.members.get(member_id)
        old = MemberSubscription() if member is None else member.subscription
        if value is None:
            if member is None:
                return
            self._forget(member)
            self._count_subscription(old, MemberSubscription())
            self._subscription_type = None
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
        self._subscription_type = None

    def apply_target_epoch(self, value: TargetEpoch | None) -> None:
        """Key type 6."""
        if value is None:
            self.assignment_epoch = -1
            self.assignment_timestamp_ms = 0
            self.target_error = 0
        else:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.timestamp_ms
            self.target_error = value.error

    def apply_target(
        self, member_id: str, value: Partitions | None, metadata: AssignmentMetadata = NO_METADATA
    ) -> None:
        """Key type 7."""
        if value is None or metadata == NO_METADATA:
            self.target_metadata.pop(member_id, None)
        else:
            self.target_metadata[member_id] = metadata
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = value

    def apply_current(self, member_id: str, value: CurrentAssignment | None) -> None:
        """Key type 8. The tombstone takes the partitions and leaves the member."""
        member = self.members.get(member_id)
        if member is None:
            if value is None:
                return
            member = Member(member_id)
        else:
            self._count_progress(member.current, -1)
        current = REMOVED if value is None else value
        self._count_progress(current, 1)
        self._move_partitions(member_id, member.current, current)
        self._put(replace(member, current=current))
        self._subscription_type = None

    def apply_regex(self, regex: str, value: ResolvedRegex | None) -> None:
        """Key type 16."""
        _ = self.subscription_type  # settled by the members' records so far, before this one
        old = self.resolved.pop(regex, None)
        for topic in () if old is None else old.topics:
            _count(self.by_regex, topic, -1)
        if value is not None:
            self.resolved[regex] = value
            for topic in value.topics:
                _count(self.by_regex, topic, 1)

    def adopt(self, member: Member, target: Partitions) -> None:
        """Put a member in as a whole: an upgrade (KIP-848) decides on a group that no record has
        made yet."""
        self._put(member)
        self._count_subscription(MemberSubscription(), member.subscription)
        self._count_progress(member.current, 1)
        self._move_partitions(member.member_id, CurrentAssignment(), member.current)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.targets[member.member_id] = target
        self._subscription_type = None

    # --- Derived state ----------------------------------------------------------------------------

    def _put(self, member: Member) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self.order.put(member.member_id)
        # Kafka takes the vote back and casts it again on every update; it can decide a tie
        self._vote(None if old is None else old.subscription.server_assignor, -1)
        self._vote(member.subscription.server_assignor, 1)

    def _forget(self, member: Member) -> None:
        self._vote(member.subscription.server_assignor, -1)
        self._count_progress(member.current, -1)
        self._move_partitions(member.member_id, member.current, REMOVED)
        del self.members[member.member_id]
        self.order.remove(member.member_id)
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _count_progress(self, current: CurrentAssignment, change: int) -> None:
        if current.state is MemberState.STABLE:
            _count(self._stable_at, current.member_epoch, change)

    def _count_subscription(self, old: MemberSubscription, new: MemberSubscription) -> None:
        self.offers += bool(new.client_assignors) - bool(old.client_assignors)
        if old.subscribed_topic_names != new.subscribed_topic_names:
            for topic in old.subscribed_topic_names:
                _count(self.by_name, topic, -1)
            for topic in new.subscribed_topic_names:
                _count(self.by_name, topic, 1)
        if old.subscribed_topic_regex != new.subscribed_topic_regex:
            if old.subscribed_topic_regex:
                _count(self.regexes, old.subscribed_topic_regex, -1)
            if new.subscribed_topic_regex:
                _count(self.regexes, new.subscribed_topic_regex, 1)
        if old.classic is not new.classic:
            self._count_classic(old.classic, -1)
            self._count_classic(new.classic, 1)

    def _count_classic(self, classic: ClassicMemberMetadata | None, change: int) -> None:
        if classic is not None:
            self.classic_members += change
            # a protocol that is offered twice counts twice, and then suits nobody: as in Kafka
            for protocol in classic.supported_protocols:
                _count(self.classic_protocols, protocol.name, change)

    def _vote(self, assignor: str | None, change: int) -> None:
        if assignor is None:
            return
        _count(self.votes, assignor, change)
        if assignor in self.votes:
            self.vote_order.put(assignor)
        else:
            self.vote_order.remove(assignor)

    def _move_partitions(
        self, member_id: str, old: CurrentAssignment, new: CurrentAssignment
    ) -> None:
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


def _count(counts: dict[K, int], key: K, change: int) -> None:
    """Add to a counter; a counter at zero does not exist."""
    count = counts.get(key, 0) + change
    if count > 0:
        counts[key] = count
    else:
        counts.pop(key, None)

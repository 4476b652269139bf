"""One consumer group: the content of its records, and what is derived from it.

Theory of operation
===================

It adds topics to what all reconciled groups have: the subscriptions of members, by name and by
regex, the server-side assignors that they select, and the state of members of the classic protocol.
There are three kinds of fields. *Primary* state is in records: resolved regexes, the hash of the
topics. *Derived* state is updated by the ``apply_*`` methods, which are the only writers: the
number of members subscribed to a topic, the votes for an assignor. *Transient* state
(``metadata_fresh``) is not in the records and is lost when a broker is replaced, at the cost of
reading the topics at the next heartbeat.

``order`` and ``vote_order`` mirror Kafka's hash tables, because the order of members affects
targets (see ``kip848_client.core.assignors``). They follow every put that a record causes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from kip848_client.core.assignors import (
    Partitions,
    SubscriptionType,
    TimelineOrder,
    subscription_type,
)
from mock_coordinator.core.groups.records.state_records import (
    CONSUMER_RECORDS,
    ClassicMemberMetadata,
    CurrentAssignment,
    GroupEpoch,
    MemberSubscription,
    RecordTypes,
    ResolvedRegex,
    TopicShape,
)
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.reconciled_group import (
    REMOVED,
    GroupState,
    GroupType,
    ReconciledGroup,
    counted,
)

__all__ = ["REMOVED", "ConsumerGroup", "GroupState", "GroupType"]


class ConsumerGroup(ReconciledGroup):
    """A group of type consumer. Read it freely; only records may change it."""

    __slots__ = (
        "_subscription_type",
        "by_name",
        "by_regex",
        "classic_protocols",
        "metadata_fresh",
        "metadata_hash",
        "order",
        "regexes",
        "resolved",
        "topic_shapes",
        "vote_order",
        "votes",
    )

    type: ClassVar[GroupType] = GroupType.CONSUMER
    records: ClassVar[RecordTypes] = CONSUMER_RECORDS

    def __init__(self, group_id: str, first_epoch: int) -> None:
        super().__init__(group_id, first_epoch)
        self.metadata_hash = 0
        self.topic_shapes: tuple[TopicShape, ...] = ()
        self.order = TimelineOrder()
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
        self.classic_protocols: dict[str, int] = {}
        """name of a classic protocol -> classic members that support it"""
        self._subscription_type: SubscriptionType | None = SubscriptionType.HOMOGENEOUS
        self.metadata_fresh = False

    # --- Questions --------------------------------------------------------------------------------

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

    def newest_regex(self) -> ResolvedRegex | None:
        """One of the resolved regexes; all are refreshed together."""
        return next(iter(self.resolved.values()), None)

    def supports_classic_protocols(self, names: Iterable[str]) -> bool:
        """Whether all classic members support one of these; always, when there is none of them."""
        return any(self.classic_protocols.get(name, 0) == self.classic_members for name in names)

    # --- Changes: one method for each record type -------------------------------------------------

    def apply_epoch(self, value: GroupEpoch) -> None:
        """Key type 3."""
        super().apply_epoch(value)
        self.metadata_hash = value.metadata_hash

    def apply_topic_shapes(self, value: tuple[TopicShape, ...] | None) -> None:
        """Key type 4."""
        self.topic_shapes = value or ()

    def apply_subscription(self, member_id: str, value: MemberSubscription | None) -> None:
        """Key type 5."""
        known = member_id in self.members
        super().apply_subscription(member_id, value)
        if known or value is not None:
            self._subscription_type = None

    def apply_current(self, member_id: str, value: CurrentAssignment | None) -> None:
        """Key type 8."""
        known = member_id in self.members
        super().apply_current(member_id, value)
        if known or value is not None:
            self._subscription_type = None

    def apply_regex(self, regex: str, value: ResolvedRegex | None) -> None:
        """Key type 16."""
        # the kind of subscription is that of the members' records so far: note it before this one
        _ = self.subscription_type
        old = self.resolved.pop(regex, None)
        for topic in () if old is None else old.topics:
            counted(self.by_regex, topic, -1)
        if value is not None:
            self.resolved[regex] = value
            for topic in value.topics:
                counted(self.by_regex, topic, 1)

    def adopt(self, member: Member, target: Partitions) -> None:
        """As for every reconciled group."""
        super().adopt(member, target)
        self._subscription_type = None

    # --- Derived state ----------------------------------------------------------------------------

    def _put(self, member: Member) -> None:
        old = self.members.get(member.member_id)
        super()._put(member)
        self.order.put(member.member_id)
        # Kafka takes the vote back and casts it again on every update; it can decide a tie
        self._vote(None if old is None else old.subscription.server_assignor, -1)
        self._vote(member.subscription.server_assignor, 1)

    def _forget(self, member: Member) -> None:
        self._vote(member.subscription.server_assignor, -1)
        super()._forget(member)
        self.order.remove(member.member_id)

    def _count_subscription(self, old: MemberSubscription, new: MemberSubscription) -> None:
        super()._count_subscription(old, new)
        if old.subscribed_topic_names != new.subscribed_topic_names:
            for topic in old.subscribed_topic_names:
                counted(self.by_name, topic, -1)
            for topic in new.subscribed_topic_names:
                counted(self.by_name, topic, 1)
        if old.subscribed_topic_regex != new.subscribed_topic_regex:
            if old.subscribed_topic_regex:
                counted(self.regexes, old.subscribed_topic_regex, -1)
            if new.subscribed_topic_regex:
                counted(self.regexes, new.subscribed_topic_regex, 1)
        if old.classic is not new.classic:
            self._count_classic(old.classic, -1)
            self._count_classic(new.classic, 1)

    def _count_classic(self, classic: ClassicMemberMetadata | None, change: int) -> None:
        if classic is not None:
            # a protocol that is offered twice counts twice, and is then never elected: as in Kafka
            for protocol in classic.supported_protocols:
                counted(self.classic_protocols, protocol.name, change)

    def _vote(self, assignor: str | None, change: int) -> None:
        if assignor is None:
            return
        counted(self.votes, assignor, change)
        if assignor in self.votes:
            self.vote_order.put(assignor)
        else:
            self.vote_order.remove(assignor)

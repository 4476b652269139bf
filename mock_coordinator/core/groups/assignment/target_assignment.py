"""The target assignment of a whole group: the assignor's input, its call, and the resulting
records.

A target is recomputed in the first heartbeat, of any member, that finds the group epoch ahead of
the assignment epoch. The input must have Kafka's order for the result to be Kafka's;
``kip848_client.core.assignors`` documents that order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kip848_client.core.assignors import (
    NO_PARTITIONS,
    AssignorError,
    GroupSpec,
    MemberSpec,
    Partitions,
    TopicMetadata,
    described_assignor,
    elect_assignor,
    member_order,
    subscription_type,
)
from kip848_client.core.types import MemberId, TopicId
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.assignment.own_assignors import OwnAssignor, OwnAssignorFailed
from mock_coordinator.core.groups.assignment.subscriptions import (
    prospective_regexes,
    prospective_topics,
    subscribed_names,
    subscribed_topic_ids,
)
from mock_coordinator.core.groups.records.state_records import (
    MemberSubscription,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TargetEpoch,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Environment
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.topics.catalog import Catalog

__all__ = [
    "Sender",
    "assignor_of_target",
    "client_assignor",
    "compute_target",
    "current_assignor",
    "elected_assignor",
    "is_interval_over",
]


@dataclass(frozen=True, slots=True)
class Sender:
    """The member whose heartbeat is being handled.

    ``before`` is what the group counted of it so far, ``after`` what it will be. ``names`` are the
    topic names as the request lists them, ``replaced`` the member id it takes over.
    """

    before: Member
    after: Member
    names: tuple[str, ...] | None
    replaced: str | None


def is_interval_over(env: Environment, group: ConsumerGroup, now_ms: int) -> bool:
    """Whether the group may have a new target yet (KIP-1263)."""
    if group.assignment_timestamp_ms == 0:
        return True
    interval_ms = env.config.consumer_assignment_interval_ms(group.group_id)
    return interval_ms == 0 or now_ms >= group.assignment_timestamp_ms + interval_ms


def elected_assignor(env: Environment, group: ConsumerGroup, sender: Sender) -> str:
    """The name of the assignor that wins the vote, with the sender's new vote."""
    return elect_assignor(
        group.ordered_votes(),
        next(iter(env.assignors)),
        withdrawn=sender.before.subscription.server_assignor,
        cast=sender.after.subscription.server_assignor,
    )


def current_assignor(env: Environment, group: ConsumerGroup) -> str:
    """The name of the broker's assignor that the group's votes point to."""
    return described_assignor(group.ordered_votes(), next(iter(env.assignors)))


def client_assignor(env: Environment, group: ConsumerGroup) -> str:
    """The name of the client-side assignor that computed the target; ``""`` when none did."""
    return group.target_assignor if env.config.client_assignors else ""


def assignor_of_target(env: Environment, group: ConsumerGroup) -> str:
    """The name of the group's assignor, as the group is described."""
    return client_assignor(env, group) or current_assignor(env, group)


def compute_target(
    env: Environment,
    group: ConsumerGroup,
    epoch: int,
    sender: Sender,
    now_ms: int,
    *,
    counts_sender: bool,
) -> tuple[list[StateRecord], Partitions]:
    """Run the assignor for the group epoch; the records, and the target of the sender.

    ``counts_sender``: whether the subscription type takes the sender's change into account. Kafka
    looks at it again only when the heartbeat moves the group epoch or checks the topics.
    Raises ``Refused`` UNKNOWN_SERVER_ERROR when the assignor fails.
    """
    spec = _Specs(env, group, sender).build(counts_sender=counts_sender)
    assignor = env.assignors[elected_assignor(env, group, sender)]
    topics = _topics(env.catalog, with_racks=isinstance(assignor, OwnAssignor))
    try:
        result = assignor.assign(spec, topics).members
    except OwnAssignorFailed as err:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(err)) from err
    except AssignorError as err:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR) from err  # why is only in a broker's log
    known = dict(group.targets)
    if sender.replaced is not None and env.profile.target_built_over_members:
        # the new member was handed this target in the same step; before 4.4 it is written again
        known[sender.after.member_id] = group.target_of(sender.replaced)
    records: list[StateRecord] = [
        TargetAssignmentMember(group.group_id, member_id, target)
        for member_id, target in result.items()
        if known.get(member_id) is not target or member_id in group.target_metadata
    ]
    timestamp_ms = now_ms if env.profile.has_assignment_interval else 0
    records.append(TargetAssignmentMetadata(group.group_id, TargetEpoch(epoch, timestamp_ms)))
    return records, result.get(MemberId(sender.after.member_id), NO_PARTITIONS)


class _Specs:
    """Builds the assignor's input; members with the same subscription share their topic ids."""

    def __init__(self, env: Environment, group: ConsumerGroup, sender: Sender) -> None:
        self._env = env
        self._group = group
        self._sender = sender
        self._seen: dict[tuple[tuple[str, ...], str], tuple[tuple[TopicId, ...], int]] = {}

    def build(self, *, counts_sender: bool) -> GroupSpec:
        """All members in member order."""
        group, sender = self._group, self._sender
        joining = MemberId(sender.after.member_id)
        order = member_order(
            map(MemberId, group.order),
            joining=joining,
            replaced=None if sender.replaced is None else MemberId(sender.replaced),
            overlay=self._env.profile.target_built_over_members,
        )
        members: dict[MemberId, MemberSpec] = {}
        for member_id in order:
            if member_id == joining:
                target = group.target_of(sender.replaced or member_id)
                members[member_id] = self._spec(sender.after, target, sender.names)
            else:
                members[member_id] = self._spec(
                    group.members[member_id], group.targets.get(member_id, NO_PARTITIONS)
                )
        kind = group.subscription_type
        if counts_sender:
            old, new = sender.before.subscription, sender.after.subscription
            kind = subscription_type(
                len(order),
                prospective_topics(group, old, new),
                prospective_regexes(group, old, new).values(),
            )
        return GroupSpec(members, kind)

    def _spec(
        self, member: Member, target: Partitions, names: Iterable[str] | None = None
    ) -> MemberSpec:
        subscription = member.subscription
        topic_ids, size = self._topic_ids(subscription, names)
        return MemberSpec(
            topic_ids=topic_ids,
            target=target,
            instance_id=subscription.instance_id,
            rack_id=subscription.rack_id,
            subscription_size=size,
        )

    def _topic_ids(
        self, subscription: MemberSubscription, names: Iterable[str] | None
    ) -> tuple[tuple[TopicId, ...], int]:
        key = (subscription.subscribed_topic_names, subscription.subscribed_topic_regex)
        if names is None and key in self._seen:
            return self._seen[key]
        listed = subscribed_names(subscription, self._group.resolved, names)
        found = (subscribed_topic_ids(self._env.catalog, listed), len(listed))
        if names is None:
            self._seen[key] = found
        return found


def _topics(catalog: Catalog, *, with_racks: bool) -> dict[TopicId, TopicMetadata]:
    """All topics. Only a user's own assignor reads racks, so they are looked up for it only."""
    found: dict[TopicId, TopicMetadata] = {}
    for topic in catalog.topics.values():
        racks = catalog.racks_of(topic) if with_racks else ()
        found[topic.topic_id] = TopicMetadata(
            topic.name,
            topic.partitions,
            # fewer entries than partitions are repeated
            {i: frozenset(racks[i % len(racks)]) for i in range(topic.partitions if racks else 0)},
        )
    return found

"""The input of an assignor: taken once per computation, and later used to check its result
(KIP-848, ConsumerGroupPrepareAssignment)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kip848_client.core.assignors import NO_PARTITIONS, Partitions
from kip848_client.core.types import STATIC_LEAVE_EPOCH, TopicId
from kip848_client.core.wire.messages.client_assignors import (
    AssignmentTopicPartitions,
    ConsumerGroupPrepareAssignmentResponse,
    ConsumerGroupPrepareAssignmentResponseAssignor,
    ConsumerGroupPrepareAssignmentResponseMember,
    ConsumerGroupPrepareAssignmentResponseTopic,
)
from kip848_client.errors import WireError
from mock_coordinator.core.groups.assignment.subscriptions import (
    subscribed_names,
    subscribed_topic_ids,
)
from mock_coordinator.core.groups.client_assignors.selection import Offer, candidates
from mock_coordinator.core.groups.records.assignor_values import CLASSIC_VERSION, ClientAssignor
from mock_coordinator.core.groups.records.connect_protocol import spoken
from mock_coordinator.core.groups.records.connect_records import WorkerSubscription
from mock_coordinator.core.groups.records.consumer_protocol import read_subscription
from mock_coordinator.core.groups.records.state_records import ClassicProtocol
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.topics.catalog import Catalog

__all__ = [
    "GroupInput",
    "MemberInput",
    "TopicInput",
    "group_input",
    "member_offer",
    "offers_of",
    "prepared",
    "worker_assignor",
]


@dataclass(frozen=True, slots=True)
class TopicInput:
    """A subscribed topic."""

    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class MemberInput:
    """A member, its subscription, what it offered for the chosen assignor, and its last target."""

    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    topic_ids: tuple[TopicId, ...]
    assignor: ClientAssignor
    target: Partitions


@dataclass(frozen=True, slots=True)
class GroupInput:
    """The group at one group epoch."""

    group_epoch: int
    assignor: str
    members: Mapping[str, MemberInput]
    topics: Mapping[TopicId, TopicInput]


def member_offer(member: Member) -> Offer:
    """What the member offers. One that is away keeps its offer, and cannot be asked. A classic
    member offers its protocols (KIP-848, JoinGroup)."""
    if member.classic is not None:
        protocols = member.classic.supported_protocols
        return Offer(tuple(map(_classic_offer, protocols)), can_compute=False)
    return Offer(
        member.subscription.client_assignors, can_compute=member.epoch != STATIC_LEAVE_EPOCH
    )


def offers_of(members: Mapping[str, Member], eldest: str | None = None) -> dict[str, Offer]:
    """The common offers. A worker of the classic protocol accepts any assignor on which the workers
    of the new protocol agree, if that assignor can read its metadata and write its assignment.
    ``eldest`` as in ``selection``."""
    followers = {
        member_id: member.classic
        for member_id, member in members.items()
        if member.classic is not None and isinstance(member.subscription, WorkerSubscription)
    }
    offers = {
        member_id: member_offer(member)
        for member_id, member in members.items()
        if member_id not in followers
    }
    names = candidates(offers, eldest) if followers else []
    for member_id, classic in followers.items():
        assignors = tuple(_worker_offer(classic.supported_protocols, name) for name in names)
        offers[member_id] = Offer(assignors, can_compute=False)
    return offers


def worker_assignor(member: Member, name: str) -> ClientAssignor:
    """What a worker of either protocol offers for this assignor, which all can go along with."""
    if member.classic is not None:
        return _worker_offer(member.classic.supported_protocols, name)
    return next(each for each in member.subscription.client_assignors if each.name == name)


def _worker_offer(protocols: Iterable[ClassicProtocol], name: str) -> ClientAssignor:
    said = spoken(protocols)
    version = int(said.protocol)
    return ClientAssignor(name, version, version, metadata_version=version, metadata=said.raw)


def _classic_offer(protocol: ClassicProtocol) -> ClientAssignor:
    """The metadata of a classic member is the UserData that it embeds for this very protocol."""
    try:
        user_data = read_subscription(protocol.metadata)[1].user_data
    except WireError:  # only its favourite protocol had to be readable
        user_data = None
    return ClientAssignor(
        protocol.name,
        CLASSIC_VERSION,
        CLASSIC_VERSION,
        metadata_version=CLASSIC_VERSION,
        metadata=user_data or b"",
    )


def group_input(catalog: Catalog, group: ConsumerGroup, assignor: str) -> GroupInput:
    """The group as it is now. All members must offer the assignor."""
    members: dict[str, MemberInput] = {}
    topics: dict[TopicId, TopicInput] = {}
    for member_id, member in group.members.items():
        subscription = member.subscription
        names = subscribed_names(subscription, group.resolved)
        topic_ids = subscribed_topic_ids(catalog, names)
        for topic_id in topic_ids:
            topic = catalog.topic_by_id(topic_id)
            if topic is not None:
                topics[topic_id] = TopicInput(topic.name, topic.partitions)
        members[member_id] = MemberInput(
            member_epoch=member.epoch,
            instance_id=subscription.instance_id,
            rack_id=subscription.rack_id,
            topic_ids=topic_ids,
            assignor=next(each for each in member_offer(member).assignors if each.name == assignor),
            target=group.targets.get(member_id, NO_PARTITIONS),
        )
    return GroupInput(group.epoch, assignor, members, topics)


def prepared(given: GroupInput) -> ConsumerGroupPrepareAssignmentResponse:
    """The answer to the member that computes."""
    return ConsumerGroupPrepareAssignmentResponse(
        group_epoch=given.group_epoch,
        assignor_name=given.assignor,
        members=tuple(_member(member_id, each) for member_id, each in given.members.items()),
        topics=tuple(
            ConsumerGroupPrepareAssignmentResponseTopic(
                topic_id=topic_id, topic_name=topic.name, num_partitions=topic.partitions
            )
            for topic_id, topic in given.topics.items()
        ),
    )


def _member(member_id: str, given: MemberInput) -> ConsumerGroupPrepareAssignmentResponseMember:
    return ConsumerGroupPrepareAssignmentResponseMember(
        member_id=member_id,
        member_epoch=given.member_epoch,
        instance_id=given.instance_id,
        rack_id=given.rack_id,
        subscribed_topic_ids=given.topic_ids,
        assignor=ConsumerGroupPrepareAssignmentResponseAssignor(
            reason=given.assignor.reason,
            metadata_version=given.assignor.metadata_version,
            metadata_bytes=given.assignor.metadata,
        ),
        topic_partitions=tuple(
            AssignmentTopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in given.target.items()
        ),
    )

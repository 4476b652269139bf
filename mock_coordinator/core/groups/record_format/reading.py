"""Converts the fields of a key and a value, written by any release, to a state record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kip848_client.core.types import TopicId
from mock_coordinator.core.groups.record_format.keys import (
    GroupKey,
    GroupMemberKey,
    OffsetCommitKey,
    RegularExpressionKey,
)
from mock_coordinator.core.groups.record_format.values import (
    CurrentMemberAssignmentValue,
    CurrentTopicPartitions,
    GroupEpochValue,
    GroupMetadataValue,
    LegacyOffsetCommitValue,
    MemberMetadataValue,
    MemberMetadataValueClassic,
    OffsetCommitValue,
    PartitionMetadataValue,
    RegularExpressionValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    ValueMetadata,
)
from mock_coordinator.core.groups.records.assignor_values import (
    NO_METADATA,
    AssignmentMetadata,
    ClientAssignor,
)
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    ClassicGeneration,
    ClassicGroupMember,
    ClassicMemberMetadata,
    ClassicProtocol,
    CurrentAssignment,
    CurrentMemberAssignment,
    GroupEpoch,
    GroupEpochMetadata,
    GroupMetadata,
    MemberMetadata,
    MemberSubscription,
    OffsetAndMetadata,
    OffsetCommit,
    OwnedPartitions,
    PartitionMetadata,
    RegularExpression,
    ResolvedRegex,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TargetEpoch,
    TopicShape,
)

__all__ = [
    "assignment_metadata",
    "classic_metadata",
    "current_assignment",
    "group_epoch",
    "group_metadata",
    "legacy_offset_commit",
    "member_metadata",
    "member_state",
    "offset_commit",
    "partition_metadata",
    "regular_expression",
    "target_epoch",
    "target_member",
]


_STATES: Final = frozenset(state.value for state in MemberState)


def legacy_offset_commit(
    key: OffsetCommitKey, value: LegacyOffsetCommitValue | None
) -> OffsetCommit:
    """Key type 0."""
    stored = None
    if value is not None:
        stored = OffsetAndMetadata(
            offset=value.offset,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
        )
    return OffsetCommit(key.group, key.topic, key.partition, stored)


def offset_commit(key: OffsetCommitKey, value: OffsetCommitValue | None) -> OffsetCommit:
    """Key type 1."""
    stored = None
    if value is not None:
        expires = value.expire_timestamp
        stored = OffsetAndMetadata(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=None if expires == -1 else expires,
            topic_id=TopicId(value.topic_id),
        )
    return OffsetCommit(key.group, key.topic, key.partition, stored)


def group_metadata(key: GroupKey, value: GroupMetadataValue | None) -> GroupMetadata:
    """Key type 2. Before version 1 a member had one timeout for both purposes."""
    if value is None:
        return GroupMetadata(key.group)
    members = tuple(
        ClassicGroupMember(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=(
                member.session_timeout
                if member.rebalance_timeout == -1
                else member.rebalance_timeout
            ),
            session_timeout_ms=member.session_timeout,
            subscription=member.subscription,
            assignment=member.assignment,
        )
        for member in value.members
    )
    generation = ClassicGeneration(
        protocol_type=value.protocol_type,
        generation=value.generation,
        protocol=value.protocol,
        leader=value.leader,
        state_timestamp_ms=value.current_state_timestamp,
        members=members,
    )
    return GroupMetadata(key.group, generation)


def group_epoch(key: GroupKey, value: GroupEpochValue | None) -> GroupEpochMetadata:
    """Key type 3."""
    epoch = None if value is None else GroupEpoch(value.epoch, value.metadata_hash)
    return GroupEpochMetadata(key.group, epoch)


def partition_metadata(key: GroupKey, value: PartitionMetadataValue | None) -> PartitionMetadata:
    """Key type 4; brokers write the topics in the order of a hash table."""
    if value is None:
        return PartitionMetadata(key.group, None)
    shapes = [
        TopicShape(topic.topic_name, TopicId(topic.topic_id), topic.num_partitions)
        for topic in value.topics
    ]
    shapes.sort(key=lambda shape: shape.name)
    return PartitionMetadata(key.group, tuple(shapes))


def member_metadata(key: GroupMemberKey, value: MemberMetadataValue | None) -> MemberMetadata:
    """Key type 5."""
    if value is None:
        return MemberMetadata(key.group, key.member_id, None)
    said = MemberSubscription(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        subscribed_topic_names=value.subscribed_topic_names,
        subscribed_topic_regex=value.subscribed_topic_regex or "",
        server_assignor=value.server_assignor,
        client_assignors=tuple(
            ClientAssignor(
                offered.name,
                offered.minimum_version,
                offered.maximum_version,
                offered.reason,
                offered.metadata_version,
                offered.metadata,
            )
            for offered in value.client_assignors
        ),
        classic=classic_metadata(value.classic_member_metadata),
    )
    return MemberMetadata(key.group, key.member_id, said)


def classic_metadata(value: MemberMetadataValueClassic | None) -> ClassicMemberMetadata | None:
    """What only a member of the classic protocol has; ``None`` for any other."""
    if value is None:
        return None
    return ClassicMemberMetadata(
        value.session_timeout_ms,
        tuple(
            ClassicProtocol(protocol.name, protocol.metadata)
            for protocol in value.supported_protocols
        ),
    )


def target_epoch(
    key: GroupKey, value: TargetAssignmentMetadataValue | None
) -> TargetAssignmentMetadata:
    """Key type 6."""
    epoch = None
    if value is not None:
        epoch = TargetEpoch(
            value.assignment_epoch,
            value.assignment_timestamp,
            value.error,
            assignor=value.assignor,
        )
    return TargetAssignmentMetadata(key.group, epoch)


def target_member(
    key: GroupMemberKey, value: TargetAssignmentMemberValue | None
) -> TargetAssignmentMember:
    """Key type 7."""
    if value is None:
        return TargetAssignmentMember(key.group, key.member_id, None)
    partitions = {TopicId(topic.topic_id): topic.partitions for topic in value.topic_partitions}
    metadata = assignment_metadata(value.metadata)
    return TargetAssignmentMember(key.group, key.member_id, partitions, metadata)


def current_assignment(
    key: GroupMemberKey, value: CurrentMemberAssignmentValue | None
) -> CurrentMemberAssignment:
    """Key type 8."""
    if value is None:
        return CurrentMemberAssignment(key.group, key.member_id, None)
    current = CurrentAssignment(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=member_state(value.state),
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        pending_revocation=_owned(value.partitions_pending_revocation, value.member_epoch),
        metadata=assignment_metadata(value.metadata),
    )
    return CurrentMemberAssignment(key.group, key.member_id, current)


def member_state(number: int) -> MemberState:
    return MemberState(number) if number in _STATES else MemberState.UNKNOWN


def _owned(topics: Iterable[CurrentTopicPartitions], member_epoch: int) -> OwnedPartitions:
    """Raises ``ValueError`` when there are more or fewer epochs than partitions."""
    unknown = max(member_epoch, 0)
    owned: dict[TopicId, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if not epochs:
            owned[TopicId(topic.topic_id)] = dict.fromkeys(topic.partitions, unknown)
        else:
            owned[TopicId(topic.topic_id)] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def assignment_metadata(value: ValueMetadata | None) -> AssignmentMetadata:
    if value is None:
        return NO_METADATA
    return AssignmentMetadata(value.version, value.data, value.error)


def regular_expression(
    key: RegularExpressionKey, value: RegularExpressionValue | None
) -> RegularExpression:
    """Key type 16."""
    resolved = None
    if value is not None:
        resolved = ResolvedRegex(value.topics, value.version, value.timestamp)
    return RegularExpression(key.group, key.regular_expression, resolved)

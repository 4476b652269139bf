"""Converts a state record to the fields of its key and value, for a given release.

Each function returns the key, the version of the value, and the value (``None`` for a tombstone).
The versions are those observed on brokers: a value moves to a new version only if an older broker
could not misread it (KIP-915).
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.types import ZERO_TOPIC_ID
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
    GroupMetadataValueMember,
    MemberMetadataValue,
    MemberMetadataValueClassic,
    MemberMetadataValueClientAssignor,
    MemberMetadataValueProtocol,
    OffsetCommitValue,
    PartitionMetadataValue,
    PartitionMetadataValueTopic,
    RegularExpressionValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMemberValueTopic,
    TargetAssignmentMetadataValue,
    ValueMetadata,
)
from mock_coordinator.core.groups.records.assignor_values import NO_METADATA, AssignmentMetadata
from mock_coordinator.core.groups.records.state_records import (
    ClassicMemberMetadata,
    CurrentMemberAssignment,
    GroupEpochMetadata,
    GroupMetadata,
    MemberMetadata,
    OffsetCommit,
    OwnedPartitions,
    PartitionMetadata,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from mock_coordinator.core.profile import Profile

__all__ = [
    "classic_value",
    "current_assignment",
    "group_epoch",
    "group_metadata",
    "member_metadata",
    "metadata_value",
    "offset_commit",
    "partition_metadata",
    "regular_expression",
    "target_epoch",
    "target_member",
]

_WITH_EXPIRY: Final = 1
_GROUP_METADATA: Final = 3
"""The newest version without tagged fields."""


def offset_commit(
    profile: Profile, record: OffsetCommit
) -> tuple[OffsetCommitKey, int, OffsetCommitValue | None]:
    """Version 1 is the only one with a time of expiry, and has no topic id."""
    key = OffsetCommitKey(group=record.group_id, topic=record.topic, partition=record.partition)
    stored = record.value
    if stored is None:
        return key, 0, None
    expires = stored.expire_timestamp_ms is not None
    version = _WITH_EXPIRY if expires else profile.offset_commit_value_version
    value = OffsetCommitValue(
        offset=stored.offset,
        leader_epoch=stored.leader_epoch,
        metadata=stored.metadata,
        commit_timestamp=stored.commit_timestamp_ms,
        expire_timestamp=-1 if stored.expire_timestamp_ms is None else stored.expire_timestamp_ms,
        topic_id=ZERO_TOPIC_ID if expires else stored.topic_id,
    )
    return key, version, value


def group_metadata(
    _profile: Profile, record: GroupMetadata
) -> tuple[GroupKey, int, GroupMetadataValue | None]:
    """A classic group."""
    key = GroupKey(group=record.group_id)
    stored = record.value
    if stored is None:
        return key, 0, None
    members = tuple(
        GroupMetadataValueMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.subscription,
            assignment=member.assignment,
        )
        for member in stored.members
    )
    value = GroupMetadataValue(
        protocol_type=stored.protocol_type,
        generation=stored.generation,
        protocol=stored.protocol,
        leader=stored.leader,
        current_state_timestamp=stored.state_timestamp_ms,
        members=members,
    )
    return key, _GROUP_METADATA, value


def group_epoch(
    _profile: Profile, record: GroupEpochMetadata
) -> tuple[GroupKey, int, GroupEpochValue | None]:
    """The epoch of a consumer group."""
    key = GroupKey(group=record.group_id)
    if record.value is None:
        return key, 0, None
    value = GroupEpochValue(epoch=record.value.epoch, metadata_hash=record.value.metadata_hash)
    return key, 0, value


def partition_metadata(
    _profile: Profile, record: PartitionMetadata
) -> tuple[GroupKey, int, PartitionMetadataValue | None]:
    """The topics of a consumer group of 4.0, which stores no racks, whether it knows them or
    not."""
    key = GroupKey(group=record.group_id)
    if record.value is None:
        return key, 0, None
    topics = tuple(
        PartitionMetadataValueTopic(
            topic_id=shape.topic_id, topic_name=shape.name, num_partitions=shape.partitions
        )
        for shape in record.value
    )
    return key, 0, PartitionMetadataValue(topics=topics)


def member_metadata(
    _profile: Profile, record: MemberMetadata
) -> tuple[GroupMemberKey, int, MemberMetadataValue | None]:
    """A member's subscription; no regex is the empty one, as brokers write it."""
    key = GroupMemberKey(group=record.group_id, member_id=record.member_id)
    said = record.value
    if said is None:
        return key, 0, None
    value = MemberMetadataValue(
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=said.subscribed_topic_names,
        subscribed_topic_regex=said.subscribed_topic_regex,
        rebalance_timeout_ms=said.rebalance_timeout_ms,
        server_assignor=said.server_assignor,
        classic_member_metadata=classic_value(said.classic),
        client_assignors=tuple(
            MemberMetadataValueClientAssignor(
                name=offered.name,
                minimum_version=offered.minimum_version,
                maximum_version=offered.maximum_version,
                reason=offered.reason,
                metadata_version=offered.metadata_version,
                metadata=offered.metadata,
            )
            for offered in said.client_assignors
        ),
    )
    return key, 0, value


def classic_value(metadata: ClassicMemberMetadata | None) -> MemberMetadataValueClassic | None:
    """What only a member of the classic protocol has; ``None`` for any other."""
    if metadata is None:
        return None
    return MemberMetadataValueClassic(
        session_timeout_ms=metadata.session_timeout_ms,
        supported_protocols=tuple(
            MemberMetadataValueProtocol(name=protocol.name, metadata=protocol.metadata)
            for protocol in metadata.supported_protocols
        ),
    )


def target_epoch(
    _profile: Profile, record: TargetAssignmentMetadata
) -> tuple[GroupKey, int, TargetAssignmentMetadataValue | None]:
    """The epoch that the target is for."""
    key = GroupKey(group=record.group_id)
    if record.value is None:
        return key, 0, None
    value = TargetAssignmentMetadataValue(
        assignment_epoch=record.value.assignment_epoch,
        assignment_timestamp=record.value.timestamp_ms,
        error=record.value.error,
        assignor=record.value.assignor,
    )
    return key, 0, value


def target_member(
    _profile: Profile, record: TargetAssignmentMember
) -> tuple[GroupMemberKey, int, TargetAssignmentMemberValue | None]:
    """What a member should have."""
    key = GroupMemberKey(group=record.group_id, member_id=record.member_id)
    if record.value is None:
        return key, 0, None
    topics = tuple(
        TargetAssignmentMemberValueTopic(topic_id=topic_id, partitions=tuple(partitions))
        for topic_id, partitions in record.value.items()
    )
    value = TargetAssignmentMemberValue(
        topic_partitions=topics, metadata=metadata_value(record.metadata)
    )
    return key, 0, value


def current_assignment(
    profile: Profile, record: CurrentMemberAssignment
) -> tuple[GroupMemberKey, int, CurrentMemberAssignmentValue | None]:
    """What a member has."""
    key = GroupMemberKey(group=record.group_id, member_id=record.member_id)
    current = record.value
    if current is None:
        return key, 0, None
    value = CurrentMemberAssignmentValue(
        member_epoch=current.member_epoch,
        previous_member_epoch=current.previous_member_epoch,
        state=current.state.value,
        assigned_partitions=_owned(profile, current.assigned),
        partitions_pending_revocation=_owned(profile, current.pending_revocation),
        metadata=metadata_value(current.metadata),
    )
    return key, 0, value


def _owned(profile: Profile, owned: OwnedPartitions) -> tuple[CurrentTopicPartitions, ...]:
    epochs = profile.commits_use_assignment_epoch
    return tuple(
        CurrentTopicPartitions(
            topic_id=topic_id,
            partitions=tuple(partitions),
            assignment_epochs=tuple(partitions.values()) if epochs else (),
        )
        for topic_id, partitions in owned.items()
    )


def metadata_value(metadata: AssignmentMetadata) -> ValueMetadata | None:
    if metadata == NO_METADATA:
        return None
    return ValueMetadata(version=metadata.version, data=metadata.data, error=metadata.error)


def regular_expression(
    _profile: Profile, record: RegularExpression
) -> tuple[RegularExpressionKey, int, RegularExpressionValue | None]:
    """The topics that a regex matched."""
    key = RegularExpressionKey(group=record.group_id, regular_expression=record.regex)
    resolved = record.value
    if resolved is None:
        return key, 0, None
    value = RegularExpressionValue(
        topics=resolved.topics, version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return key, 0, value

"""The values of ``__consumer_offsets``, field by field, as in Kafka's record definitions.

A value is two bytes of version and then these fields. Later releases only add tagged fields
(KIP-915), so one class serves all releases, and a field that a release does not have keeps its
default: ``metadata_hash`` before 4.1, ``assignment_timestamp`` and ``assignment_epochs`` before
4.3.

Tags from 10480 are ours, not Kafka's: they have the fields of client-side assignors. Other readers
skip them; unset, they take no space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import (
    array,
    data,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)

__all__ = [
    "CurrentMemberAssignmentValue",
    "CurrentTopicPartitions",
    "GroupEpochValue",
    "GroupMetadataValue",
    "GroupMetadataValueMember",
    "LegacyOffsetCommitValue",
    "MemberMetadataValue",
    "MemberMetadataValueClassic",
    "MemberMetadataValueClientAssignor",
    "MemberMetadataValueProtocol",
    "OffsetCommitValue",
    "PartitionMetadataValue",
    "PartitionMetadataValuePartition",
    "PartitionMetadataValueTopic",
    "RegularExpressionValue",
    "TargetAssignmentMemberValue",
    "TargetAssignmentMemberValueTopic",
    "TargetAssignmentMetadataValue",
    "ValueMetadata",
]


@dataclass(slots=True, kw_only=True)
class LegacyOffsetCommitValue:
    """Key type 0."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = -1

    offset: int = int64()
    metadata: str = string()
    commit_timestamp: int = int64()


@dataclass(slots=True, kw_only=True)
class OffsetCommitValue:
    """Key type 1."""

    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 4

    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: bytes = uuid("none", tag=0, tagged="4+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class GroupMetadataValueMember:
    """Part of ``GroupMetadataValue``."""

    member_id: str = string()
    group_instance_id: str | None = string("3+", default=None, nullable="3+", ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = data()
    assignment: bytes = data()


@dataclass(slots=True, kw_only=True)
class GroupMetadataValue:
    """Key type 2: a classic group."""

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 4

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(default=None, nullable="0+")
    leader: str | None = string(default=None, nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: tuple[GroupMetadataValueMember, ...] = array(GroupMetadataValueMember)


@dataclass(slots=True, kw_only=True)
class GroupEpochValue:
    """Key type 3, ConsumerGroupMetadataValue."""

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    epoch: int = int32()
    metadata_hash: int = int64("none", tag=0, tagged="0+")


@dataclass(slots=True, kw_only=True)
class PartitionMetadataValuePartition:
    """Part of ``PartitionMetadataValue``; 4.0 does not write it any more."""

    partition: int = int32()
    racks: tuple[str, ...] = array("string")


@dataclass(slots=True, kw_only=True)
class PartitionMetadataValueTopic:
    """Part of ``PartitionMetadataValue``."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: tuple[PartitionMetadataValuePartition, ...] = array(
        PartitionMetadataValuePartition
    )


@dataclass(slots=True, kw_only=True)
class PartitionMetadataValue:
    """Key type 4, ConsumerGroupPartitionMetadataValue: of 4.0 only."""

    API_KEY: ClassVar[int] = 4
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    topics: tuple[PartitionMetadataValueTopic, ...] = array(PartitionMetadataValueTopic)


@dataclass(slots=True, kw_only=True)
class MemberMetadataValueProtocol:
    """Part of ``MemberMetadataValueClassic``."""

    name: str = string()
    metadata: bytes = data()


@dataclass(slots=True, kw_only=True)
class MemberMetadataValueClassic:
    """Part of ``MemberMetadataValue``: what only a member of the classic protocol has."""

    session_timeout_ms: int = int32()
    supported_protocols: tuple[MemberMetadataValueProtocol, ...] = array(
        MemberMetadataValueProtocol
    )


@dataclass(slots=True, kw_only=True)
class MemberMetadataValueClientAssignor:
    """Part of ``MemberMetadataValue``. DRAFT, not Kafka's."""

    name: str = string()
    minimum_version: int = int16()
    maximum_version: int = int16()
    reason: int = int8()
    metadata_version: int = int16()
    metadata: bytes = data()


@dataclass(slots=True, kw_only=True)
class MemberMetadataValue:
    """Key type 5, ConsumerGroupMemberMetadataValue."""

    API_KEY: ClassVar[int] = 5
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array("string")
    subscribed_topic_regex: str | None = string(default=None, nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(default=None, nullable="0+")
    classic_member_metadata: MemberMetadataValueClassic | None = struct(
        MemberMetadataValueClassic,
        "none",
        default=MemberMetadataValueClassic,
        nullable="0+",
        tag=0,
        tagged="0+",
    )
    """Null has to be said: what brokers take for unsaid is an empty struct."""
    client_assignors: tuple[MemberMetadataValueClientAssignor, ...] = array(
        MemberMetadataValueClientAssignor, "none", tag=10480, tagged="0+"
    )


@dataclass(slots=True, kw_only=True)
class ValueMetadata:
    """What a client-side assignor says beside partitions. DRAFT, not Kafka's."""

    version: int = int16()
    data: bytes = data()
    error: int = int8()


@dataclass(slots=True, kw_only=True)
class TargetAssignmentMetadataValue:
    """Key type 6, ConsumerGroupTargetAssignmentMetadataValue."""

    API_KEY: ClassVar[int] = 6
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64("none", tag=0, tagged="0+", ignorable=True)
    error: int = int8("none", tag=10480, tagged="0+")
    assignor: str = string("none", tag=10481, tagged="0+")


@dataclass(slots=True, kw_only=True)
class TargetAssignmentMemberValueTopic:
    """Part of ``TargetAssignmentMemberValue``."""

    topic_id: bytes = uuid()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class TargetAssignmentMemberValue:
    """Key type 7, ConsumerGroupTargetAssignmentMemberValue."""

    API_KEY: ClassVar[int] = 7
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    topic_partitions: tuple[TargetAssignmentMemberValueTopic, ...] = array(
        TargetAssignmentMemberValueTopic
    )
    metadata: ValueMetadata | None = struct(
        ValueMetadata, "none", nullable="0+", tag=10480, tagged="0+"
    )


@dataclass(slots=True, kw_only=True)
class CurrentTopicPartitions:
    """Part of ``CurrentMemberAssignmentValue``."""

    topic_id: bytes = uuid()
    partitions: tuple[int, ...] = array("int32")
    assignment_epochs: tuple[int, ...] | None = array(
        "int32", "none", nullable="0+", tag=0, tagged="0+"
    )


@dataclass(slots=True, kw_only=True)
class CurrentMemberAssignmentValue:
    """Key type 8, ConsumerGroupCurrentMemberAssignmentValue."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: tuple[CurrentTopicPartitions, ...] = array(CurrentTopicPartitions)
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...] = array(
        CurrentTopicPartitions
    )
    metadata: ValueMetadata | None = struct(
        ValueMetadata, "none", nullable="0+", tag=10480, tagged="0+"
    )


@dataclass(slots=True, kw_only=True)
class RegularExpressionValue:
    """Key type 16, ConsumerGroupRegularExpressionValue."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    topics: tuple[str, ...] = array("string")
    version: int = int64()
    timestamp: int = int64()

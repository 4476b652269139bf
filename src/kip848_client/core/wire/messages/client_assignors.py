"""Client-side assignors for consumer groups: DRAFT messages based on the text of KIP-848, never
released by Kafka. API keys 10480 and 10481 are not Kafka's (docs/reference/draft-protocols.md);
ApiVersions lists them only when the extension is on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, data, int8, int16, int32, string, struct, uuid

__all__ = [
    "AssignmentTopicPartitions",
    "ConsumerGroupInstallAssignmentRequest",
    "ConsumerGroupInstallAssignmentRequestMember",
    "ConsumerGroupInstallAssignmentResponse",
    "ConsumerGroupPrepareAssignmentRequest",
    "ConsumerGroupPrepareAssignmentResponse",
    "ConsumerGroupPrepareAssignmentResponseAssignor",
    "ConsumerGroupPrepareAssignmentResponseMember",
    "ConsumerGroupPrepareAssignmentResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class AssignmentTopicPartitions:
    """Some partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ConsumerGroupPrepareAssignmentRequest:
    """The chosen member requests the input of the assignor."""

    API_KEY: ClassVar[int] = 10480
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupPrepareAssignmentResponseAssignor:
    """What a member sent for the selected assignor."""

    reason: int = int8()
    metadata_version: int = int16()
    metadata_bytes: bytes = data()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupPrepareAssignmentResponseMember:
    """A member with its current target assignment."""

    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    subscribed_topic_ids: tuple[bytes, ...] = array("uuid")
    assignor: ConsumerGroupPrepareAssignmentResponseAssignor = struct(
        ConsumerGroupPrepareAssignmentResponseAssignor,
        default=ConsumerGroupPrepareAssignmentResponseAssignor,
    )
    topic_partitions: tuple[AssignmentTopicPartitions, ...] = array(AssignmentTopicPartitions)


@dataclass(slots=True, kw_only=True)
class ConsumerGroupPrepareAssignmentResponseTopic:
    """A subscribed topic."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = int32()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupPrepareAssignmentResponse:
    """The snapshot of the group at one group epoch."""

    API_KEY: ClassVar[int] = 10480
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    group_epoch: int = int32()
    assignor_name: str = string()
    members: tuple[ConsumerGroupPrepareAssignmentResponseMember, ...] = array(
        ConsumerGroupPrepareAssignmentResponseMember
    )
    topics: tuple[ConsumerGroupPrepareAssignmentResponseTopic, ...] = array(
        ConsumerGroupPrepareAssignmentResponseTopic
    )


@dataclass(slots=True, kw_only=True)
class ConsumerGroupInstallAssignmentRequestMember:
    """The target partitions of one member."""

    member_id: str = string()
    partitions: tuple[AssignmentTopicPartitions, ...] = array(AssignmentTopicPartitions)
    metadata_version: int = int16()
    metadata_bytes: bytes = data()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupInstallAssignmentRequest:
    """The chosen member installs a target assignment, or reports that it failed."""

    API_KEY: ClassVar[int] = 10481
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    group_epoch: int = int32()
    error: int = int8()
    members: tuple[ConsumerGroupInstallAssignmentRequestMember, ...] = array(
        ConsumerGroupInstallAssignmentRequestMember
    )


@dataclass(slots=True, kw_only=True)
class ConsumerGroupInstallAssignmentResponse:
    """Whether the target was installed."""

    API_KEY: ClassVar[int] = 10481
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")

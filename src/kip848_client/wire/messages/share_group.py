"""Members and descriptions of share groups (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.wire._fields import array, boolean, int16, int32, string, struct, uuid

__all__ = [
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "ShareGroupDescribeResponseAssignment",
    "ShareGroupDescribeResponseDescribedGroup",
    "ShareGroupDescribeResponseMember",
    "ShareGroupDescribeResponseTopicPartitions",
    "ShareGroupHeartbeatRequest",
    "ShareGroupHeartbeatResponse",
    "ShareGroupHeartbeatResponseAssignment",
    "ShareGroupHeartbeatResponseTopicPartitions",
]


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatRequest:
    """Request of API key 76, version 1."""

    API_KEY: ClassVar[int] = 76
    VERSIONS: ClassVar[tuple[int, int]] = (1, 1)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(default=None, nullable="0+")
    subscribed_topic_names: tuple[str, ...] | None = array("string", default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatResponseTopicPartitions:
    """Part of ``ShareGroupHeartbeatResponse``."""

    topic_id: bytes = uuid()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatResponseAssignment:
    """Part of ``ShareGroupHeartbeatResponse``."""

    topic_partitions: tuple[ShareGroupHeartbeatResponseTopicPartitions, ...] = array(
        ShareGroupHeartbeatResponseTopicPartitions
    )


@dataclass(slots=True, kw_only=True)
class ShareGroupHeartbeatResponse:
    """Response of API key 76, version 1."""

    API_KEY: ClassVar[int] = 76
    VERSIONS: ClassVar[tuple[int, int]] = (1, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(default=None, nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ShareGroupHeartbeatResponseAssignment | None = struct(
        ShareGroupHeartbeatResponseAssignment, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeRequest:
    """Request of API key 77, version 1."""

    API_KEY: ClassVar[int] = 77
    VERSIONS: ClassVar[tuple[int, int]] = (1, 1)
    FLEXIBLE: ClassVar[int] = 0

    group_ids: tuple[str, ...] = array("string")
    include_authorized_operations: bool = boolean()


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponseTopicPartitions:
    """Part of ``ShareGroupDescribeResponse``."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponseAssignment:
    """Part of ``ShareGroupDescribeResponse``."""

    topic_partitions: tuple[ShareGroupDescribeResponseTopicPartitions, ...] = array(
        ShareGroupDescribeResponseTopicPartitions
    )


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponseMember:
    """Part of ``ShareGroupDescribeResponse``."""

    member_id: str = string()
    rack_id: str | None = string(default=None, nullable="0+")
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array("string")
    assignment: ShareGroupDescribeResponseAssignment = struct(
        ShareGroupDescribeResponseAssignment, default=ShareGroupDescribeResponseAssignment
    )


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponseDescribedGroup:
    """Part of ``ShareGroupDescribeResponse``."""

    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: tuple[ShareGroupDescribeResponseMember, ...] = array(ShareGroupDescribeResponseMember)
    authorized_operations: int = int32(default=-2147483648)


@dataclass(slots=True, kw_only=True)
class ShareGroupDescribeResponse:
    """Response of API key 77, version 1."""

    API_KEY: ClassVar[int] = 77
    VERSIONS: ClassVar[tuple[int, int]] = (1, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    groups: tuple[ShareGroupDescribeResponseDescribedGroup, ...] = array(
        ShareGroupDescribeResponseDescribedGroup
    )

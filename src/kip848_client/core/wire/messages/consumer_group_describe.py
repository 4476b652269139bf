"""A consumer group with its epochs and assignments (KIP-848; member type: KIP-1099).

Tags from 10480 are not Kafka's: they have the results of a client-side assignor (see
``consumer_group_heartbeat``, whose fields of the same names have the same tags).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import (
    array,
    boolean,
    data,
    int8,
    int16,
    int32,
    string,
    struct,
    uuid,
)

__all__ = [
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupDescribeResponseAssignment",
    "ConsumerGroupDescribeResponseDescribedGroup",
    "ConsumerGroupDescribeResponseMember",
    "ConsumerGroupDescribeResponseTopicPartitions",
]


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeRequest:
    """Request of API key 69, versions 0 to 1."""

    API_KEY: ClassVar[int] = 69
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    group_ids: tuple[str, ...] = array("string")
    include_authorized_operations: bool = boolean()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponseTopicPartitions:
    """Part of ``ConsumerGroupDescribeResponse``."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponseAssignment:
    """Part of ``ConsumerGroupDescribeResponse``."""

    topic_partitions: tuple[ConsumerGroupDescribeResponseTopicPartitions, ...] = array(
        ConsumerGroupDescribeResponseTopicPartitions
    )
    error: int = int8("none", tag=10480, tagged="0+")
    metadata_version: int = int16("none", tag=10482, tagged="0+")
    metadata_bytes: bytes = data("none", tag=10483, tagged="0+")


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponseMember:
    """Part of ``ConsumerGroupDescribeResponse``."""

    member_id: str = string()
    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array("string")
    subscribed_topic_regex: str | None = string(default=None, nullable="0+")
    assignment: ConsumerGroupDescribeResponseAssignment = struct(
        ConsumerGroupDescribeResponseAssignment, default=ConsumerGroupDescribeResponseAssignment
    )
    target_assignment: ConsumerGroupDescribeResponseAssignment = struct(
        ConsumerGroupDescribeResponseAssignment, default=ConsumerGroupDescribeResponseAssignment
    )
    member_type: int = int8("1+", default=-1, ignorable=True)


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponseDescribedGroup:
    """Part of ``ConsumerGroupDescribeResponse``."""

    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: tuple[ConsumerGroupDescribeResponseMember, ...] = array(
        ConsumerGroupDescribeResponseMember
    )
    authorized_operations: int = int32(default=-2147483648)
    is_client_assignor: bool = boolean("none", tag=10480, tagged="0+")
    """Whether ``assignor_name`` is a client-side assignor."""


@dataclass(slots=True, kw_only=True)
class ConsumerGroupDescribeResponse:
    """Response of API key 69, versions 0 to 1."""

    API_KEY: ClassVar[int] = 69
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    groups: tuple[ConsumerGroupDescribeResponseDescribedGroup, ...] = array(
        ConsumerGroupDescribeResponseDescribedGroup
    )

"""Describes topics page by page, for administrators (KIP-966)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int16, int32, string, struct, uuid

__all__ = [
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsRequestCursor",
    "DescribeTopicPartitionsRequestTopicRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTopicPartitionsResponseCursor",
    "DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition",
    "DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsRequestTopicRequest:
    """Part of ``DescribeTopicPartitionsRequest``."""

    name: str = string()


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsRequestCursor:
    """Part of ``DescribeTopicPartitionsRequest``."""

    topic_name: str = string()
    partition_index: int = int32()


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsRequest:
    """Request of API key 75, version 0."""

    API_KEY: ClassVar[int] = 75
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    topics: tuple[DescribeTopicPartitionsRequestTopicRequest, ...] = array(
        DescribeTopicPartitionsRequestTopicRequest
    )
    response_partition_limit: int = int32(default=2000)
    cursor: DescribeTopicPartitionsRequestCursor | None = struct(
        DescribeTopicPartitionsRequestCursor, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition:
    """Part of ``DescribeTopicPartitionsResponse``."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    replica_nodes: tuple[int, ...] = array("int32")
    isr_nodes: tuple[int, ...] = array("int32")
    eligible_leader_replicas: tuple[int, ...] | None = array("int32", default=None, nullable="0+")
    last_known_elr: tuple[int, ...] | None = array("int32", default=None, nullable="0+")
    offline_replicas: tuple[int, ...] = array("int32", ignorable=True)


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic:
    """Part of ``DescribeTopicPartitionsResponse``."""

    error_code: int = int16()
    name: str | None = string(nullable="0+")
    topic_id: bytes = uuid(ignorable=True)
    is_internal: bool = boolean(default=False, ignorable=True)
    partitions: tuple[
        DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition, ...
    ] = array(DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(default=-2147483648)


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsResponseCursor:
    """Part of ``DescribeTopicPartitionsResponse``."""

    topic_name: str = string()
    partition_index: int = int32()


@dataclass(slots=True, kw_only=True)
class DescribeTopicPartitionsResponse:
    """Response of API key 75, version 0."""

    API_KEY: ClassVar[int] = 75
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32(ignorable=True)
    topics: tuple[DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic, ...] = array(
        DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic
    )
    next_cursor: DescribeTopicPartitionsResponseCursor | None = struct(
        DescribeTopicPartitionsResponseCursor, nullable="0+"
    )

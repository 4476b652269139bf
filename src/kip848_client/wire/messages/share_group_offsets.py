"""Shows, sets and drops where a share group starts to read (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.wire._fields import array, int16, int32, int64, string, uuid

__all__ = [
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestPartition",
    "AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestTopic",
    "AlterShareGroupOffsetsResponse",
    "AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartition",
    "AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopic",
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsRequestDeleteShareGroupOffsetsRequestTopic",
    "DeleteShareGroupOffsetsResponse",
    "DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopic",
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestGroup",
    "DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestTopic",
    "DescribeShareGroupOffsetsResponse",
    "DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroup",
    "DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartition",
    "DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestTopic:
    """Part of ``DescribeShareGroupOffsetsRequest``."""

    topic_name: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestGroup:
    """Part of ``DescribeShareGroupOffsetsRequest``."""

    group_id: str = string()
    topics: (
        tuple[DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestTopic, ...] | None
    ) = array(DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestTopic, nullable="0+")


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequest:
    """Request of API key 90, versions 0 to 1."""

    API_KEY: ClassVar[int] = 90
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    groups: tuple[DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestGroup, ...] = (
        array(DescribeShareGroupOffsetsRequestDescribeShareGroupOffsetsRequestGroup)
    )


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartition:
    """Part of ``DescribeShareGroupOffsetsResponse``."""

    partition_index: int = int32()
    start_offset: int = int64()
    leader_epoch: int = int32()
    lag: int = int64("1+", default=-1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopic:
    """Part of ``DescribeShareGroupOffsetsResponse``."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    partitions: tuple[
        DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartition, ...
    ] = array(DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponsePartition)


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroup:
    """Part of ``DescribeShareGroupOffsetsResponse``."""

    group_id: str = string()
    topics: tuple[DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopic, ...] = (
        array(DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseTopic)
    )
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponse:
    """Response of API key 90, versions 0 to 1."""

    API_KEY: ClassVar[int] = 90
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    groups: tuple[DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroup, ...] = (
        array(DescribeShareGroupOffsetsResponseDescribeShareGroupOffsetsResponseGroup)
    )


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestPartition:
    """Part of ``AlterShareGroupOffsetsRequest``."""

    partition_index: int = int32()
    start_offset: int = int64()


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestTopic:
    """Part of ``AlterShareGroupOffsetsRequest``."""

    topic_name: str = string()
    partitions: tuple[AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestPartition, ...] = (
        array(AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestPartition)
    )


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsRequest:
    """Request of API key 91, version 0."""

    API_KEY: ClassVar[int] = 91
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    topics: tuple[AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestTopic, ...] = array(
        AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestTopic
    )


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartition:
    """Part of ``AlterShareGroupOffsetsResponse``."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopic:
    """Part of ``AlterShareGroupOffsetsResponse``."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    partitions: tuple[
        AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartition, ...
    ] = array(AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartition)


@dataclass(slots=True, kw_only=True)
class AlterShareGroupOffsetsResponse:
    """Response of API key 91, version 0."""

    API_KEY: ClassVar[int] = 91
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    responses: tuple[AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopic, ...] = (
        array(AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopic)
    )


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupOffsetsRequestDeleteShareGroupOffsetsRequestTopic:
    """Part of ``DeleteShareGroupOffsetsRequest``."""

    topic_name: str = string()


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupOffsetsRequest:
    """Request of API key 92, version 0."""

    API_KEY: ClassVar[int] = 92
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    topics: tuple[DeleteShareGroupOffsetsRequestDeleteShareGroupOffsetsRequestTopic, ...] = array(
        DeleteShareGroupOffsetsRequestDeleteShareGroupOffsetsRequestTopic
    )


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopic:
    """Part of ``DeleteShareGroupOffsetsResponse``."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class DeleteShareGroupOffsetsResponse:
    """Response of API key 92, version 0."""

    API_KEY: ClassVar[int] = 92
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    responses: tuple[DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopic, ...] = (
        array(DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopic)
    )

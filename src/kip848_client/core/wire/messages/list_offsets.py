"""Offsets by timestamp (KIP-79), and the end offset of a leader epoch (KIP-320)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, int8, int16, int32, int64, string

__all__ = [
    "ListOffsetsRequest",
    "ListOffsetsRequestListOffsetsPartition",
    "ListOffsetsRequestListOffsetsTopic",
    "ListOffsetsResponse",
    "ListOffsetsResponseListOffsetsPartitionResponse",
    "ListOffsetsResponseListOffsetsTopicResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochRequestOffsetForLeaderPartition",
    "OffsetForLeaderEpochRequestOffsetForLeaderTopic",
    "OffsetForLeaderEpochResponse",
    "OffsetForLeaderEpochResponseEpochEndOffset",
    "OffsetForLeaderEpochResponseOffsetForLeaderTopicResult",
]


@dataclass(slots=True, kw_only=True)
class ListOffsetsRequestListOffsetsPartition:
    """Part of ``ListOffsetsRequest``."""

    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64()


@dataclass(slots=True, kw_only=True)
class ListOffsetsRequestListOffsetsTopic:
    """Part of ``ListOffsetsRequest``."""

    name: str = string()
    partitions: tuple[ListOffsetsRequestListOffsetsPartition, ...] = array(
        ListOffsetsRequestListOffsetsPartition
    )


@dataclass(slots=True, kw_only=True)
class ListOffsetsRequest:
    """Request of API key 2, versions 1 to 11."""

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE: ClassVar[int] = 6

    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: tuple[ListOffsetsRequestListOffsetsTopic, ...] = array(
        ListOffsetsRequestListOffsetsTopic
    )
    timeout_ms: int = int32("10+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class ListOffsetsResponseListOffsetsPartitionResponse:
    """Part of ``ListOffsetsResponse``."""

    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


@dataclass(slots=True, kw_only=True)
class ListOffsetsResponseListOffsetsTopicResponse:
    """Part of ``ListOffsetsResponse``."""

    name: str = string()
    partitions: tuple[ListOffsetsResponseListOffsetsPartitionResponse, ...] = array(
        ListOffsetsResponseListOffsetsPartitionResponse
    )


@dataclass(slots=True, kw_only=True)
class ListOffsetsResponse:
    """Response of API key 2, versions 1 to 11."""

    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (1, 11)
    FLEXIBLE: ClassVar[int] = 6

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: tuple[ListOffsetsResponseListOffsetsTopicResponse, ...] = array(
        ListOffsetsResponseListOffsetsTopicResponse
    )


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochRequestOffsetForLeaderPartition:
    """Part of ``OffsetForLeaderEpochRequest``."""

    partition: int = int32()
    current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    leader_epoch: int = int32()


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochRequestOffsetForLeaderTopic:
    """Part of ``OffsetForLeaderEpochRequest``."""

    topic: str = string()
    partitions: tuple[OffsetForLeaderEpochRequestOffsetForLeaderPartition, ...] = array(
        OffsetForLeaderEpochRequestOffsetForLeaderPartition
    )


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    """Request of API key 23, versions 2 to 4."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE: ClassVar[int] = 4

    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: tuple[OffsetForLeaderEpochRequestOffsetForLeaderTopic, ...] = array(
        OffsetForLeaderEpochRequestOffsetForLeaderTopic
    )


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochResponseEpochEndOffset:
    """Part of ``OffsetForLeaderEpochResponse``."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32("1+", default=-1, ignorable=True)
    end_offset: int = int64(default=-1)


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochResponseOffsetForLeaderTopicResult:
    """Part of ``OffsetForLeaderEpochResponse``."""

    topic: str = string()
    partitions: tuple[OffsetForLeaderEpochResponseEpochEndOffset, ...] = array(
        OffsetForLeaderEpochResponseEpochEndOffset
    )


@dataclass(slots=True, kw_only=True)
class OffsetForLeaderEpochResponse:
    """Response of API key 23, versions 2 to 4."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (2, 4)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: tuple[OffsetForLeaderEpochResponseOffsetForLeaderTopicResult, ...] = array(
        OffsetForLeaderEpochResponseOffsetForLeaderTopicResult
    )

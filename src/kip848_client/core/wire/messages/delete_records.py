"""Moves the start of partitions forward (KIP-107)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, int16, int32, int64, string

__all__ = [
    "DeleteRecordsRequest",
    "DeleteRecordsRequestDeleteRecordsPartition",
    "DeleteRecordsRequestDeleteRecordsTopic",
    "DeleteRecordsResponse",
    "DeleteRecordsResponseDeleteRecordsPartitionResult",
    "DeleteRecordsResponseDeleteRecordsTopicResult",
]


@dataclass(slots=True, kw_only=True)
class DeleteRecordsRequestDeleteRecordsPartition:
    """Part of ``DeleteRecordsRequest``."""

    partition_index: int = int32()
    offset: int = int64()


@dataclass(slots=True, kw_only=True)
class DeleteRecordsRequestDeleteRecordsTopic:
    """Part of ``DeleteRecordsRequest``."""

    name: str = string()
    partitions: tuple[DeleteRecordsRequestDeleteRecordsPartition, ...] = array(
        DeleteRecordsRequestDeleteRecordsPartition
    )


@dataclass(slots=True, kw_only=True)
class DeleteRecordsRequest:
    """Request of API key 21, versions 0 to 2."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    topics: tuple[DeleteRecordsRequestDeleteRecordsTopic, ...] = array(
        DeleteRecordsRequestDeleteRecordsTopic
    )
    timeout_ms: int = int32()


@dataclass(slots=True, kw_only=True)
class DeleteRecordsResponseDeleteRecordsPartitionResult:
    """Part of ``DeleteRecordsResponse``."""

    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


@dataclass(slots=True, kw_only=True)
class DeleteRecordsResponseDeleteRecordsTopicResult:
    """Part of ``DeleteRecordsResponse``."""

    name: str = string()
    partitions: tuple[DeleteRecordsResponseDeleteRecordsPartitionResult, ...] = array(
        DeleteRecordsResponseDeleteRecordsPartitionResult
    )


@dataclass(slots=True, kw_only=True)
class DeleteRecordsResponse:
    """Response of API key 21, versions 0 to 2."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32()
    topics: tuple[DeleteRecordsResponseDeleteRecordsTopicResult, ...] = array(
        DeleteRecordsResponseDeleteRecordsTopicResult
    )

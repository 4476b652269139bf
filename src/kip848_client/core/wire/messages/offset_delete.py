"""Removes committed positions (KIP-496)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, int16, int32, string

__all__ = [
    "OffsetDeleteRequest",
    "OffsetDeleteRequestPartition",
    "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse",
    "OffsetDeleteResponsePartition",
    "OffsetDeleteResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    """Part of ``OffsetDeleteRequest``."""

    partition_index: int = int32()


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    """Part of ``OffsetDeleteRequest``."""

    name: str = string()
    partitions: tuple[OffsetDeleteRequestPartition, ...] = array(OffsetDeleteRequestPartition)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequest:
    """Request of API key 47, versions 0 to 0."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = -1

    group_id: str = string()
    topics: tuple[OffsetDeleteRequestTopic, ...] = array(OffsetDeleteRequestTopic)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    """Part of ``OffsetDeleteResponse``."""

    partition_index: int = int32()
    error_code: int = int16()


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    """Part of ``OffsetDeleteResponse``."""

    name: str = string()
    partitions: tuple[OffsetDeleteResponsePartition, ...] = array(OffsetDeleteResponsePartition)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponse:
    """Response of API key 47, versions 0 to 0."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = -1

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: tuple[OffsetDeleteResponseTopic, ...] = array(OffsetDeleteResponseTopic)

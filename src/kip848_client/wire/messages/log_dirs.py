"""The folders that hold partitions (KIP-113)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.wire._fields import array, boolean, int16, int32, int64, string

__all__ = [
    "DescribeLogDirsRequest",
    "DescribeLogDirsRequestDescribableLogDirTopic",
    "DescribeLogDirsResponse",
    "DescribeLogDirsResponseDescribeLogDirsPartition",
    "DescribeLogDirsResponseDescribeLogDirsResult",
    "DescribeLogDirsResponseDescribeLogDirsTopic",
]


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsRequestDescribableLogDirTopic:
    """Part of ``DescribeLogDirsRequest``."""

    topic: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsRequest:
    """Request of API key 35, versions 1 to 5."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE: ClassVar[int] = 2

    topics: tuple[DescribeLogDirsRequestDescribableLogDirTopic, ...] | None = array(
        DescribeLogDirsRequestDescribableLogDirTopic, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResponseDescribeLogDirsPartition:
    """Part of ``DescribeLogDirsResponse``."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResponseDescribeLogDirsTopic:
    """Part of ``DescribeLogDirsResponse``."""

    name: str = string()
    partitions: tuple[DescribeLogDirsResponseDescribeLogDirsPartition, ...] = array(
        DescribeLogDirsResponseDescribeLogDirsPartition
    )


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResponseDescribeLogDirsResult:
    """Part of ``DescribeLogDirsResponse``."""

    error_code: int = int16()
    log_dir: str = string()
    topics: tuple[DescribeLogDirsResponseDescribeLogDirsTopic, ...] = array(
        DescribeLogDirsResponseDescribeLogDirsTopic
    )
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", default=False, ignorable=True)


@dataclass(slots=True, kw_only=True)
class DescribeLogDirsResponse:
    """Response of API key 35, versions 1 to 5."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32()
    error_code: int = int16("3+", ignorable=True)
    results: tuple[DescribeLogDirsResponseDescribeLogDirsResult, ...] = array(
        DescribeLogDirsResponseDescribeLogDirsResult
    )

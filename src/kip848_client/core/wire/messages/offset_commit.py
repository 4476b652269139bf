"""Stores consumed positions; member epoch from version 9 (KIP-848), topic ids from version 10."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, int16, int32, int64, string, uuid

__all__ = [
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestPartition:
    """Part of ``OffsetCommitRequest``."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequestTopic:
    """Part of ``OffsetCommitRequest``."""

    name: str = string("0-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: tuple[OffsetCommitRequestPartition, ...] = array(OffsetCommitRequestPartition)


@dataclass(slots=True, kw_only=True)
class OffsetCommitRequest:
    """Request of API key 8, versions 2 to 10."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE: ClassVar[int] = 8

    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", default=None, nullable="7+")
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...] = array(OffsetCommitRequestTopic)


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponsePartition:
    """Part of ``OffsetCommitResponse``."""

    partition_index: int = int32()
    error_code: int = int16()


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponseTopic:
    """Part of ``OffsetCommitResponse``."""

    name: str = string("0-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: tuple[OffsetCommitResponsePartition, ...] = array(OffsetCommitResponsePartition)


@dataclass(slots=True, kw_only=True)
class OffsetCommitResponse:
    """Response of API key 8, versions 2 to 10."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (2, 10)
    FLEXIBLE: ClassVar[int] = 8

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: tuple[OffsetCommitResponseTopic, ...] = array(OffsetCommitResponseTopic)

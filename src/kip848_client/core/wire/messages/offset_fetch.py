"""Reads committed positions; member epoch from version 9 (KIP-848), topic ids from version 10."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int16, int32, int64, string, uuid

__all__ = [
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopic",
    "OffsetFetchRequestTopics",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic",
    "OffsetFetchResponseTopics",
]


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestTopic:
    """Part of ``OffsetFetchRequest``."""

    name: str = string("0-7")
    partition_indexes: tuple[int, ...] = array("int32", "0-7")


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestTopics:
    """Part of ``OffsetFetchRequest``."""

    name: str = string("8-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partition_indexes: tuple[int, ...] = array("int32", "8+")


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequestGroup:
    """Part of ``OffsetFetchRequest``."""

    group_id: str = string("8+")
    member_id: str | None = string("9+", default=None, nullable="9+", ignorable=True)
    member_epoch: int = int32("9+", default=-1, ignorable=True)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = array(
        OffsetFetchRequestTopics, "8+", nullable="8+"
    )


@dataclass(slots=True, kw_only=True)
class OffsetFetchRequest:
    """Request of API key 9, versions 1 to 10."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE: ClassVar[int] = 6

    group_id: str = string("0-7")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = array(
        OffsetFetchRequestTopic, "0-7", nullable="2-7"
    )
    groups: tuple[OffsetFetchRequestGroup, ...] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponsePartition:
    """Part of ``OffsetFetchResponse``."""

    partition_index: int = int32("0-7")
    committed_offset: int = int64("0-7")
    committed_leader_epoch: int = int32("5-7", default=-1, ignorable=True)
    metadata: str | None = string("0-7", nullable="0-7")
    error_code: int = int16("0-7")


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseTopic:
    """Part of ``OffsetFetchResponse``."""

    name: str = string("0-7")
    partitions: tuple[OffsetFetchResponsePartition, ...] = array(
        OffsetFetchResponsePartition, "0-7"
    )


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponsePartitions:
    """Part of ``OffsetFetchResponse``."""

    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1, ignorable=True)
    metadata: str | None = string("8+", nullable="8+")
    error_code: int = int16("8+")


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseTopics:
    """Part of ``OffsetFetchResponse``."""

    name: str = string("8-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = array(
        OffsetFetchResponsePartitions, "8+"
    )


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponseGroup:
    """Part of ``OffsetFetchResponse``."""

    group_id: str = string("8+")
    topics: tuple[OffsetFetchResponseTopics, ...] = array(OffsetFetchResponseTopics, "8+")
    error_code: int = int16("8+")


@dataclass(slots=True, kw_only=True)
class OffsetFetchResponse:
    """Response of API key 9, versions 1 to 10."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (1, 10)
    FLEXIBLE: ClassVar[int] = 6

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: tuple[OffsetFetchResponseTopic, ...] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7", ignorable=True)
    groups: tuple[OffsetFetchResponseGroup, ...] = array(OffsetFetchResponseGroup, "8+")

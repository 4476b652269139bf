"""Commits consumed positions inside a transaction (KIP-447; topic ids from version 6, KIP-1319)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, int16, int32, int64, string, uuid

__all__ = [
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitRequestPartition",
    "TxnOffsetCommitRequestTopic",
    "TxnOffsetCommitResponse",
    "TxnOffsetCommitResponsePartition",
    "TxnOffsetCommitResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequestPartition:
    """Part of ``TxnOffsetCommitRequest``."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic:
    """Part of ``TxnOffsetCommitRequest``."""

    name: str = string("0-5", ignorable=True)
    topic_id: bytes = uuid("6+", ignorable=True)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = array(TxnOffsetCommitRequestPartition)


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitRequest:
    """Request of API key 28, versions 0 to 6."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 3

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id_or_member_epoch: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", default=None, nullable="3+")
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = array(TxnOffsetCommitRequestTopic)


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponsePartition:
    """Part of ``TxnOffsetCommitResponse``."""

    partition_index: int = int32()
    error_code: int = int16()


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic:
    """Part of ``TxnOffsetCommitResponse``."""

    name: str = string("0-5", ignorable=True)
    topic_id: bytes = uuid("6+", ignorable=True)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = array(
        TxnOffsetCommitResponsePartition
    )


@dataclass(slots=True, kw_only=True)
class TxnOffsetCommitResponse:
    """Response of API key 28, versions 0 to 6."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: int = int32()
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = array(TxnOffsetCommitResponseTopic)

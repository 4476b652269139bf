"""Reads record batches, with sessions (KIP-227) and topic ids (KIP-516, version 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import (
    array,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)

__all__ = [
    "FetchRequest",
    "FetchRequestFetchPartition",
    "FetchRequestFetchTopic",
    "FetchRequestForgottenTopic",
    "FetchRequestReplicaState",
    "FetchResponse",
    "FetchResponseAbortedTransaction",
    "FetchResponseEpochEndOffset",
    "FetchResponseFetchableTopicResponse",
    "FetchResponseLeaderIdAndEpoch",
    "FetchResponseNodeEndpoint",
    "FetchResponsePartitionData",
    "FetchResponseSnapshotId",
]


@dataclass(slots=True, kw_only=True)
class FetchRequestReplicaState:
    """Part of ``FetchRequest``."""

    replica_id: int = int32("15+", default=-1)
    replica_epoch: int = int64("15+", default=-1)


@dataclass(slots=True, kw_only=True)
class FetchRequestFetchPartition:
    """Part of ``FetchRequest``."""

    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: bytes = uuid("17+", tag=0, tagged="17+", ignorable=True)
    high_watermark: int = int64(
        "18+", default=9223372036854775807, tag=1, tagged="18+", ignorable=True
    )


@dataclass(slots=True, kw_only=True)
class FetchRequestFetchTopic:
    """Part of ``FetchRequest``."""

    topic: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partitions: tuple[FetchRequestFetchPartition, ...] = array(FetchRequestFetchPartition)


@dataclass(slots=True, kw_only=True)
class FetchRequestForgottenTopic:
    """Part of ``FetchRequest``."""

    topic: str = string("7-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partitions: tuple[int, ...] = array("int32", "7+")


@dataclass(slots=True, kw_only=True)
class FetchRequest:
    """Request of API key 1, versions 4 to 18."""

    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE: ClassVar[int] = 12

    cluster_id: str | None = string(
        "12+", default=None, nullable="12+", tag=0, tagged="12+", ignorable=True
    )
    replica_id: int = int32("0-14", default=-1)
    replica_state: FetchRequestReplicaState = struct(
        FetchRequestReplicaState, "15+", default=FetchRequestReplicaState, tag=1, tagged="15+"
    )
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=2147483647, ignorable=True)
    isolation_level: int = int8("4+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: tuple[FetchRequestFetchTopic, ...] = array(FetchRequestFetchTopic)
    forgotten_topics_data: tuple[FetchRequestForgottenTopic, ...] = array(
        FetchRequestForgottenTopic, "7+"
    )
    rack_id: str = string("11+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class FetchResponseEpochEndOffset:
    """Part of ``FetchResponse``."""

    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


@dataclass(slots=True, kw_only=True)
class FetchResponseLeaderIdAndEpoch:
    """Part of ``FetchResponse``."""

    leader_id: int = int32("12+", default=-1)
    leader_epoch: int = int32("12+", default=-1)


@dataclass(slots=True, kw_only=True)
class FetchResponseSnapshotId:
    """Part of ``FetchResponse``."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@dataclass(slots=True, kw_only=True)
class FetchResponseAbortedTransaction:
    """Part of ``FetchResponse``."""

    producer_id: int = int64("4+")
    first_offset: int = int64("4+")


@dataclass(slots=True, kw_only=True)
class FetchResponsePartitionData:
    """Part of ``FetchResponse``."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64("4+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    diverging_epoch: FetchResponseEpochEndOffset = struct(
        FetchResponseEpochEndOffset, "12+", default=FetchResponseEpochEndOffset, tag=0, tagged="12+"
    )
    current_leader: FetchResponseLeaderIdAndEpoch = struct(
        FetchResponseLeaderIdAndEpoch,
        "12+",
        default=FetchResponseLeaderIdAndEpoch,
        tag=1,
        tagged="12+",
    )
    snapshot_id: FetchResponseSnapshotId = struct(
        FetchResponseSnapshotId, "12+", default=FetchResponseSnapshotId, tag=2, tagged="12+"
    )
    aborted_transactions: tuple[FetchResponseAbortedTransaction, ...] | None = array(
        FetchResponseAbortedTransaction, "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32("11+", default=-1)
    records: bytes | None = records()


@dataclass(slots=True, kw_only=True)
class FetchResponseFetchableTopicResponse:
    """Part of ``FetchResponse``."""

    topic: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partitions: tuple[FetchResponsePartitionData, ...] = array(FetchResponsePartitionData)


@dataclass(slots=True, kw_only=True)
class FetchResponseNodeEndpoint:
    """Part of ``FetchResponse``."""

    node_id: int = int32("16+")
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = string("16+", default=None, nullable="16+")


@dataclass(slots=True, kw_only=True)
class FetchResponse:
    """Response of API key 1, versions 4 to 18."""

    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE: ClassVar[int] = 12

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")
    responses: tuple[FetchResponseFetchableTopicResponse, ...] = array(
        FetchResponseFetchableTopicResponse
    )
    node_endpoints: tuple[FetchResponseNodeEndpoint, ...] = array(
        FetchResponseNodeEndpoint, "16+", tag=0, tagged="16+"
    )

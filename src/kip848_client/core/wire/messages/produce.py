"""Appends record batches to partitions (KIP-98; topic ids from version 13, KIP-516)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import (
    array,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)

__all__ = [
    "ProduceRequest",
    "ProduceRequestPartitionProduceData",
    "ProduceRequestTopicProduceData",
    "ProduceResponse",
    "ProduceResponseBatchIndexAndErrorMessage",
    "ProduceResponseLeaderIdAndEpoch",
    "ProduceResponseNodeEndpoint",
    "ProduceResponsePartitionProduceResponse",
    "ProduceResponseTopicProduceResponse",
]


@dataclass(slots=True, kw_only=True)
class ProduceRequestPartitionProduceData:
    """Part of ``ProduceRequest``."""

    index: int = int32()
    records: bytes | None = records()


@dataclass(slots=True, kw_only=True)
class ProduceRequestTopicProduceData:
    """Part of ``ProduceRequest``."""

    name: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_data: tuple[ProduceRequestPartitionProduceData, ...] = array(
        ProduceRequestPartitionProduceData
    )


@dataclass(slots=True, kw_only=True)
class ProduceRequest:
    """Request of API key 0, versions 3 to 13."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE: ClassVar[int] = 9

    transactional_id: str | None = string("3+", default=None, nullable="3+")
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: tuple[ProduceRequestTopicProduceData, ...] = array(ProduceRequestTopicProduceData)


@dataclass(slots=True, kw_only=True)
class ProduceResponseBatchIndexAndErrorMessage:
    """Part of ``ProduceResponse``."""

    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", default=None, nullable="8+")


@dataclass(slots=True, kw_only=True)
class ProduceResponseLeaderIdAndEpoch:
    """Part of ``ProduceResponse``."""

    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


@dataclass(slots=True, kw_only=True)
class ProduceResponsePartitionProduceResponse:
    """Part of ``ProduceResponse``."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: tuple[ProduceResponseBatchIndexAndErrorMessage, ...] = array(
        ProduceResponseBatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", default=None, nullable="8+", ignorable=True)
    current_leader: ProduceResponseLeaderIdAndEpoch = struct(
        ProduceResponseLeaderIdAndEpoch,
        "10+",
        default=ProduceResponseLeaderIdAndEpoch,
        tag=0,
        tagged="10+",
    )


@dataclass(slots=True, kw_only=True)
class ProduceResponseTopicProduceResponse:
    """Part of ``ProduceResponse``."""

    name: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_responses: tuple[ProduceResponsePartitionProduceResponse, ...] = array(
        ProduceResponsePartitionProduceResponse
    )


@dataclass(slots=True, kw_only=True)
class ProduceResponseNodeEndpoint:
    """Part of ``ProduceResponse``."""

    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", default=None, nullable="10+")


@dataclass(slots=True, kw_only=True)
class ProduceResponse:
    """Response of API key 0, versions 3 to 13."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE: ClassVar[int] = 9

    responses: tuple[ProduceResponseTopicProduceResponse, ...] = array(
        ProduceResponseTopicProduceResponse
    )
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: tuple[ProduceResponseNodeEndpoint, ...] = array(
        ProduceResponseNodeEndpoint, "10+", tag=0, tagged="10+"
    )

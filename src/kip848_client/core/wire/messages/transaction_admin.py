"""Describes transactions (KIP-664), and writes their markers (KIP-98)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int8, int16, int32, int64, string

__all__ = [
    "DescribeProducersRequest",
    "DescribeProducersRequestTopicRequest",
    "DescribeProducersResponse",
    "DescribeProducersResponsePartitionResponse",
    "DescribeProducersResponseProducerState",
    "DescribeProducersResponseTopicResponse",
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
    "DescribeTransactionsResponseTopicData",
    "DescribeTransactionsResponseTransactionState",
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "ListTransactionsResponseTransactionState",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersRequestWritableTxnMarker",
    "WriteTxnMarkersRequestWritableTxnMarkerTopic",
    "WriteTxnMarkersResponse",
    "WriteTxnMarkersResponseWritableTxnMarkerPartitionResult",
    "WriteTxnMarkersResponseWritableTxnMarkerResult",
    "WriteTxnMarkersResponseWritableTxnMarkerTopicResult",
]


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersRequestWritableTxnMarkerTopic:
    """Part of ``WriteTxnMarkersRequest``."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersRequestWritableTxnMarker:
    """Part of ``WriteTxnMarkersRequest``."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: tuple[WriteTxnMarkersRequestWritableTxnMarkerTopic, ...] = array(
        WriteTxnMarkersRequestWritableTxnMarkerTopic
    )
    coordinator_epoch: int = int32()
    transaction_version: int = int8("2+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersRequest:
    """Request of API key 27, versions 1 to 2."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 1

    markers: tuple[WriteTxnMarkersRequestWritableTxnMarker, ...] = array(
        WriteTxnMarkersRequestWritableTxnMarker
    )


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersResponseWritableTxnMarkerPartitionResult:
    """Part of ``WriteTxnMarkersResponse``."""

    partition_index: int = int32()
    error_code: int = int16()


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersResponseWritableTxnMarkerTopicResult:
    """Part of ``WriteTxnMarkersResponse``."""

    name: str = string()
    partitions: tuple[WriteTxnMarkersResponseWritableTxnMarkerPartitionResult, ...] = array(
        WriteTxnMarkersResponseWritableTxnMarkerPartitionResult
    )


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersResponseWritableTxnMarkerResult:
    """Part of ``WriteTxnMarkersResponse``."""

    producer_id: int = int64()
    topics: tuple[WriteTxnMarkersResponseWritableTxnMarkerTopicResult, ...] = array(
        WriteTxnMarkersResponseWritableTxnMarkerTopicResult
    )


@dataclass(slots=True, kw_only=True)
class WriteTxnMarkersResponse:
    """Response of API key 27, versions 1 to 2."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 1

    markers: tuple[WriteTxnMarkersResponseWritableTxnMarkerResult, ...] = array(
        WriteTxnMarkersResponseWritableTxnMarkerResult
    )


@dataclass(slots=True, kw_only=True)
class DescribeProducersRequestTopicRequest:
    """Part of ``DescribeProducersRequest``."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class DescribeProducersRequest:
    """Request of API key 61, version 0."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    topics: tuple[DescribeProducersRequestTopicRequest, ...] = array(
        DescribeProducersRequestTopicRequest
    )


@dataclass(slots=True, kw_only=True)
class DescribeProducersResponseProducerState:
    """Part of ``DescribeProducersResponse``."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@dataclass(slots=True, kw_only=True)
class DescribeProducersResponsePartitionResponse:
    """Part of ``DescribeProducersResponse``."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    active_producers: tuple[DescribeProducersResponseProducerState, ...] = array(
        DescribeProducersResponseProducerState
    )


@dataclass(slots=True, kw_only=True)
class DescribeProducersResponseTopicResponse:
    """Part of ``DescribeProducersResponse``."""

    name: str = string()
    partitions: tuple[DescribeProducersResponsePartitionResponse, ...] = array(
        DescribeProducersResponsePartitionResponse
    )


@dataclass(slots=True, kw_only=True)
class DescribeProducersResponse:
    """Response of API key 61, version 0."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    topics: tuple[DescribeProducersResponseTopicResponse, ...] = array(
        DescribeProducersResponseTopicResponse
    )


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsRequest:
    """Request of API key 65, version 0."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    transactional_ids: tuple[str, ...] = array("string")


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsResponseTopicData:
    """Part of ``DescribeTransactionsResponse``."""

    topic: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsResponseTransactionState:
    """Part of ``DescribeTransactionsResponse``."""

    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: tuple[DescribeTransactionsResponseTopicData, ...] = array(
        DescribeTransactionsResponseTopicData
    )


@dataclass(slots=True, kw_only=True)
class DescribeTransactionsResponse:
    """Response of API key 65, version 0."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    transaction_states: tuple[DescribeTransactionsResponseTransactionState, ...] = array(
        DescribeTransactionsResponseTransactionState
    )


@dataclass(slots=True, kw_only=True)
class ListTransactionsRequest:
    """Request of API key 66, versions 0 to 2."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    state_filters: tuple[str, ...] = array("string")
    producer_id_filters: tuple[int, ...] = array("int64")
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", default=None, nullable="2+")


@dataclass(slots=True, kw_only=True)
class ListTransactionsResponseTransactionState:
    """Part of ``ListTransactionsResponse``."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@dataclass(slots=True, kw_only=True)
class ListTransactionsResponse:
    """Response of API key 66, versions 0 to 2."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: tuple[str, ...] = array("string")
    transaction_states: tuple[ListTransactionsResponseTransactionState, ...] = array(
        ListTransactionsResponseTransactionState
    )

"""Producer ids and transactions (KIP-98, KIP-890)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int16, int32, int64, string

__all__ = [
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnRequestAddPartitionsToTxnTopic",
    "AddPartitionsToTxnRequestAddPartitionsToTxnTransaction",
    "AddPartitionsToTxnResponse",
    "AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult",
    "AddPartitionsToTxnResponseAddPartitionsToTxnResult",
    "AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult",
    "EndTxnRequest",
    "EndTxnResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
]


@dataclass(slots=True, kw_only=True)
class InitProducerIdRequest:
    """Request of API key 22, versions 0 to 6."""

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 2

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


@dataclass(slots=True, kw_only=True)
class InitProducerIdResponse:
    """Response of API key 22, versions 0 to 6."""

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnRequestAddPartitionsToTxnTopic:
    """Part of ``AddPartitionsToTxnRequest``."""

    name: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnRequestAddPartitionsToTxnTransaction:
    """Part of ``AddPartitionsToTxnRequest``."""

    transactional_id: str = string("4+")
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: tuple[AddPartitionsToTxnRequestAddPartitionsToTxnTopic, ...] = array(
        AddPartitionsToTxnRequestAddPartitionsToTxnTopic, "4+"
    )


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnRequest:
    """Request of API key 24, versions 0 to 5."""

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    transactions: tuple[AddPartitionsToTxnRequestAddPartitionsToTxnTransaction, ...] = array(
        AddPartitionsToTxnRequestAddPartitionsToTxnTransaction, "4+"
    )
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: tuple[AddPartitionsToTxnRequestAddPartitionsToTxnTopic, ...] = array(
        AddPartitionsToTxnRequestAddPartitionsToTxnTopic, "0-3"
    )


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult:
    """Part of ``AddPartitionsToTxnResponse``."""

    partition_index: int = int32()
    partition_error_code: int = int16()


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult:
    """Part of ``AddPartitionsToTxnResponse``."""

    name: str = string()
    results_by_partition: tuple[
        AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult, ...
    ] = array(AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult)


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnResponseAddPartitionsToTxnResult:
    """Part of ``AddPartitionsToTxnResponse``."""

    transactional_id: str = string("4+")
    topic_results: tuple[AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult, ...] = array(
        AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult, "4+"
    )


@dataclass(slots=True, kw_only=True)
class AddPartitionsToTxnResponse:
    """Response of API key 24, versions 0 to 5."""

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: int = int32()
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: tuple[AddPartitionsToTxnResponseAddPartitionsToTxnResult, ...] = array(
        AddPartitionsToTxnResponseAddPartitionsToTxnResult, "4+"
    )
    results_by_topic_v3_and_below: tuple[
        AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult, ...
    ] = array(AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult, "0-3")


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnRequest:
    """Request of API key 25, versions 0 to 4."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 3

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@dataclass(slots=True, kw_only=True)
class AddOffsetsToTxnResponse:
    """Response of API key 25, versions 0 to 4."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: int = int32()
    error_code: int = int16()


@dataclass(slots=True, kw_only=True)
class EndTxnRequest:
    """Request of API key 26, versions 0 to 5."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@dataclass(slots=True, kw_only=True)
class EndTxnResponse:
    """Response of API key 26, versions 0 to 5."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)

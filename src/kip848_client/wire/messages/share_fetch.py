"""Fetches and acknowledges records for a member of a share group (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.wire._fields import (
    array,
    boolean,
    data,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)

__all__ = [
    "ShareAcknowledgeRequest",
    "ShareAcknowledgeRequestAcknowledgePartition",
    "ShareAcknowledgeRequestAcknowledgeTopic",
    "ShareAcknowledgeRequestAcknowledgementBatch",
    "ShareAcknowledgeResponse",
    "ShareAcknowledgeResponseLeaderIdAndEpoch",
    "ShareAcknowledgeResponseNodeEndpoint",
    "ShareAcknowledgeResponsePartitionData",
    "ShareAcknowledgeResponseShareAcknowledgeTopicResponse",
    "ShareFetchRequest",
    "ShareFetchRequestAcknowledgementBatch",
    "ShareFetchRequestFetchPartition",
    "ShareFetchRequestFetchTopic",
    "ShareFetchRequestForgottenTopic",
    "ShareFetchResponse",
    "ShareFetchResponseAcquiredRecords",
    "ShareFetchResponseLeaderIdAndEpoch",
    "ShareFetchResponseNodeEndpoint",
    "ShareFetchResponsePartitionData",
    "ShareFetchResponseShareFetchableTopicResponse",
]


@dataclass(slots=True, kw_only=True)
class ShareFetchRequestAcknowledgementBatch:
    """Part of ``ShareFetchRequest``."""

    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: tuple[int, ...] = array("int8")


@dataclass(slots=True, kw_only=True)
class ShareFetchRequestFetchPartition:
    """Part of ``ShareFetchRequest``."""

    partition_index: int = int32()
    partition_max_bytes: int = int32("0")
    acknowledgement_batches: tuple[ShareFetchRequestAcknowledgementBatch, ...] = array(
        ShareFetchRequestAcknowledgementBatch
    )


@dataclass(slots=True, kw_only=True)
class ShareFetchRequestFetchTopic:
    """Part of ``ShareFetchRequest``."""

    topic_id: bytes = uuid()
    partitions: tuple[ShareFetchRequestFetchPartition, ...] = array(ShareFetchRequestFetchPartition)


@dataclass(slots=True, kw_only=True)
class ShareFetchRequestForgottenTopic:
    """Part of ``ShareFetchRequest``."""

    topic_id: bytes = uuid()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ShareFetchRequest:
    """Request of API key 78, versions 1 to 2."""

    API_KEY: ClassVar[int] = 78
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32("1+")
    batch_size: int = int32("1+")
    share_acquire_mode: int = int8("2+", default=0, ignorable=True)
    is_renew_ack: bool = boolean("2+", default=False)
    topics: tuple[ShareFetchRequestFetchTopic, ...] = array(ShareFetchRequestFetchTopic)
    forgotten_topics_data: tuple[ShareFetchRequestForgottenTopic, ...] = array(
        ShareFetchRequestForgottenTopic
    )


@dataclass(slots=True, kw_only=True)
class ShareFetchResponseLeaderIdAndEpoch:
    """Part of ``ShareFetchResponse``."""

    leader_id: int = int32()
    leader_epoch: int = int32()


@dataclass(slots=True, kw_only=True)
class ShareFetchResponseAcquiredRecords:
    """Part of ``ShareFetchResponse``."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()


@dataclass(slots=True, kw_only=True)
class ShareFetchResponsePartitionData:
    """Part of ``ShareFetchResponse``."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = string(default=None, nullable="0+")
    current_leader: ShareFetchResponseLeaderIdAndEpoch = struct(
        ShareFetchResponseLeaderIdAndEpoch, default=ShareFetchResponseLeaderIdAndEpoch
    )
    records: bytes = data()
    acquired_records: tuple[ShareFetchResponseAcquiredRecords, ...] = array(
        ShareFetchResponseAcquiredRecords
    )


@dataclass(slots=True, kw_only=True)
class ShareFetchResponseShareFetchableTopicResponse:
    """Part of ``ShareFetchResponse``."""

    topic_id: bytes = uuid()
    partitions: tuple[ShareFetchResponsePartitionData, ...] = array(ShareFetchResponsePartitionData)


@dataclass(slots=True, kw_only=True)
class ShareFetchResponseNodeEndpoint:
    """Part of ``ShareFetchResponse``."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class ShareFetchResponse:
    """Response of API key 78, versions 1 to 2."""

    API_KEY: ClassVar[int] = 78
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = int32("1+")
    responses: tuple[ShareFetchResponseShareFetchableTopicResponse, ...] = array(
        ShareFetchResponseShareFetchableTopicResponse
    )
    node_endpoints: tuple[ShareFetchResponseNodeEndpoint, ...] = array(
        ShareFetchResponseNodeEndpoint
    )


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeRequestAcknowledgementBatch:
    """Part of ``ShareAcknowledgeRequest``."""

    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: tuple[int, ...] = array("int8")


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeRequestAcknowledgePartition:
    """Part of ``ShareAcknowledgeRequest``."""

    partition_index: int = int32()
    acknowledgement_batches: tuple[ShareAcknowledgeRequestAcknowledgementBatch, ...] = array(
        ShareAcknowledgeRequestAcknowledgementBatch
    )


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeRequestAcknowledgeTopic:
    """Part of ``ShareAcknowledgeRequest``."""

    topic_id: bytes = uuid()
    partitions: tuple[ShareAcknowledgeRequestAcknowledgePartition, ...] = array(
        ShareAcknowledgeRequestAcknowledgePartition
    )


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeRequest:
    """Request of API key 79, versions 1 to 2."""

    API_KEY: ClassVar[int] = 79
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean("2+", default=False)
    topics: tuple[ShareAcknowledgeRequestAcknowledgeTopic, ...] = array(
        ShareAcknowledgeRequestAcknowledgeTopic
    )


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeResponseLeaderIdAndEpoch:
    """Part of ``ShareAcknowledgeResponse``."""

    leader_id: int = int32()
    leader_epoch: int = int32()


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeResponsePartitionData:
    """Part of ``ShareAcknowledgeResponse``."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    current_leader: ShareAcknowledgeResponseLeaderIdAndEpoch = struct(
        ShareAcknowledgeResponseLeaderIdAndEpoch, default=ShareAcknowledgeResponseLeaderIdAndEpoch
    )


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeResponseShareAcknowledgeTopicResponse:
    """Part of ``ShareAcknowledgeResponse``."""

    topic_id: bytes = uuid()
    partitions: tuple[ShareAcknowledgeResponsePartitionData, ...] = array(
        ShareAcknowledgeResponsePartitionData
    )


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeResponseNodeEndpoint:
    """Part of ``ShareAcknowledgeResponse``."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class ShareAcknowledgeResponse:
    """Response of API key 79, versions 1 to 2."""

    API_KEY: ClassVar[int] = 79
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: tuple[ShareAcknowledgeResponseShareAcknowledgeTopicResponse, ...] = array(
        ShareAcknowledgeResponseShareAcknowledgeTopicResponse
    )
    node_endpoints: tuple[ShareAcknowledgeResponseNodeEndpoint, ...] = array(
        ShareAcknowledgeResponseNodeEndpoint
    )

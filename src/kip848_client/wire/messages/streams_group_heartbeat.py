"""Membership of a streams group, and its topology (KIP-1071)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.wire._fields import (
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
)

__all__ = [
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatRequestCopartitionGroup",
    "StreamsGroupHeartbeatRequestEndpoint",
    "StreamsGroupHeartbeatRequestKeyValue",
    "StreamsGroupHeartbeatRequestSubtopology",
    "StreamsGroupHeartbeatRequestTaskIds",
    "StreamsGroupHeartbeatRequestTaskOffset",
    "StreamsGroupHeartbeatRequestTopicInfo",
    "StreamsGroupHeartbeatRequestTopology",
    "StreamsGroupHeartbeatResponse",
    "StreamsGroupHeartbeatResponseEndpoint",
    "StreamsGroupHeartbeatResponseEndpointToPartitions",
    "StreamsGroupHeartbeatResponseStatus",
    "StreamsGroupHeartbeatResponseTaskIds",
    "StreamsGroupHeartbeatResponseTopicPartition",
]


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestKeyValue:
    """Part of ``StreamsGroupHeartbeatRequest``."""

    key: str = string()
    value: str = string()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestTopicInfo:
    """Part of ``StreamsGroupHeartbeatRequest``."""

    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: tuple[StreamsGroupHeartbeatRequestKeyValue, ...] = array(
        StreamsGroupHeartbeatRequestKeyValue
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestCopartitionGroup:
    """Part of ``StreamsGroupHeartbeatRequest``."""

    source_topics: tuple[int, ...] = array("int16")
    source_topic_regex: tuple[int, ...] = array("int16")
    repartition_source_topics: tuple[int, ...] = array("int16")


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestSubtopology:
    """Part of ``StreamsGroupHeartbeatRequest``."""

    subtopology_id: str = string()
    source_topics: tuple[str, ...] = array("string")
    source_topic_regex: tuple[str, ...] = array("string")
    state_changelog_topics: tuple[StreamsGroupHeartbeatRequestTopicInfo, ...] = array(
        StreamsGroupHeartbeatRequestTopicInfo
    )
    repartition_sink_topics: tuple[str, ...] = array("string")
    repartition_source_topics: tuple[StreamsGroupHeartbeatRequestTopicInfo, ...] = array(
        StreamsGroupHeartbeatRequestTopicInfo
    )
    copartition_groups: tuple[StreamsGroupHeartbeatRequestCopartitionGroup, ...] = array(
        StreamsGroupHeartbeatRequestCopartitionGroup
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestTopology:
    """Part of ``StreamsGroupHeartbeatRequest``."""

    epoch: int = int32()
    subtopologies: tuple[StreamsGroupHeartbeatRequestSubtopology, ...] = array(
        StreamsGroupHeartbeatRequestSubtopology
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestTaskIds:
    """Part of ``StreamsGroupHeartbeatRequest``."""

    subtopology_id: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestEndpoint:
    """Part of ``StreamsGroupHeartbeatRequest``."""

    host: str = string()
    port: int = uint16()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequestTaskOffset:
    """Part of ``StreamsGroupHeartbeatRequest``."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatRequest:
    """Request of API key 88, versions 0 to 1."""

    API_KEY: ClassVar[int] = 88
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    topology: StreamsGroupHeartbeatRequestTopology | None = struct(
        StreamsGroupHeartbeatRequestTopology, nullable="0+"
    )
    active_tasks: tuple[StreamsGroupHeartbeatRequestTaskIds, ...] | None = array(
        StreamsGroupHeartbeatRequestTaskIds, default=None, nullable="0+"
    )
    standby_tasks: tuple[StreamsGroupHeartbeatRequestTaskIds, ...] | None = array(
        StreamsGroupHeartbeatRequestTaskIds, default=None, nullable="0+"
    )
    warmup_tasks: tuple[StreamsGroupHeartbeatRequestTaskIds, ...] | None = array(
        StreamsGroupHeartbeatRequestTaskIds, default=None, nullable="0+"
    )
    process_id: str | None = string(default=None, nullable="0+")
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = struct(
        StreamsGroupHeartbeatRequestEndpoint, nullable="0+"
    )
    client_tags: tuple[StreamsGroupHeartbeatRequestKeyValue, ...] | None = array(
        StreamsGroupHeartbeatRequestKeyValue, default=None, nullable="0+"
    )
    task_offsets: tuple[StreamsGroupHeartbeatRequestTaskOffset, ...] | None = array(
        StreamsGroupHeartbeatRequestTaskOffset, default=None, nullable="0+"
    )
    task_end_offsets: tuple[StreamsGroupHeartbeatRequestTaskOffset, ...] | None = array(
        StreamsGroupHeartbeatRequestTaskOffset, default=None, nullable="0+"
    )
    shutdown_application: bool = boolean(default=False)


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseStatus:
    """Part of ``StreamsGroupHeartbeatResponse``."""

    status_code: int = int8()
    status_detail: str = string()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseTaskIds:
    """Part of ``StreamsGroupHeartbeatResponse``."""

    subtopology_id: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseEndpoint:
    """Part of ``StreamsGroupHeartbeatResponse``."""

    host: str = string()
    port: int = uint16()


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseTopicPartition:
    """Part of ``StreamsGroupHeartbeatResponse``."""

    topic: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponseEndpointToPartitions:
    """Part of ``StreamsGroupHeartbeatResponse``."""

    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = struct(
        StreamsGroupHeartbeatResponseEndpoint, default=StreamsGroupHeartbeatResponseEndpoint
    )
    active_partitions: tuple[StreamsGroupHeartbeatResponseTopicPartition, ...] = array(
        StreamsGroupHeartbeatResponseTopicPartition
    )
    standby_partitions: tuple[StreamsGroupHeartbeatResponseTopicPartition, ...] = array(
        StreamsGroupHeartbeatResponseTopicPartition
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupHeartbeatResponse:
    """Response of API key 88, versions 0 to 1."""

    API_KEY: ClassVar[int] = 88
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag_legacy: int = int32("0")
    task_offset_interval_ms: int = int32()
    acceptable_recovery_lag: int = int64("1+", default=-1, ignorable=True)
    status: tuple[StreamsGroupHeartbeatResponseStatus, ...] | None = array(
        StreamsGroupHeartbeatResponseStatus, nullable="0+"
    )
    active_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = array(
        StreamsGroupHeartbeatResponseTaskIds, default=None, nullable="0+"
    )
    standby_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = array(
        StreamsGroupHeartbeatResponseTaskIds, default=None, nullable="0+"
    )
    warmup_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = array(
        StreamsGroupHeartbeatResponseTaskIds, default=None, nullable="0+"
    )
    topology_description_required: bool = boolean("1+", default=False)
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: (
        tuple[StreamsGroupHeartbeatResponseEndpointToPartitions, ...] | None
    ) = array(StreamsGroupHeartbeatResponseEndpointToPartitions, default=None, nullable="0+")

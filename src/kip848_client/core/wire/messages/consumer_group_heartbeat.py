"""The one request of the consumer group protocol (KIP-848; version 1: KIP-1082 and the regex).

Tags from 10480 are not Kafka's: they have the client-side assignors of the KIP's text, which Kafka
never released (docs/reference/draft-protocols.md). Peers that do not know them skip them; unset
fields do not use any bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import (
    array,
    boolean,
    data,
    int8,
    int16,
    int32,
    string,
    struct,
    uuid,
)

__all__ = [
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatRequestClientAssignor",
    "ConsumerGroupHeartbeatRequestTopicPartitions",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerGroupHeartbeatResponseAssignment",
    "ConsumerGroupHeartbeatResponseTopicPartitions",
]


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequestTopicPartitions:
    """Part of ``ConsumerGroupHeartbeatRequest``."""

    topic_id: bytes = uuid()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequestClientAssignor:
    """One client-side assignor that a member offers. DRAFT, not Kafka's."""

    name: str = string()
    minimum_version: int = int16()
    maximum_version: int = int16()
    reason: int = int8()
    metadata_version: int = int16()
    metadata_bytes: bytes = data()


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequest:
    """Request of API key 68, versions 0 to 1."""

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: tuple[str, ...] | None = array("string", default=None, nullable="0+")
    subscribed_topic_regex: str | None = string("1+", default=None, nullable="1+")
    server_assignor: str | None = string(default=None, nullable="0+")
    topic_partitions: tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...] | None = array(
        ConsumerGroupHeartbeatRequestTopicPartitions, default=None, nullable="0+"
    )
    client_assignors: tuple[ConsumerGroupHeartbeatRequestClientAssignor, ...] | None = array(
        ConsumerGroupHeartbeatRequestClientAssignor,
        "none",
        default=None,
        nullable="0+",
        tag=10480,
        tagged="0+",
    )


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponseTopicPartitions:
    """Part of ``ConsumerGroupHeartbeatResponse``."""

    topic_id: bytes = uuid()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponseAssignment:
    """Part of ``ConsumerGroupHeartbeatResponse``."""

    topic_partitions: tuple[ConsumerGroupHeartbeatResponseTopicPartitions, ...] = array(
        ConsumerGroupHeartbeatResponseTopicPartitions
    )
    error: int = int8("none", tag=10480, tagged="0+")
    pending_topic_partitions: tuple[ConsumerGroupHeartbeatResponseTopicPartitions, ...] = array(
        ConsumerGroupHeartbeatResponseTopicPartitions, "none", tag=10481, tagged="0+"
    )
    metadata_version: int = int16("none", tag=10482, tagged="0+")
    metadata_bytes: bytes = data("none", tag=10483, tagged="0+")


@dataclass(slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponse:
    """Response of API key 68, versions 0 to 1."""

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(default=None, nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = struct(
        ConsumerGroupHeartbeatResponseAssignment, nullable="0+"
    )
    should_compute_assignment: bool = boolean("none", tag=10480, tagged="0+")

"""Brokers, topics with their ids, and partition leaders (KIP-516)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int16, int32, string, uuid

__all__ = [
    "MetadataRequest",
    "MetadataRequestTopic",
    "MetadataResponse",
    "MetadataResponseBroker",
    "MetadataResponsePartition",
    "MetadataResponseTopic",
]


@dataclass(slots=True, kw_only=True)
class MetadataRequestTopic:
    """Part of ``MetadataRequest``."""

    topic_id: bytes = uuid("10+", ignorable=True)
    name: str | None = string(nullable="10+")


@dataclass(slots=True, kw_only=True)
class MetadataRequest:
    """Request of API key 3, versions 0 to 13."""

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE: ClassVar[int] = 9

    topics: tuple[MetadataRequestTopic, ...] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


@dataclass(slots=True, kw_only=True)
class MetadataResponseBroker:
    """Part of ``MetadataResponse``."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("1+", default=None, nullable="1+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class MetadataResponsePartition:
    """Part of ``MetadataResponse``."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: tuple[int, ...] = array("int32")
    isr_nodes: tuple[int, ...] = array("int32")
    offline_replicas: tuple[int, ...] = array("int32", "5+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class MetadataResponseTopic:
    """Part of ``MetadataResponse``."""

    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: bytes = uuid("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: tuple[MetadataResponsePartition, ...] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=-2147483648)


@dataclass(slots=True, kw_only=True)
class MetadataResponse:
    """Response of API key 3, versions 0 to 13."""

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE: ClassVar[int] = 9

    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: tuple[MetadataResponseBroker, ...] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", default=None, nullable="2+", ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: tuple[MetadataResponseTopic, ...] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)
    error_code: int = int16("13+", ignorable=True)

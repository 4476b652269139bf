"""The controllers, their quorum, and the features of the cluster (KIP-595, KIP-584, KIP-853)."""

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
    uint16,
    uuid,
)

__all__ = [
    "AddRaftVoterRequest",
    "AddRaftVoterRequestListener",
    "AddRaftVoterResponse",
    "DescribeQuorumRequest",
    "DescribeQuorumRequestPartitionData",
    "DescribeQuorumRequestTopicData",
    "DescribeQuorumResponse",
    "DescribeQuorumResponseListener",
    "DescribeQuorumResponseNode",
    "DescribeQuorumResponsePartitionData",
    "DescribeQuorumResponseReplicaState",
    "DescribeQuorumResponseTopicData",
    "RemoveRaftVoterRequest",
    "RemoveRaftVoterResponse",
    "UnregisterBrokerRequest",
    "UnregisterBrokerResponse",
    "UnregisterControllerRequest",
    "UnregisterControllerResponse",
    "UpdateFeaturesRequest",
    "UpdateFeaturesRequestFeatureUpdateKey",
    "UpdateFeaturesResponse",
    "UpdateFeaturesResponseUpdatableFeatureResult",
]


@dataclass(slots=True, kw_only=True)
class DescribeQuorumRequestPartitionData:
    """Part of ``DescribeQuorumRequest``."""

    partition_index: int = int32()


@dataclass(slots=True, kw_only=True)
class DescribeQuorumRequestTopicData:
    """Part of ``DescribeQuorumRequest``."""

    topic_name: str = string()
    partitions: tuple[DescribeQuorumRequestPartitionData, ...] = array(
        DescribeQuorumRequestPartitionData
    )


@dataclass(slots=True, kw_only=True)
class DescribeQuorumRequest:
    """Request of API key 55, versions 0 to 2."""

    API_KEY: ClassVar[int] = 55
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    topics: tuple[DescribeQuorumRequestTopicData, ...] = array(DescribeQuorumRequestTopicData)


@dataclass(slots=True, kw_only=True)
class DescribeQuorumResponseReplicaState:
    """Part of ``DescribeQuorumResponse``."""

    replica_id: int = int32()
    replica_directory_id: bytes = uuid("2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


@dataclass(slots=True, kw_only=True)
class DescribeQuorumResponsePartitionData:
    """Part of ``DescribeQuorumResponse``."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: tuple[DescribeQuorumResponseReplicaState, ...] = array(
        DescribeQuorumResponseReplicaState
    )
    observers: tuple[DescribeQuorumResponseReplicaState, ...] = array(
        DescribeQuorumResponseReplicaState
    )


@dataclass(slots=True, kw_only=True)
class DescribeQuorumResponseTopicData:
    """Part of ``DescribeQuorumResponse``."""

    topic_name: str = string()
    partitions: tuple[DescribeQuorumResponsePartitionData, ...] = array(
        DescribeQuorumResponsePartitionData
    )


@dataclass(slots=True, kw_only=True)
class DescribeQuorumResponseListener:
    """Part of ``DescribeQuorumResponse``."""

    name: str = string("2+")
    host: str = string("2+")
    port: int = uint16("2+")


@dataclass(slots=True, kw_only=True)
class DescribeQuorumResponseNode:
    """Part of ``DescribeQuorumResponse``."""

    node_id: int = int32("2+")
    listeners: tuple[DescribeQuorumResponseListener, ...] = array(
        DescribeQuorumResponseListener, "2+"
    )


@dataclass(slots=True, kw_only=True)
class DescribeQuorumResponse:
    """Response of API key 55, versions 0 to 2."""

    API_KEY: ClassVar[int] = 55
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    topics: tuple[DescribeQuorumResponseTopicData, ...] = array(DescribeQuorumResponseTopicData)
    nodes: tuple[DescribeQuorumResponseNode, ...] = array(DescribeQuorumResponseNode, "2+")


@dataclass(slots=True, kw_only=True)
class UpdateFeaturesRequestFeatureUpdateKey:
    """Part of ``UpdateFeaturesRequest``."""

    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


@dataclass(slots=True, kw_only=True)
class UpdateFeaturesRequest:
    """Request of API key 57, versions 0 to 2."""

    API_KEY: ClassVar[int] = 57
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    timeout_ms: int = int32(default=60000)
    feature_updates: tuple[UpdateFeaturesRequestFeatureUpdateKey, ...] = array(
        UpdateFeaturesRequestFeatureUpdateKey
    )
    validate_only: bool = boolean("1+", default=False)


@dataclass(slots=True, kw_only=True)
class UpdateFeaturesResponseUpdatableFeatureResult:
    """Part of ``UpdateFeaturesResponse``."""

    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class UpdateFeaturesResponse:
    """Response of API key 57, versions 0 to 2."""

    API_KEY: ClassVar[int] = 57
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: tuple[UpdateFeaturesResponseUpdatableFeatureResult, ...] = array(
        UpdateFeaturesResponseUpdatableFeatureResult, "0-1", ignorable=True
    )


@dataclass(slots=True, kw_only=True)
class UnregisterBrokerRequest:
    """Request of API key 64, version 0."""

    API_KEY: ClassVar[int] = 64
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    broker_id: int = int32()


@dataclass(slots=True, kw_only=True)
class UnregisterBrokerResponse:
    """Response of API key 64, version 0."""

    API_KEY: ClassVar[int] = 64
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class AddRaftVoterRequestListener:
    """Part of ``AddRaftVoterRequest``."""

    name: str = string()
    host: str = string()
    port: int = uint16()


@dataclass(slots=True, kw_only=True)
class AddRaftVoterRequest:
    """Request of API key 80, versions 0 to 1."""

    API_KEY: ClassVar[int] = 80
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: tuple[AddRaftVoterRequestListener, ...] = array(AddRaftVoterRequestListener)
    ack_when_committed: bool = boolean("1+", default=True)


@dataclass(slots=True, kw_only=True)
class AddRaftVoterResponse:
    """Response of API key 80, versions 0 to 1."""

    API_KEY: ClassVar[int] = 80
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class RemoveRaftVoterRequest:
    """Request of API key 81, version 0."""

    API_KEY: ClassVar[int] = 81
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


@dataclass(slots=True, kw_only=True)
class RemoveRaftVoterResponse:
    """Response of API key 81, version 0."""

    API_KEY: ClassVar[int] = 81
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class UnregisterControllerRequest:
    """Request of API key 94, version 0."""

    API_KEY: ClassVar[int] = 94
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    controller_id: int = int32()


@dataclass(slots=True, kw_only=True)
class UnregisterControllerResponse:
    """Response of API key 94, version 0."""

    API_KEY: ClassVar[int] = 94
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")

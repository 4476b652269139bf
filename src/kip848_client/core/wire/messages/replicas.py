"""Elects leaders and moves replicas (KIP-460, KIP-455)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int8, int16, int32, string

__all__ = [
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsRequestReassignablePartition",
    "AlterPartitionReassignmentsRequestReassignableTopic",
    "AlterPartitionReassignmentsResponse",
    "AlterPartitionReassignmentsResponseReassignablePartitionResponse",
    "AlterPartitionReassignmentsResponseReassignableTopicResponse",
    "ElectLeadersRequest",
    "ElectLeadersRequestTopicPartitions",
    "ElectLeadersResponse",
    "ElectLeadersResponsePartitionResult",
    "ElectLeadersResponseReplicaElectionResult",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsRequestListPartitionReassignmentsTopics",
    "ListPartitionReassignmentsResponse",
    "ListPartitionReassignmentsResponseOngoingPartitionReassignment",
    "ListPartitionReassignmentsResponseOngoingTopicReassignment",
]


@dataclass(slots=True, kw_only=True)
class ElectLeadersRequestTopicPartitions:
    """Part of ``ElectLeadersRequest``."""

    topic: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ElectLeadersRequest:
    """Request of API key 43, versions 0 to 2."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    election_type: int = int8("1+")
    topic_partitions: tuple[ElectLeadersRequestTopicPartitions, ...] | None = array(
        ElectLeadersRequestTopicPartitions, nullable="0+"
    )
    timeout_ms: int = int32(default=60000)


@dataclass(slots=True, kw_only=True)
class ElectLeadersResponsePartitionResult:
    """Part of ``ElectLeadersResponse``."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class ElectLeadersResponseReplicaElectionResult:
    """Part of ``ElectLeadersResponse``."""

    topic: str = string()
    partition_result: tuple[ElectLeadersResponsePartitionResult, ...] = array(
        ElectLeadersResponsePartitionResult
    )


@dataclass(slots=True, kw_only=True)
class ElectLeadersResponse:
    """Response of API key 43, versions 0 to 2."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: tuple[ElectLeadersResponseReplicaElectionResult, ...] = array(
        ElectLeadersResponseReplicaElectionResult
    )


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsRequestReassignablePartition:
    """Part of ``AlterPartitionReassignmentsRequest``."""

    partition_index: int = int32()
    replicas: tuple[int, ...] | None = array("int32", default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsRequestReassignableTopic:
    """Part of ``AlterPartitionReassignmentsRequest``."""

    name: str = string()
    partitions: tuple[AlterPartitionReassignmentsRequestReassignablePartition, ...] = array(
        AlterPartitionReassignmentsRequestReassignablePartition
    )


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest:
    """Request of API key 45, versions 0 to 1."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: tuple[AlterPartitionReassignmentsRequestReassignableTopic, ...] = array(
        AlterPartitionReassignmentsRequestReassignableTopic
    )


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsResponseReassignablePartitionResponse:
    """Part of ``AlterPartitionReassignmentsResponse``."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsResponseReassignableTopicResponse:
    """Part of ``AlterPartitionReassignmentsResponse``."""

    name: str = string()
    partitions: tuple[AlterPartitionReassignmentsResponseReassignablePartitionResponse, ...] = (
        array(AlterPartitionReassignmentsResponseReassignablePartitionResponse)
    )


@dataclass(slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse:
    """Response of API key 45, versions 0 to 1."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean("1+", default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: tuple[AlterPartitionReassignmentsResponseReassignableTopicResponse, ...] = array(
        AlterPartitionReassignmentsResponseReassignableTopicResponse
    )


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsRequestListPartitionReassignmentsTopics:
    """Part of ``ListPartitionReassignmentsRequest``."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsRequest:
    """Request of API key 46, version 0."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    timeout_ms: int = int32(default=60000)
    topics: tuple[ListPartitionReassignmentsRequestListPartitionReassignmentsTopics, ...] | None = (
        array(
            ListPartitionReassignmentsRequestListPartitionReassignmentsTopics,
            default=None,
            nullable="0+",
        )
    )


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsResponseOngoingPartitionReassignment:
    """Part of ``ListPartitionReassignmentsResponse``."""

    partition_index: int = int32()
    replicas: tuple[int, ...] = array("int32")
    adding_replicas: tuple[int, ...] = array("int32")
    removing_replicas: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsResponseOngoingTopicReassignment:
    """Part of ``ListPartitionReassignmentsResponse``."""

    name: str = string()
    partitions: tuple[ListPartitionReassignmentsResponseOngoingPartitionReassignment, ...] = array(
        ListPartitionReassignmentsResponseOngoingPartitionReassignment
    )


@dataclass(slots=True, kw_only=True)
class ListPartitionReassignmentsResponse:
    """Response of API key 46, version 0."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: tuple[ListPartitionReassignmentsResponseOngoingTopicReassignment, ...] = array(
        ListPartitionReassignmentsResponseOngoingTopicReassignment
    )

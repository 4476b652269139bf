"""Creates and deletes topics, adds partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int8, int16, int32, string, uuid

__all__ = [
    "CreatePartitionsRequest",
    "CreatePartitionsRequestCreatePartitionsAssignment",
    "CreatePartitionsRequestCreatePartitionsTopic",
    "CreatePartitionsResponse",
    "CreatePartitionsResponseCreatePartitionsTopicResult",
    "CreateTopicsRequest",
    "CreateTopicsRequestCreatableReplicaAssignment",
    "CreateTopicsRequestCreatableTopic",
    "CreateTopicsRequestCreatableTopicConfig",
    "CreateTopicsResponse",
    "CreateTopicsResponseCreatableTopicConfigs",
    "CreateTopicsResponseCreatableTopicResult",
    "DeleteTopicsRequest",
    "DeleteTopicsRequestDeleteTopicState",
    "DeleteTopicsResponse",
    "DeleteTopicsResponseDeletableTopicResult",
]


@dataclass(slots=True, kw_only=True)
class CreateTopicsRequestCreatableReplicaAssignment:
    """Part of ``CreateTopicsRequest``."""

    partition_index: int = int32()
    broker_ids: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class CreateTopicsRequestCreatableTopicConfig:
    """Part of ``CreateTopicsRequest``."""

    name: str = string()
    value: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class CreateTopicsRequestCreatableTopic:
    """Part of ``CreateTopicsRequest``."""

    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: tuple[CreateTopicsRequestCreatableReplicaAssignment, ...] = array(
        CreateTopicsRequestCreatableReplicaAssignment
    )
    configs: tuple[CreateTopicsRequestCreatableTopicConfig, ...] = array(
        CreateTopicsRequestCreatableTopicConfig
    )


@dataclass(slots=True, kw_only=True)
class CreateTopicsRequest:
    """Request of API key 19, versions 2 to 7."""

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE: ClassVar[int] = 5

    topics: tuple[CreateTopicsRequestCreatableTopic, ...] = array(CreateTopicsRequestCreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean("1+")


@dataclass(slots=True, kw_only=True)
class CreateTopicsResponseCreatableTopicConfigs:
    """Part of ``CreateTopicsResponse``."""

    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("5+")


@dataclass(slots=True, kw_only=True)
class CreateTopicsResponseCreatableTopicResult:
    """Part of ``CreateTopicsResponse``."""

    name: str = string()
    topic_id: bytes = uuid("7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16("5+", tag=0, tagged="5+", ignorable=True)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: tuple[CreateTopicsResponseCreatableTopicConfigs, ...] | None = array(
        CreateTopicsResponseCreatableTopicConfigs, "5+", nullable="5+", ignorable=True
    )


@dataclass(slots=True, kw_only=True)
class CreateTopicsResponse:
    """Response of API key 19, versions 2 to 7."""

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE: ClassVar[int] = 5

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: tuple[CreateTopicsResponseCreatableTopicResult, ...] = array(
        CreateTopicsResponseCreatableTopicResult
    )


@dataclass(slots=True, kw_only=True)
class DeleteTopicsRequestDeleteTopicState:
    """Part of ``DeleteTopicsRequest``."""

    name: str | None = string("6+", default=None, nullable="6+")
    topic_id: bytes = uuid("6+")


@dataclass(slots=True, kw_only=True)
class DeleteTopicsRequest:
    """Request of API key 20, versions 1 to 6."""

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE: ClassVar[int] = 4

    topics: tuple[DeleteTopicsRequestDeleteTopicState, ...] = array(
        DeleteTopicsRequestDeleteTopicState, "6+"
    )
    topic_names: tuple[str, ...] = array("string", "0-5", ignorable=True)
    timeout_ms: int = int32()


@dataclass(slots=True, kw_only=True)
class DeleteTopicsResponseDeletableTopicResult:
    """Part of ``DeleteTopicsResponse``."""

    name: str | None = string(nullable="6+")
    topic_id: bytes = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", default=None, nullable="5+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class DeleteTopicsResponse:
    """Response of API key 20, versions 1 to 6."""

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: tuple[DeleteTopicsResponseDeletableTopicResult, ...] = array(
        DeleteTopicsResponseDeletableTopicResult
    )


@dataclass(slots=True, kw_only=True)
class CreatePartitionsRequestCreatePartitionsAssignment:
    """Part of ``CreatePartitionsRequest``."""

    broker_ids: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class CreatePartitionsRequestCreatePartitionsTopic:
    """Part of ``CreatePartitionsRequest``."""

    name: str = string()
    count: int = int32()
    assignments: tuple[CreatePartitionsRequestCreatePartitionsAssignment, ...] | None = array(
        CreatePartitionsRequestCreatePartitionsAssignment, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class CreatePartitionsRequest:
    """Request of API key 37, versions 0 to 3."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = 2

    topics: tuple[CreatePartitionsRequestCreatePartitionsTopic, ...] = array(
        CreatePartitionsRequestCreatePartitionsTopic
    )
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@dataclass(slots=True, kw_only=True)
class CreatePartitionsResponseCreatePartitionsTopicResult:
    """Part of ``CreatePartitionsResponse``."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class CreatePartitionsResponse:
    """Response of API key 37, versions 0 to 3."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32()
    results: tuple[CreatePartitionsResponseCreatePartitionsTopicResult, ...] = array(
        CreatePartitionsResponseCreatePartitionsTopicResult
    )

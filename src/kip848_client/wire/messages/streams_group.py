"""Descriptions of streams groups and of their topologies (KIP-1071)."""

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
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
    "StreamsGroupDescribeResponseAssignment",
    "StreamsGroupDescribeResponseDescribedGroup",
    "StreamsGroupDescribeResponseEndpoint",
    "StreamsGroupDescribeResponseKeyValue",
    "StreamsGroupDescribeResponseMember",
    "StreamsGroupDescribeResponseSubtopology",
    "StreamsGroupDescribeResponseTaskIds",
    "StreamsGroupDescribeResponseTaskOffset",
    "StreamsGroupDescribeResponseTopicInfo",
    "StreamsGroupDescribeResponseTopology",
    "StreamsGroupDescribeResponseTopologyDescription",
    "StreamsGroupDescribeResponseTopologyDescriptionGlobalStore",
    "StreamsGroupDescribeResponseTopologyDescriptionNode",
    "StreamsGroupDescribeResponseTopologyDescriptionSubtopology",
    "StreamsGroupTopologyDescriptionUpdateRequest",
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription",
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore",
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode",
    "StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology",
    "StreamsGroupTopologyDescriptionUpdateResponse",
]


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeRequest:
    """Request of API key 89, versions 0 to 1."""

    API_KEY: ClassVar[int] = 89
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    group_ids: tuple[str, ...] = array("string")
    include_authorized_operations: bool = boolean()
    include_topology_description: bool = boolean("1+", default=False)


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseKeyValue:
    """Part of ``StreamsGroupDescribeResponse``."""

    key: str = string()
    value: str = string()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopicInfo:
    """Part of ``StreamsGroupDescribeResponse``."""

    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: tuple[StreamsGroupDescribeResponseKeyValue, ...] = array(
        StreamsGroupDescribeResponseKeyValue
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseSubtopology:
    """Part of ``StreamsGroupDescribeResponse``."""

    subtopology_id: str = string()
    source_topics: tuple[str, ...] = array("string")
    repartition_sink_topics: tuple[str, ...] = array("string")
    state_changelog_topics: tuple[StreamsGroupDescribeResponseTopicInfo, ...] = array(
        StreamsGroupDescribeResponseTopicInfo
    )
    repartition_source_topics: tuple[StreamsGroupDescribeResponseTopicInfo, ...] = array(
        StreamsGroupDescribeResponseTopicInfo
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopology:
    """Part of ``StreamsGroupDescribeResponse``."""

    epoch: int = int32()
    subtopologies: tuple[StreamsGroupDescribeResponseSubtopology, ...] | None = array(
        StreamsGroupDescribeResponseSubtopology, default=None, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseEndpoint:
    """Part of ``StreamsGroupDescribeResponse``."""

    host: str = string()
    port: int = uint16()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTaskOffset:
    """Part of ``StreamsGroupDescribeResponse``."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTaskIds:
    """Part of ``StreamsGroupDescribeResponse``."""

    subtopology_id: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseAssignment:
    """Part of ``StreamsGroupDescribeResponse``."""

    active_tasks: tuple[StreamsGroupDescribeResponseTaskIds, ...] = array(
        StreamsGroupDescribeResponseTaskIds
    )
    standby_tasks: tuple[StreamsGroupDescribeResponseTaskIds, ...] = array(
        StreamsGroupDescribeResponseTaskIds
    )
    warmup_tasks: tuple[StreamsGroupDescribeResponseTaskIds, ...] = array(
        StreamsGroupDescribeResponseTaskIds
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseMember:
    """Part of ``StreamsGroupDescribeResponse``."""

    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: StreamsGroupDescribeResponseEndpoint | None = struct(
        StreamsGroupDescribeResponseEndpoint, nullable="0+"
    )
    client_tags: tuple[StreamsGroupDescribeResponseKeyValue, ...] = array(
        StreamsGroupDescribeResponseKeyValue
    )
    task_offsets: tuple[StreamsGroupDescribeResponseTaskOffset, ...] = array(
        StreamsGroupDescribeResponseTaskOffset
    )
    task_end_offsets: tuple[StreamsGroupDescribeResponseTaskOffset, ...] = array(
        StreamsGroupDescribeResponseTaskOffset
    )
    assignment: StreamsGroupDescribeResponseAssignment = struct(
        StreamsGroupDescribeResponseAssignment, default=StreamsGroupDescribeResponseAssignment
    )
    target_assignment: StreamsGroupDescribeResponseAssignment = struct(
        StreamsGroupDescribeResponseAssignment, default=StreamsGroupDescribeResponseAssignment
    )
    is_classic: bool = boolean()


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopologyDescriptionNode:
    """Part of ``StreamsGroupDescribeResponse``."""

    name: str = string("1+")
    node_type: int = int8("1+")
    source_topics: tuple[str, ...] = array("string", "1+")
    sink_topic: str | None = string("1+", default=None, nullable="1+")
    stores: tuple[str, ...] = array("string", "1+")
    successors: tuple[str, ...] = array("string", "1+")


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopologyDescriptionSubtopology:
    """Part of ``StreamsGroupDescribeResponse``."""

    subtopology_id: str = string("1+")
    nodes: tuple[StreamsGroupDescribeResponseTopologyDescriptionNode, ...] = array(
        StreamsGroupDescribeResponseTopologyDescriptionNode, "1+"
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopologyDescriptionGlobalStore:
    """Part of ``StreamsGroupDescribeResponse``."""

    source: StreamsGroupDescribeResponseTopologyDescriptionNode = struct(
        StreamsGroupDescribeResponseTopologyDescriptionNode,
        "1+",
        default=StreamsGroupDescribeResponseTopologyDescriptionNode,
    )
    processor: StreamsGroupDescribeResponseTopologyDescriptionNode = struct(
        StreamsGroupDescribeResponseTopologyDescriptionNode,
        "1+",
        default=StreamsGroupDescribeResponseTopologyDescriptionNode,
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseTopologyDescription:
    """Part of ``StreamsGroupDescribeResponse``."""

    subtopologies: tuple[StreamsGroupDescribeResponseTopologyDescriptionSubtopology, ...] = array(
        StreamsGroupDescribeResponseTopologyDescriptionSubtopology, "1+"
    )
    global_stores: tuple[StreamsGroupDescribeResponseTopologyDescriptionGlobalStore, ...] = array(
        StreamsGroupDescribeResponseTopologyDescriptionGlobalStore, "1+"
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponseDescribedGroup:
    """Part of ``StreamsGroupDescribeResponse``."""

    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: StreamsGroupDescribeResponseTopology | None = struct(
        StreamsGroupDescribeResponseTopology, nullable="0+"
    )
    members: tuple[StreamsGroupDescribeResponseMember, ...] = array(
        StreamsGroupDescribeResponseMember
    )
    authorized_operations: int = int32(default=-2147483648)
    topology_description: StreamsGroupDescribeResponseTopologyDescription | None = struct(
        StreamsGroupDescribeResponseTopologyDescription, "1+", nullable="1+"
    )
    topology_description_status: int = int8("1+", default=0)
    assignor_name: str | None = string("1+", default=None, nullable="1+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class StreamsGroupDescribeResponse:
    """Response of API key 89, versions 0 to 1."""

    API_KEY: ClassVar[int] = 89
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    groups: tuple[StreamsGroupDescribeResponseDescribedGroup, ...] = array(
        StreamsGroupDescribeResponseDescribedGroup
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode:
    """Part of ``StreamsGroupTopologyDescriptionUpdateRequest``."""

    name: str = string()
    node_type: int = int8()
    source_topics: tuple[str, ...] = array("string")
    sink_topic: str | None = string(default=None, nullable="0+")
    stores: tuple[str, ...] = array("string")
    successors: tuple[str, ...] = array("string")


@dataclass(slots=True, kw_only=True)
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology:
    """Part of ``StreamsGroupTopologyDescriptionUpdateRequest``."""

    subtopology_id: str = string()
    nodes: tuple[StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode, ...] = array(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore:
    """Part of ``StreamsGroupTopologyDescriptionUpdateRequest``."""

    source: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode = struct(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode,
        default=StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode,
    )
    processor: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode = struct(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode,
        default=StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionNode,
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription:
    """Part of ``StreamsGroupTopologyDescriptionUpdateRequest``."""

    subtopologies: tuple[
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology, ...
    ] = array(StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionSubtopology)
    global_stores: tuple[
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore, ...
    ] = array(StreamsGroupTopologyDescriptionUpdateRequestTopologyDescriptionGlobalStore)


@dataclass(slots=True, kw_only=True)
class StreamsGroupTopologyDescriptionUpdateRequest:
    """Request of API key 93, version 0."""

    API_KEY: ClassVar[int] = 93
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    member_id: str = string()
    topology_epoch: int = int32()
    topology_description: StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription = struct(
        StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription,
        default=StreamsGroupTopologyDescriptionUpdateRequestTopologyDescription,
    )


@dataclass(slots=True, kw_only=True)
class StreamsGroupTopologyDescriptionUpdateResponse:
    """Response of API key 93, version 0."""

    API_KEY: ClassVar[int] = 93
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")

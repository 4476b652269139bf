"""Describes classic groups, lists groups of every type (KIP-518, KIP-848), deletes groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, data, int16, int32, string

__all__ = [
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteGroupsResponseDeletableGroupResult",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribeGroupsResponseDescribedGroup",
    "DescribeGroupsResponseDescribedGroupMember",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListGroupsResponseListedGroup",
]


@dataclass(slots=True, kw_only=True)
class DescribeGroupsRequest:
    """Request of API key 15, versions 0 to 6."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 5

    groups: tuple[str, ...] = array("string")
    include_authorized_operations: bool = boolean("3+")


@dataclass(slots=True, kw_only=True)
class DescribeGroupsResponseDescribedGroupMember:
    """Part of ``DescribeGroupsResponse``."""

    member_id: str = string()
    group_instance_id: str | None = string("4+", default=None, nullable="4+", ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = data()
    member_assignment: bytes = data()


@dataclass(slots=True, kw_only=True)
class DescribeGroupsResponseDescribedGroup:
    """Part of ``DescribeGroupsResponse``."""

    error_code: int = int16()
    error_message: str | None = string("6+", default=None, nullable="6+")
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: tuple[DescribeGroupsResponseDescribedGroupMember, ...] = array(
        DescribeGroupsResponseDescribedGroupMember
    )
    authorized_operations: int = int32("3+", default=-2147483648)


@dataclass(slots=True, kw_only=True)
class DescribeGroupsResponse:
    """Response of API key 15, versions 0 to 6."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 5

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: tuple[DescribeGroupsResponseDescribedGroup, ...] = array(
        DescribeGroupsResponseDescribedGroup
    )


@dataclass(slots=True, kw_only=True)
class ListGroupsRequest:
    """Request of API key 16, versions 0 to 5."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    states_filter: tuple[str, ...] = array("string", "4+")
    types_filter: tuple[str, ...] = array("string", "5+")


@dataclass(slots=True, kw_only=True)
class ListGroupsResponseListedGroup:
    """Part of ``ListGroupsResponse``."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class ListGroupsResponse:
    """Response of API key 16, versions 0 to 5."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    groups: tuple[ListGroupsResponseListedGroup, ...] = array(ListGroupsResponseListedGroup)


@dataclass(slots=True, kw_only=True)
class DeleteGroupsRequest:
    """Request of API key 42, versions 0 to 3."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = 2

    groups_names: tuple[str, ...] = array("string")


@dataclass(slots=True, kw_only=True)
class DeleteGroupsResponseDeletableGroupResult:
    """Part of ``DeleteGroupsResponse``."""

    group_id: str = string()
    error_code: int = int16()
    error_message: str | None = string("3+", default=None, nullable="3+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class DeleteGroupsResponse:
    """Response of API key 42, versions 0 to 3."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32()
    results: tuple[DeleteGroupsResponseDeletableGroupResult, ...] = array(
        DeleteGroupsResponseDeletableGroupResult
    )

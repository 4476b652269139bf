"""Describes, creates and deletes access control lists (KIP-140, KIP-290)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, int8, int16, int32, string

__all__ = [
    "CreateAclsRequest",
    "CreateAclsRequestAclCreation",
    "CreateAclsResponse",
    "CreateAclsResponseAclCreationResult",
    "DeleteAclsRequest",
    "DeleteAclsRequestDeleteAclsFilter",
    "DeleteAclsResponse",
    "DeleteAclsResponseDeleteAclsFilterResult",
    "DeleteAclsResponseDeleteAclsMatchingAcl",
    "DescribeAclsRequest",
    "DescribeAclsResponse",
    "DescribeAclsResponseAclDescription",
    "DescribeAclsResponseDescribeAclsResource",
]


@dataclass(slots=True, kw_only=True)
class DescribeAclsRequest:
    """Request of API key 29, versions 1 to 3."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@dataclass(slots=True, kw_only=True)
class DescribeAclsResponseAclDescription:
    """Part of ``DescribeAclsResponse``."""

    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@dataclass(slots=True, kw_only=True)
class DescribeAclsResponseDescribeAclsResource:
    """Part of ``DescribeAclsResponse``."""

    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    acls: tuple[DescribeAclsResponseAclDescription, ...] = array(DescribeAclsResponseAclDescription)


@dataclass(slots=True, kw_only=True)
class DescribeAclsResponse:
    """Response of API key 29, versions 1 to 3."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: tuple[DescribeAclsResponseDescribeAclsResource, ...] = array(
        DescribeAclsResponseDescribeAclsResource
    )


@dataclass(slots=True, kw_only=True)
class CreateAclsRequestAclCreation:
    """Part of ``CreateAclsRequest``."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@dataclass(slots=True, kw_only=True)
class CreateAclsRequest:
    """Request of API key 30, versions 1 to 3."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    creations: tuple[CreateAclsRequestAclCreation, ...] = array(CreateAclsRequestAclCreation)


@dataclass(slots=True, kw_only=True)
class CreateAclsResponseAclCreationResult:
    """Part of ``CreateAclsResponse``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class CreateAclsResponse:
    """Response of API key 30, versions 1 to 3."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32()
    results: tuple[CreateAclsResponseAclCreationResult, ...] = array(
        CreateAclsResponseAclCreationResult
    )


@dataclass(slots=True, kw_only=True)
class DeleteAclsRequestDeleteAclsFilter:
    """Part of ``DeleteAclsRequest``."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@dataclass(slots=True, kw_only=True)
class DeleteAclsRequest:
    """Request of API key 31, versions 1 to 3."""

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    filters: tuple[DeleteAclsRequestDeleteAclsFilter, ...] = array(
        DeleteAclsRequestDeleteAclsFilter
    )


@dataclass(slots=True, kw_only=True)
class DeleteAclsResponseDeleteAclsMatchingAcl:
    """Part of ``DeleteAclsResponse``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@dataclass(slots=True, kw_only=True)
class DeleteAclsResponseDeleteAclsFilterResult:
    """Part of ``DeleteAclsResponse``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    matching_acls: tuple[DeleteAclsResponseDeleteAclsMatchingAcl, ...] = array(
        DeleteAclsResponseDeleteAclsMatchingAcl
    )


@dataclass(slots=True, kw_only=True)
class DeleteAclsResponse:
    """Response of API key 31, versions 1 to 3."""

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32()
    filter_results: tuple[DeleteAclsResponseDeleteAclsFilterResult, ...] = array(
        DeleteAclsResponseDeleteAclsFilterResult
    )

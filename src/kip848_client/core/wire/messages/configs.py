"""Reads and changes configurations of topics, brokers and groups (KIP-226, KIP-339, KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int8, int16, int32, string

__all__ = [
    "DescribeConfigsRequest",
    "DescribeConfigsRequestDescribeConfigsResource",
    "DescribeConfigsResponse",
    "DescribeConfigsResponseDescribeConfigsResourceResult",
    "DescribeConfigsResponseDescribeConfigsResult",
    "DescribeConfigsResponseDescribeConfigsSynonym",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsRequestAlterConfigsResource",
    "IncrementalAlterConfigsRequestAlterableConfig",
    "IncrementalAlterConfigsResponse",
    "IncrementalAlterConfigsResponseAlterConfigsResourceResponse",
]


@dataclass(slots=True, kw_only=True)
class DescribeConfigsRequestDescribeConfigsResource:
    """Part of ``DescribeConfigsRequest``."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: tuple[str, ...] | None = array("string", nullable="0+")


@dataclass(slots=True, kw_only=True)
class DescribeConfigsRequest:
    """Request of API key 32, versions 1 to 4."""

    API_KEY: ClassVar[int] = 32
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE: ClassVar[int] = 4

    resources: tuple[DescribeConfigsRequestDescribeConfigsResource, ...] = array(
        DescribeConfigsRequestDescribeConfigsResource
    )
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResponseDescribeConfigsSynonym:
    """Part of ``DescribeConfigsResponse``."""

    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResponseDescribeConfigsResourceResult:
    """Part of ``DescribeConfigsResponse``."""

    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: tuple[DescribeConfigsResponseDescribeConfigsSynonym, ...] = array(
        DescribeConfigsResponseDescribeConfigsSynonym, "1+", ignorable=True
    )
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResponseDescribeConfigsResult:
    """Part of ``DescribeConfigsResponse``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[DescribeConfigsResponseDescribeConfigsResourceResult, ...] = array(
        DescribeConfigsResponseDescribeConfigsResourceResult
    )


@dataclass(slots=True, kw_only=True)
class DescribeConfigsResponse:
    """Response of API key 32, versions 1 to 4."""

    API_KEY: ClassVar[int] = 32
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: int = int32()
    results: tuple[DescribeConfigsResponseDescribeConfigsResult, ...] = array(
        DescribeConfigsResponseDescribeConfigsResult
    )


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsRequestAlterableConfig:
    """Part of ``IncrementalAlterConfigsRequest``."""

    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsRequestAlterConfigsResource:
    """Part of ``IncrementalAlterConfigsRequest``."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[IncrementalAlterConfigsRequestAlterableConfig, ...] = array(
        IncrementalAlterConfigsRequestAlterableConfig
    )


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsRequest:
    """Request of API key 44, versions 0 to 1."""

    API_KEY: ClassVar[int] = 44
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    resources: tuple[IncrementalAlterConfigsRequestAlterConfigsResource, ...] = array(
        IncrementalAlterConfigsRequestAlterConfigsResource
    )
    validate_only: bool = boolean()


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsResponseAlterConfigsResourceResponse:
    """Part of ``IncrementalAlterConfigsResponse``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsResponse:
    """Response of API key 44, versions 0 to 1."""

    API_KEY: ClassVar[int] = 44
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    throttle_time_ms: int = int32()
    responses: tuple[IncrementalAlterConfigsResponseAlterConfigsResourceResponse, ...] = array(
        IncrementalAlterConfigsResponseAlterConfigsResourceResponse
    )

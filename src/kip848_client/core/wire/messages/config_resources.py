"""Lists the resources with configurations (KIP-1142), and replaces whole configurations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int8, int16, int32, string

__all__ = [
    "AlterConfigsRequest",
    "AlterConfigsRequestAlterConfigsResource",
    "AlterConfigsRequestAlterableConfig",
    "AlterConfigsResponse",
    "AlterConfigsResponseAlterConfigsResourceResponse",
    "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
    "ListConfigResourcesResponseConfigResource",
]


@dataclass(slots=True, kw_only=True)
class ListConfigResourcesRequest:
    """Request of API key 74, versions 0 to 1."""

    API_KEY: ClassVar[int] = 74
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    resource_types: tuple[int, ...] = array("int8", "1+")


@dataclass(slots=True, kw_only=True)
class ListConfigResourcesResponseConfigResource:
    """Part of ``ListConfigResourcesResponse``."""

    resource_name: str = string()
    resource_type: int = int8("1+", default=16, ignorable=True)


@dataclass(slots=True, kw_only=True)
class ListConfigResourcesResponse:
    """Response of API key 74, versions 0 to 1."""

    API_KEY: ClassVar[int] = 74
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: tuple[ListConfigResourcesResponseConfigResource, ...] = array(
        ListConfigResourcesResponseConfigResource
    )


@dataclass(slots=True, kw_only=True)
class AlterConfigsRequestAlterableConfig:
    """Part of ``AlterConfigsRequest``."""

    name: str = string()
    value: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class AlterConfigsRequestAlterConfigsResource:
    """Part of ``AlterConfigsRequest``."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[AlterConfigsRequestAlterableConfig, ...] = array(
        AlterConfigsRequestAlterableConfig
    )


@dataclass(slots=True, kw_only=True)
class AlterConfigsRequest:
    """Request of API key 33, versions 0 to 2."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    resources: tuple[AlterConfigsRequestAlterConfigsResource, ...] = array(
        AlterConfigsRequestAlterConfigsResource
    )
    validate_only: bool = boolean()


@dataclass(slots=True, kw_only=True)
class AlterConfigsResponseAlterConfigsResourceResponse:
    """Part of ``AlterConfigsResponse``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@dataclass(slots=True, kw_only=True)
class AlterConfigsResponse:
    """Response of API key 33, versions 0 to 2."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: int = int32()
    responses: tuple[AlterConfigsResponseAlterConfigsResourceResponse, ...] = array(
        AlterConfigsResponseAlterConfigsResourceResponse
    )

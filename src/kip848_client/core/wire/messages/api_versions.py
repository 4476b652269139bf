"""Which APIs and versions a broker serves, and its finalized features (KIP-35, KIP-511,
KIP-584)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int16, int32, int64, string

__all__ = [
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "ApiVersionsResponseApiVersion",
    "ApiVersionsResponseFinalizedFeatureKey",
    "ApiVersionsResponseSupportedFeatureKey",
]


@dataclass(slots=True, kw_only=True)
class ApiVersionsRequest:
    """Request of API key 18, versions 0 to 5."""

    API_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)
    cluster_id: str | None = string("5+", default=None, nullable="5+", ignorable=True)
    node_id: int = int32("5+", default=-1, ignorable=True)


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponseApiVersion:
    """Part of ``ApiVersionsResponse``."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponseSupportedFeatureKey:
    """Part of ``ApiVersionsResponse``."""

    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponseFinalizedFeatureKey:
    """Part of ``ApiVersionsResponse``."""

    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


@dataclass(slots=True, kw_only=True)
class ApiVersionsResponse:
    """Response of API key 18, versions 0 to 5."""

    API_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    error_code: int = int16()
    api_keys: tuple[ApiVersionsResponseApiVersion, ...] = array(ApiVersionsResponseApiVersion)
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: tuple[ApiVersionsResponseSupportedFeatureKey, ...] = array(
        ApiVersionsResponseSupportedFeatureKey, "3+", tag=0, tagged="3+", ignorable=True
    )
    finalized_features_epoch: int = int64("3+", default=-1, tag=1, tagged="3+", ignorable=True)
    finalized_features: tuple[ApiVersionsResponseFinalizedFeatureKey, ...] = array(
        ApiVersionsResponseFinalizedFeatureKey, "3+", tag=2, tagged="3+", ignorable=True
    )
    zk_migration_ready: bool = boolean("3+", tag=3, tagged="3+", ignorable=True)

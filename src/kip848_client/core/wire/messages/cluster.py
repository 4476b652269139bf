"""The brokers of a cluster, for administrators (KIP-700)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, int8, int16, int32, string

__all__ = [
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeClusterResponseDescribeClusterBroker",
]


@dataclass(slots=True, kw_only=True)
class DescribeClusterRequest:
    """Request of API key 60, versions 0 to 2."""

    API_KEY: ClassVar[int] = 60
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


@dataclass(slots=True, kw_only=True)
class DescribeClusterResponseDescribeClusterBroker:
    """Part of ``DescribeClusterResponse``."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(default=None, nullable="0+")
    is_fenced: bool = boolean("2+")


@dataclass(slots=True, kw_only=True)
class DescribeClusterResponse:
    """Response of API key 60, versions 0 to 2."""

    API_KEY: ClassVar[int] = 60
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: tuple[DescribeClusterResponseDescribeClusterBroker, ...] = array(
        DescribeClusterResponseDescribeClusterBroker
    )
    cluster_authorized_operations: int = int32(default=-2147483648)

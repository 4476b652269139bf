"""Client metrics for brokers with subscriptions (KIP-714)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, data, int8, int16, int32, uuid

__all__ = [
    "GetTelemetrySubscriptionsRequest",
    "GetTelemetrySubscriptionsResponse",
    "PushTelemetryRequest",
    "PushTelemetryResponse",
]


@dataclass(slots=True, kw_only=True)
class GetTelemetrySubscriptionsRequest:
    """Request of API key 71, version 0."""

    API_KEY: ClassVar[int] = 71
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    client_instance_id: bytes = uuid()


@dataclass(slots=True, kw_only=True)
class GetTelemetrySubscriptionsResponse:
    """Response of API key 71, version 0."""

    API_KEY: ClassVar[int] = 71
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    accepted_compression_types: tuple[int, ...] = array("int8")
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: tuple[str, ...] = array("string")


@dataclass(slots=True, kw_only=True)
class PushTelemetryRequest:
    """Request of API key 72, version 0."""

    API_KEY: ClassVar[int] = 72
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = data()


@dataclass(slots=True, kw_only=True)
class PushTelemetryResponse:
    """Response of API key 72, version 0."""

    API_KEY: ClassVar[int] = 72
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()

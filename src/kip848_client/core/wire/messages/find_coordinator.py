"""Which broker coordinates a group, a transactional id or a share partition (KIP-699)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, int8, int16, int32, string

__all__ = [
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "FindCoordinatorResponseCoordinator",
]


@dataclass(slots=True, kw_only=True)
class FindCoordinatorRequest:
    """Request of API key 10, versions 0 to 6."""

    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 3

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: tuple[str, ...] = array("string", "4+")


@dataclass(slots=True, kw_only=True)
class FindCoordinatorResponseCoordinator:
    """Part of ``FindCoordinatorResponse``."""

    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class FindCoordinatorResponse:
    """Response of API key 10, versions 0 to 6."""

    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: tuple[FindCoordinatorResponseCoordinator, ...] = array(
        FindCoordinatorResponseCoordinator, "4+"
    )

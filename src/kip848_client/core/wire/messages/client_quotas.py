"""Describes and alters the quotas of users, clients and addresses (KIP-546)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, float64, int8, int16, int32, string

__all__ = [
    "AlterClientQuotasRequest",
    "AlterClientQuotasRequestEntityData",
    "AlterClientQuotasRequestEntryData",
    "AlterClientQuotasRequestOpData",
    "AlterClientQuotasResponse",
    "AlterClientQuotasResponseEntityData",
    "AlterClientQuotasResponseEntryData",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasRequestComponentData",
    "DescribeClientQuotasResponse",
    "DescribeClientQuotasResponseEntityData",
    "DescribeClientQuotasResponseEntryData",
    "DescribeClientQuotasResponseValueData",
]


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasRequestComponentData:
    """Part of ``DescribeClientQuotasRequest``."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasRequest:
    """Request of API key 48, versions 0 to 1."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    components: tuple[DescribeClientQuotasRequestComponentData, ...] = array(
        DescribeClientQuotasRequestComponentData
    )
    strict: bool = boolean()


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasResponseEntityData:
    """Part of ``DescribeClientQuotasResponse``."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasResponseValueData:
    """Part of ``DescribeClientQuotasResponse``."""

    key: str = string()
    value: float = float64()


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasResponseEntryData:
    """Part of ``DescribeClientQuotasResponse``."""

    entity: tuple[DescribeClientQuotasResponseEntityData, ...] = array(
        DescribeClientQuotasResponseEntityData
    )
    values: tuple[DescribeClientQuotasResponseValueData, ...] = array(
        DescribeClientQuotasResponseValueData
    )


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasResponse:
    """Response of API key 48, versions 0 to 1."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: tuple[DescribeClientQuotasResponseEntryData, ...] | None = array(
        DescribeClientQuotasResponseEntryData, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasRequestEntityData:
    """Part of ``AlterClientQuotasRequest``."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasRequestOpData:
    """Part of ``AlterClientQuotasRequest``."""

    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasRequestEntryData:
    """Part of ``AlterClientQuotasRequest``."""

    entity: tuple[AlterClientQuotasRequestEntityData, ...] = array(
        AlterClientQuotasRequestEntityData
    )
    ops: tuple[AlterClientQuotasRequestOpData, ...] = array(AlterClientQuotasRequestOpData)


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasRequest:
    """Request of API key 49, versions 0 to 1."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    entries: tuple[AlterClientQuotasRequestEntryData, ...] = array(
        AlterClientQuotasRequestEntryData
    )
    validate_only: bool = boolean()


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasResponseEntityData:
    """Part of ``AlterClientQuotasResponse``."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasResponseEntryData:
    """Part of ``AlterClientQuotasResponse``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: tuple[AlterClientQuotasResponseEntityData, ...] = array(
        AlterClientQuotasResponseEntityData
    )


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasResponse:
    """Response of API key 49, versions 0 to 1."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    throttle_time_ms: int = int32()
    entries: tuple[AlterClientQuotasResponseEntryData, ...] = array(
        AlterClientQuotasResponseEntryData
    )

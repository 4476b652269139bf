"""Delegation tokens (KIP-48)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.wire._fields import array, data, int16, int32, int64, string

__all__ = [
    "CreateDelegationTokenRequest",
    "CreateDelegationTokenRequestCreatableRenewers",
    "CreateDelegationTokenResponse",
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenRequestDescribeDelegationTokenOwner",
    "DescribeDelegationTokenResponse",
    "DescribeDelegationTokenResponseDescribedDelegationToken",
    "DescribeDelegationTokenResponseDescribedDelegationTokenRenewer",
    "ExpireDelegationTokenRequest",
    "ExpireDelegationTokenResponse",
    "RenewDelegationTokenRequest",
    "RenewDelegationTokenResponse",
]


@dataclass(slots=True, kw_only=True)
class CreateDelegationTokenRequestCreatableRenewers:
    """Part of ``CreateDelegationTokenRequest``."""

    principal_type: str = string()
    principal_name: str = string()


@dataclass(slots=True, kw_only=True)
class CreateDelegationTokenRequest:
    """Request of API key 38, versions 1 to 3."""

    API_KEY: ClassVar[int] = 38
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: tuple[CreateDelegationTokenRequestCreatableRenewers, ...] = array(
        CreateDelegationTokenRequestCreatableRenewers
    )
    max_lifetime_ms: int = int64()


@dataclass(slots=True, kw_only=True)
class CreateDelegationTokenResponse:
    """Response of API key 38, versions 1 to 3."""

    API_KEY: ClassVar[int] = 38
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = data()
    throttle_time_ms: int = int32()


@dataclass(slots=True, kw_only=True)
class RenewDelegationTokenRequest:
    """Request of API key 39, versions 1 to 2."""

    API_KEY: ClassVar[int] = 39
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 2

    hmac: bytes = data()
    renew_period_ms: int = int64()


@dataclass(slots=True, kw_only=True)
class RenewDelegationTokenResponse:
    """Response of API key 39, versions 1 to 2."""

    API_KEY: ClassVar[int] = 39
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 2

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


@dataclass(slots=True, kw_only=True)
class ExpireDelegationTokenRequest:
    """Request of API key 40, versions 1 to 2."""

    API_KEY: ClassVar[int] = 40
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 2

    hmac: bytes = data()
    expiry_time_period_ms: int = int64()


@dataclass(slots=True, kw_only=True)
class ExpireDelegationTokenResponse:
    """Response of API key 40, versions 1 to 2."""

    API_KEY: ClassVar[int] = 40
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 2

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenRequestDescribeDelegationTokenOwner:
    """Part of ``DescribeDelegationTokenRequest``."""

    principal_type: str = string()
    principal_name: str = string()


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenRequest:
    """Request of API key 41, versions 1 to 3."""

    API_KEY: ClassVar[int] = 41
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    owners: tuple[DescribeDelegationTokenRequestDescribeDelegationTokenOwner, ...] | None = array(
        DescribeDelegationTokenRequestDescribeDelegationTokenOwner, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenResponseDescribedDelegationTokenRenewer:
    """Part of ``DescribeDelegationTokenResponse``."""

    principal_type: str = string()
    principal_name: str = string()


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenResponseDescribedDelegationToken:
    """Part of ``DescribeDelegationTokenResponse``."""

    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = data()
    renewers: tuple[DescribeDelegationTokenResponseDescribedDelegationTokenRenewer, ...] = array(
        DescribeDelegationTokenResponseDescribedDelegationTokenRenewer
    )


@dataclass(slots=True, kw_only=True)
class DescribeDelegationTokenResponse:
    """Response of API key 41, versions 1 to 3."""

    API_KEY: ClassVar[int] = 41
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    error_code: int = int16()
    tokens: tuple[DescribeDelegationTokenResponseDescribedDelegationToken, ...] = array(
        DescribeDelegationTokenResponseDescribedDelegationToken
    )
    throttle_time_ms: int = int32()

"""Describes and alters users' SCRAM credentials (KIP-554)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, data, int8, int16, int32, string

__all__ = [
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsRequestScramCredentialDeletion",
    "AlterUserScramCredentialsRequestScramCredentialUpsertion",
    "AlterUserScramCredentialsResponse",
    "AlterUserScramCredentialsResponseAlterUserScramCredentialsResult",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsRequestUserName",
    "DescribeUserScramCredentialsResponse",
    "DescribeUserScramCredentialsResponseCredentialInfo",
    "DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult",
]


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsRequestUserName:
    """Part of ``DescribeUserScramCredentialsRequest``."""

    name: str = string()


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest:
    """Request of API key 50, version 0."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    users: tuple[DescribeUserScramCredentialsRequestUserName, ...] | None = array(
        DescribeUserScramCredentialsRequestUserName, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsResponseCredentialInfo:
    """Part of ``DescribeUserScramCredentialsResponse``."""

    mechanism: int = int8()
    iterations: int = int32()


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult:
    """Part of ``DescribeUserScramCredentialsResponse``."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: tuple[DescribeUserScramCredentialsResponseCredentialInfo, ...] = array(
        DescribeUserScramCredentialsResponseCredentialInfo
    )


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsResponse:
    """Response of API key 50, version 0."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: tuple[DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult, ...] = (
        array(DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult)
    )


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsRequestScramCredentialDeletion:
    """Part of ``AlterUserScramCredentialsRequest``."""

    name: str = string()
    mechanism: int = int8()


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsRequestScramCredentialUpsertion:
    """Part of ``AlterUserScramCredentialsRequest``."""

    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = data()
    salted_password: bytes = data(is_secret=True)


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsRequest:
    """Request of API key 51, version 0."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    deletions: tuple[AlterUserScramCredentialsRequestScramCredentialDeletion, ...] = array(
        AlterUserScramCredentialsRequestScramCredentialDeletion
    )
    upsertions: tuple[AlterUserScramCredentialsRequestScramCredentialUpsertion, ...] = array(
        AlterUserScramCredentialsRequestScramCredentialUpsertion
    )


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsResponseAlterUserScramCredentialsResult:
    """Part of ``AlterUserScramCredentialsResponse``."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsResponse:
    """Response of API key 51, version 0."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    results: tuple[AlterUserScramCredentialsResponseAlterUserScramCredentialsResult, ...] = array(
        AlterUserScramCredentialsResponseAlterUserScramCredentialsResult
    )

"""Authentication handshakes (KIP-43, KIP-152)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, data, int16, int64, string

__all__ = [
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
]


@dataclass(slots=True, kw_only=True)
class SaslHandshakeRequest:
    """Request of API key 17, versions 0 to 1."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = -1

    mechanism: str = string()


@dataclass(slots=True, kw_only=True)
class SaslHandshakeResponse:
    """Response of API key 17, versions 0 to 1."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = -1

    error_code: int = int16()
    mechanisms: tuple[str, ...] = array("string")


@dataclass(slots=True, kw_only=True)
class SaslAuthenticateRequest:
    """Request of API key 36, versions 0 to 2."""

    API_KEY: ClassVar[int] = 36
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    auth_bytes: bytes = data(is_secret=True)


@dataclass(slots=True, kw_only=True)
class SaslAuthenticateResponse:
    """Response of API key 36, versions 0 to 2."""

    API_KEY: ClassVar[int] = 36
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = data()
    session_lifetime_ms: int = int64("1+", ignorable=True)

"""SASL/PLAIN on the server side (RFC 4616): one message with a name and a password."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from mock_coordinator.core.authentication.failures import CREDENTIALS_DIFFER, SaslFailure

__all__ = ["PlainExchange"]

_TOKENS: Final = 3


class PlainExchange:
    """The server's side of one authentication; ``user`` is set by a right ``answer``."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords: Final = passwords
        self.user: str | None = None

    def answer(self, token: bytes) -> bytes:
        """Check the client's only message. Raises ``SaslFailure``, in Kafka's words."""
        parts = token.decode(errors="replace").split("\0")
        if len(parts) != _TOKENS:
            raise SaslFailure(
                f"Invalid SASL/PLAIN response: expected {_TOKENS} tokens, got {len(parts)}"
            )
        authzid, user, password = parts
        if not user:
            raise SaslFailure("Authentication failed: username not specified")
        if not password:
            raise SaslFailure("Authentication failed: password not specified")
        known = self._passwords.get(user)
        if known is None or not hmac.compare_digest(known.encode(), password.encode()):
            raise SaslFailure("Authentication failed: Invalid username or password")
        if authzid and authzid != user:
            raise SaslFailure(CREDENTIALS_DIFFER)
        self.user = user
        return b""

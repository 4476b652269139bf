"""SaslHandshake (key 17) and SaslAuthenticate (key 36) that reach the broker itself.

Requests that authenticate a connection are answered earlier (``authentication.sasl``). These
arrived on a listener without SASL, or after authentication.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall

__all__ = ["authenticate_too_late", "handshake_too_late"]

_TOO_LATE: Final = "SaslAuthenticate request received after successful authentication"


def handshake_too_late(_call: ApiCall[SaslHandshakeRequest]) -> SaslHandshakeResponse:
    """Refuse it."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def authenticate_too_late(_call: ApiCall[SaslAuthenticateRequest]) -> SaslAuthenticateResponse:
    """Refuse it, with words."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_TOO_LATE
    )

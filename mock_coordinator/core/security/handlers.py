"""Requests about security that reach the broker itself: SASL requests that come too late, and
access control lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kip848_client.error_codes import ErrorCode
from kip848_client.wire._fields import Message
from kip848_client.wire.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from mock_coordinator.core.broker import Broker
from mock_coordinator.core.security.acl_apis import create_acls, delete_acls, describe_acls

__all__ = ["SECURITY_HANDLERS", "SecurityHandler"]

SecurityHandler = Callable[[Broker, Any], Message]

_TOO_LATE: Final = "SaslAuthenticate request received after successful authentication"


def _handshake(_broker: Broker, _request: Any) -> Message:
    """On a listener without SASL, and after authentication: ILLEGAL_SASL_STATE."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def _authenticate(_broker: Broker, _request: Any) -> Message:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_TOO_LATE
    )


SECURITY_HANDLERS: Final[Mapping[int, SecurityHandler]] = {
    17: _handshake,
    29: describe_acls,
    30: create_acls,
    31: delete_acls,
    36: _authenticate,
}
"""By API key."""

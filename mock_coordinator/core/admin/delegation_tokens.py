"""Delegation tokens (keys 38 to 41), as a broker without a secret for them answers (KIP-48).

Who is not authenticated may not even ask (64); everybody else is told that tokens are off (61).
"""

from __future__ import annotations

from typing import Final

from kip848_client.error_codes import ErrorCode
from kip848_client.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenResponse,
)
from mock_coordinator.core.inputs import ClientInfo

__all__ = [
    "create_delegation_token",
    "describe_delegation_tokens",
    "expire_delegation_token",
    "renew_delegation_token",
]

_ANONYMOUS: Final = "User:ANONYMOUS"
_NEVER: Final = -1
_REQUESTER_SINCE: Final = 3


def _refusal(client: ClientInfo) -> ErrorCode:
    if client.principal == _ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def create_delegation_token(
    client: ClientInfo, version: int, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Key 38. The refusal names who asked and for whom."""
    kind, _, name = client.principal.partition(":")
    for_another = bool(request.owner_principal_type and request.owner_principal_name)
    return CreateDelegationTokenResponse(
        error_code=_refusal(client),
        principal_type=(request.owner_principal_type or kind) if for_another else kind,
        principal_name=(request.owner_principal_name or name) if for_another else name,
        token_requester_principal_type=kind if version >= _REQUESTER_SINCE else "",
        token_requester_principal_name=name if version >= _REQUESTER_SINCE else "",
        issue_timestamp_ms=_NEVER,
        expiry_timestamp_ms=_NEVER,
        max_timestamp_ms=_NEVER,
    )


def renew_delegation_token(client: ClientInfo) -> RenewDelegationTokenResponse:
    """Key 39."""
    return RenewDelegationTokenResponse(error_code=_refusal(client), expiry_timestamp_ms=_NEVER)


def expire_delegation_token(client: ClientInfo) -> ExpireDelegationTokenResponse:
    """Key 40."""
    return ExpireDelegationTokenResponse(error_code=_refusal(client), expiry_timestamp_ms=_NEVER)


def describe_delegation_tokens(client: ClientInfo) -> DescribeDelegationTokenResponse:
    """Key 41."""
    return DescribeDelegationTokenResponse(error_code=_refusal(client))

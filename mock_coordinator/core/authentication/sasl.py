"""SASL on the server side: until, and while, a connection is authenticated (KIP-43, KIP-152,
KIP-368).

Theory of operation
===================

A conversation is a state machine in front of the broker. Until a client is authenticated it answers
itself: one ApiVersions request is passed on, then SaslHandshake selects the mechanism, then tokens
are exchanged, in SaslAuthenticate requests (handshake version 1) or as bare frames (version 0). A
request out of order closes the connection: before the handshake without a response, after it with
ILLEGAL_SASL_STATE. A failed authentication is answered with SASL_AUTHENTICATION_FAILED, and then
the connection is closed.

After authentication, requests pass with the principal. If sessions are limited
(``connections.max.reauth.ms``), a later SaslHandshake starts a re-authentication, at most once a
second; it must use the same mechanism and end with the same principal. If the session is over, the
next request that is not such a handshake closes the connection.

The result of a failed authentication, with or without a response, is delayed by
``connection.failed.authentication.delay.ms``, which slows down guessing: ``SaslReaction.fails``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Final, Protocol

from kip848_client.core.assignors import string_set_order
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest
from kip848_client.core.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kip848_client.core.wire.registry import APIS
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.authentication.failures import SaslFailure
from mock_coordinator.core.authentication.plain import PlainExchange
from mock_coordinator.core.authentication.scram import ScramExchange
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.security.scram_store import SCRAM_MECHANISMS, ScramStore

__all__ = ["MECHANISMS", "SaslAccounts", "SaslConversation", "SaslReaction", "SaslRules"]

_SCRAM: Final = {mechanism.name: mechanism for mechanism in SCRAM_MECHANISMS.values()}

MECHANISMS: Final = ("PLAIN", *_SCRAM)
"""Every mechanism that can be enabled."""

_REAUTHENTICATION_BRAKE_MS: Final = 1000
_LIFETIME_SINCE: Final = 1


class _Exchange(Protocol):
    @property
    def user(self) -> str | None: ...

    def answer(self, token: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class SaslAccounts:
    """Who can be authenticated: passwords for PLAIN, stored keys for SCRAM."""

    passwords: Mapping[str, str]
    scram: ScramStore


@dataclass(frozen=True, slots=True)
class SaslRules:
    """``mechanisms`` that the listener enables; ``max_reauth_ms`` is
    ``connections.max.reauth.ms`` (0: sessions are not limited)."""

    mechanisms: tuple[str, ...] = MECHANISMS
    max_reauth_ms: int = 0


@dataclass(frozen=True, slots=True)
class SaslReaction:
    """What to do with what was received: pass it on to the broker, or write an answer (a response
    message, or a bare token), or neither; and then perhaps close the connection. ``fails``: an
    authentication failed, which is answered late."""

    passes: bool = False
    response: Message | None = None
    token: bytes | None = None
    close: str | None = None
    fails: bool = False


_PASS: Final = SaslReaction(passes=True)


class _State(enum.Enum):
    FRESH = "fresh"
    VERSIONS_TOLD = "versions told"
    TOKENS = "tokens"
    BARE_TOKENS = "bare tokens"
    AUTHENTICATED = "authenticated"
    OVER = "over"


class SaslConversation:
    """One connection of a SASL listener. ``new_nonce`` gives fresh printable text (SCRAM).

    ``principal`` is who was authenticated (``User:name``), ``None`` until then.
    """

    def __init__(
        self, rules: SaslRules, accounts: SaslAccounts, new_nonce: Callable[[], str]
    ) -> None:
        self._rules: Final = rules
        self._accounts: Final = accounts
        self._new_nonce: Final = new_nonce
        self._state = _State.FRESH
        self._mechanism = ""
        self._before: str | None = None
        self._exchange: _Exchange | None = None
        self._ends_ms: int | None = None
        self._reauthenticated_ms: int | None = None
        self.principal: str | None = None

    @property
    def wants_bare_token(self) -> bool:
        """Whether the next frame is not a request: hand it to ``token``."""
        return self._state is _State.BARE_TOKENS

    @property
    def is_authenticating(self) -> bool:
        """Whether the next frame belongs to an authentication, the first or a later one."""
        return self._state not in (_State.AUTHENTICATED, _State.OVER)

    # -- what is received --------------------------------------------------------------------------

    def request(self, now_ms: int, received: RequestReceived) -> SaslReaction:
        """React to a request."""
        if self._state is _State.AUTHENTICATED:
            return self._authenticated(now_ms, received)
        if self._state is _State.TOKENS:
            return self._token_request(now_ms, received)
        if self._state is _State.OVER:
            return self._closed("a request after the end of the conversation")
        request = received.request
        if isinstance(request, SaslHandshakeRequest):
            return self._handshake(received.version, request)
        if isinstance(request, ApiVersionsRequest) and self._state is _State.FRESH:
            low, high = APIS[ApiVersionsRequest.API_KEY].versions
            if low <= received.version <= high:  # else the client will ask again (KIP-511)
                self._state = _State.VERSIONS_TOLD
            return _PASS
        return self._closed(f"{_name(request)} before authentication")

    def token(self, now_ms: int, token: bytes) -> SaslReaction:
        """React to a bare token. Failures are not explained: there is no message to do it with."""
        try:
            answer = self._exchanged(now_ms, token)
        except SaslFailure as failure:
            return self._closed(failure.words or "invalid credentials", fails=True)
        return SaslReaction(token=answer)

    # -- authenticating ----------------------------------------------------------------------------

    def _handshake(self, version: int, request: SaslHandshakeRequest) -> SaslReaction:
        enabled = tuple(string_set_order(self._rules.mechanisms))
        if request.mechanism not in enabled:
            self._state = _State.OVER
            return SaslReaction(
                response=SaslHandshakeResponse(
                    error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled
                ),
                close=f"SASL mechanism {request.mechanism!r} is not enabled",
                fails=True,
            )
        self._mechanism = request.mechanism
        self._exchange = self._new_exchange(request.mechanism)
        self._state = _State.BARE_TOKENS if version == 0 else _State.TOKENS
        return SaslReaction(response=SaslHandshakeResponse(mechanisms=enabled))

    def _new_exchange(self, mechanism: str) -> _Exchange:
        if mechanism == "PLAIN":
            return PlainExchange(self._accounts.passwords)
        scram = _SCRAM[mechanism]
        return ScramExchange(
            scram,
            lambda user: self._accounts.scram.get(user, scram.number),
            self._new_nonce,
        )

    def _token_request(self, now_ms: int, received: RequestReceived) -> SaslReaction:
        request = received.request
        if not isinstance(request, SaslAuthenticateRequest):
            self._state = _State.OVER
            return SaslReaction(
                response=_illegal_state(request),
                close=f"{_name(request)} during authentication",
                fails=True,
            )
        if self._before not in (None, self._mechanism):
            return self._closed("re-authentication with another mechanism", fails=True)
        try:
            answer = self._exchanged(now_ms, request.auth_bytes)
        except SaslFailure as failure:
            if failure.silent:
                return self._closed("a proof of the wrong length")
            self._state = _State.OVER
            again = "re-authentication" if self._before else "authentication"
            words = failure.words or (
                f"Authentication failed during {again} due to invalid credentials with SASL "
                f"mechanism {self._mechanism}"
            )
            return SaslReaction(
                response=SaslAuthenticateResponse(
                    error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=words
                ),
                close=words,
                fails=True,
            )
        lifetime_ms = self._rules.max_reauth_ms if self._state is _State.AUTHENTICATED else 0
        return SaslReaction(
            response=SaslAuthenticateResponse(
                error_message="",
                auth_bytes=answer,
                session_lifetime_ms=lifetime_ms if received.version >= _LIFETIME_SINCE else 0,
            )
        )

    def _exchanged(self, now_ms: int, token: bytes) -> bytes:
        """Go on with the exchange; when it is complete the connection is authenticated."""
        exchange = self._exchange
        if exchange is None:
            raise SaslFailure
        answer = exchange.answer(token)
        if exchange.user is None:
            return answer
        principal = f"User:{exchange.user}"
        if self.principal not in (None, principal):
            was, now = (p.replace(":", ".", 1) for p in (str(self.principal), principal))
            raise SaslFailure(
                f"Cannot change principals during re-authentication from {was}: {now}"
            )
        self.principal, self._before = principal, self._mechanism
        self._state = _State.AUTHENTICATED
        if self._rules.max_reauth_ms:
            self._ends_ms = now_ms + self._rules.max_reauth_ms
        return answer

    # -- authenticated -----------------------------------------------------------------------------

    def _authenticated(self, now_ms: int, received: RequestReceived) -> SaslReaction:
        if self._ends_ms is None:
            return _PASS
        request = received.request
        if isinstance(request, SaslHandshakeRequest) and self._may_reauthenticate(now_ms):
            if request.mechanism not in self._rules.mechanisms:
                return self._closed(f"re-authentication with {request.mechanism!r}")
            self._reauthenticated_ms = now_ms
            return self._handshake(received.version, request)
        if now_ms >= self._ends_ms:
            return self._closed("the session is over and was not renewed")
        return _PASS

    def _may_reauthenticate(self, now_ms: int) -> bool:
        latest = self._reauthenticated_ms
        return latest is None or now_ms - latest >= _REAUTHENTICATION_BRAKE_MS

    def _closed(self, why: str, *, fails: bool = False) -> SaslReaction:
        self._state = _State.OVER
        return SaslReaction(close=why, fails=fails)


def _name(request: Message) -> str:
    return APIS[type(request).API_KEY].name


def _illegal_state(request: Message) -> Message:
    """The response of a request's API that says ILLEGAL_SASL_STATE, where it has a field to say
    so."""
    response = APIS[type(request).API_KEY].response
    if any(field.name == "error_code" for field in fields(response)):
        made: Message = response(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    else:
        made = response()
    return made

"""Decides about a frame: which principal sent it, and whether it is for the broker or for SASL.

A plain listener passes every request on. A SASL listener gives it to the connection's
``SaslConversation`` first, which may answer itself. The principal of a TLS client is the subject of
its certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from kip848_client.core.wire import APIS, write_response
from kip848_client.core.wire._fields import Message
from mock_coordinator.connection.requests import read_received
from mock_coordinator.core.authentication.distinguished_names import principal_of
from mock_coordinator.core.authentication.sasl import (
    SaslAccounts,
    SaslConversation,
    SaslReaction,
    SaslRules,
)
from mock_coordinator.core.inputs import ClientInfo, RequestReceived

__all__ = ["AuthenticatorFactory", "ConnectionAuthenticator", "FrameOutcome"]

_LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class FrameOutcome:
    """What a frame comes to that is not for the broker: an answer to write, or none; and why the
    connection is closed after that, or ``None``. ``is_told_late``: an authentication failed, and
    the client gets the response only after ``connection.failed.authentication.delay.ms``."""

    answer: bytes | None = None
    close: str | None = None
    is_told_late: bool = False


class ConnectionAuthenticator:
    """One connection's. ``client`` is what is known of the client beforehand."""

    __slots__ = ("_client", "_conversation", "is_authenticating")

    def __init__(self, client: ClientInfo, conversation: SaslConversation | None = None) -> None:
        self._client = client
        self._conversation: Final = conversation
        self.is_authenticating = conversation is not None
        """Whether the next frame belongs to an authentication: then it must not be long, and the
        client hears late that it was too long."""

    def take(self, now_ms: int, connection: int, payload: bytes) -> RequestReceived | FrameOutcome:
        """A request for the broker, or what else the frame comes to.

        Raises ``WireError`` when the frame cannot be read and the connection has to be closed.
        """
        talk = self._conversation
        if talk is not None:
            return self._converse(talk, now_ms, connection, payload)
        received = read_received(connection, self._client, payload)
        self._client = received.client  # its client id is the next request's as well, most likely
        return received

    def _converse(
        self, talk: SaslConversation, now_ms: int, connection: int, payload: bytes
    ) -> RequestReceived | FrameOutcome:
        received: RequestReceived | None = None
        if talk.wants_bare_token:
            reaction = talk.token(now_ms, payload)
        else:
            received = read_received(connection, self._client, payload)
            reaction = talk.request(now_ms, received)
        self.is_authenticating = talk.is_authenticating
        if received is None or not reaction.passes:
            return _outcome(reaction, received)
        if talk.principal is not None and talk.principal != received.client.principal:
            client = replace(received.client, principal=talk.principal)
            received = replace(received, client=client)
        self._client = received.client
        return received


def _outcome(reaction: SaslReaction, received: RequestReceived | None) -> FrameOutcome:
    answer = None
    if reaction.token is not None:
        answer = len(reaction.token).to_bytes(_LENGTH_BYTES, "big") + reaction.token
    elif reaction.response is not None and received is not None:
        answer = _frame(reaction.response, received)
    return FrameOutcome(answer, reaction.close, reaction.fails)


def _frame(response: Message, received: RequestReceived) -> bytes:
    api = APIS[type(received.request).API_KEY]
    return write_response(response, api, received.version, received.correlation)


@dataclass(frozen=True, slots=True)
class AuthenticatorFactory:
    """Makes the authenticators of one listener, ``None`` being the plain one that every broker has.

    With ``rules``, ``accounts`` and ``new_nonce`` (fresh printable text) it is a SASL listener.
    """

    listener: str | None = None
    rules: SaslRules | None = None
    accounts: SaslAccounts | None = None
    new_nonce: Callable[[], str] | None = None

    def for_client(self, host: str, certificate: Any = None) -> ConnectionAuthenticator:
        """The authenticator of a client at an address, with the certificate that it has shown (as
        of ``ssl.SSLSocket.getpeercert``)."""
        subject = certificate.get("subject") if certificate else None
        principal = principal_of(subject)
        client = ClientInfo(None, f"/{host}", principal, listener=self.listener)
        if self.rules is None or self.accounts is None or self.new_nonce is None:
            return ConnectionAuthenticator(client)
        talk = SaslConversation(self.rules, self.accounts, self.new_nonce)
        return ConnectionAuthenticator(client, talk)

"""Where a connection's frames come in: who the client is, and what it may say before it is known.

A plain listener lets everything pass. A SASL listener asks the connection's ``SaslConversation``
first, which may answer itself. The principal of a TLS client is the subject of its certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import anyio.abc
from anyio.streams.tls import TLSAttribute

from kip848_client.wire import APIS, write_response
from kip848_client.wire._fields import Message
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.security.distinguished_names import principal_of
from mock_coordinator.core.security.sasl import (
    SaslAccounts,
    SaslConversation,
    SaslReaction,
    SaslRules,
)
from mock_coordinator.requests import read_received
from mock_coordinator.security.options import ListenerOptions

__all__ = ["Door", "DoorMaker", "Entry"]

_LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of a frame: a request for the broker, a frame to answer with, or neither; and
    perhaps why the connection has to be closed after that. ``fails``: all that is to be done only
    after ``connection.failed.authentication.delay.ms``."""

    received: RequestReceived | None = None
    frame: bytes | None = None
    close: str | None = None
    fails: bool = False


class Door:
    """One connection's. ``client`` is what is known of the client beforehand."""

    def __init__(self, client: ClientInfo, conversation: SaslConversation | None = None) -> None:
        self._client = client
        self._conversation: Final = conversation

    @property
    def is_authenticating(self) -> bool:
        """Whether the next frame belongs to an authentication: then it must not be long, and what
        comes of it is told late when it is too long all the same."""
        return self._conversation is not None and self._conversation.is_authenticating

    def enter(self, now_ms: int, connection: int, payload: bytes) -> Entry:
        """Take one frame. Raises ``WireError`` when the connection has to be closed."""
        talk = self._conversation
        if talk is None:
            return Entry(read_received(connection, self._client, payload))
        if talk.wants_bare_token:
            return self._answered(talk.token(now_ms, payload), None)
        received = read_received(connection, self._client, payload)
        reaction = talk.request(now_ms, received)
        if not reaction.passes:
            return self._answered(reaction, received)
        if talk.principal is not None and talk.principal != self._client.principal:
            self._client = replace(self._client, principal=talk.principal)
            client = replace(received.client, principal=talk.principal)
            received = replace(received, client=client)
        return Entry(received)

    def _answered(self, reaction: SaslReaction, received: RequestReceived | None) -> Entry:
        frame = None
        if reaction.token is not None:
            frame = len(reaction.token).to_bytes(_LENGTH_BYTES, "big") + reaction.token
        elif reaction.response is not None and received is not None:
            frame = _frame(reaction.response, received)
        return Entry(None, frame, reaction.close, reaction.fails)


def _frame(response: Message, received: RequestReceived) -> bytes:
    api = APIS[type(received.request).API_KEY]
    return write_response(response, api, received.version, received.correlation)


class DoorMaker:
    """Makes the doors of one listener; ``None`` for the plain one that every broker has."""

    def __init__(
        self,
        options: ListenerOptions | None = None,
        rules: SaslRules | None = None,
        accounts: SaslAccounts | None = None,
        new_nonce: Callable[[], str] | None = None,
    ) -> None:
        self._options: Final = options
        self._rules: Final = rules
        self._accounts: Final = accounts
        self._new_nonce: Final = new_nonce

    @property
    def options(self) -> ListenerOptions | None:
        """The listener's options."""
        return self._options

    def door(self, stream: anyio.abc.ByteStream, host: str) -> Door:
        """The door of a connection that was just accepted from an address."""
        if self._options is None:
            return Door(ClientInfo(None, f"/{host}"))
        certificate = stream.extra(TLSAttribute.peer_certificate, None)
        subject = certificate.get("subject") if certificate else None
        client = ClientInfo(
            None,
            f"/{host}",
            # the types of a certificate's parts are wider than those of its subject
            principal_of(subject),  # type: ignore[arg-type]  # a tuple of tuples of pairs of text
            listener=self._options.name,
        )
        if self._rules is None or self._accounts is None or self._new_nonce is None:
            return Door(client)
        return Door(client, SaslConversation(self._rules, self._accounts, self._new_nonce))

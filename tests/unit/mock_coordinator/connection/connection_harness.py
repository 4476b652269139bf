"""A connection's core between a client and a broker that are played by a test."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable

from kip848_client.core.wire import APIS, Framer, write_request
from kip848_client.core.wire._fields import Message
from mock_coordinator.connection import (
    Action,
    AuthenticatorFactory,
    Close,
    ConnectionAuthenticator,
    ConnectionCore,
    ConnectionSettings,
    Signal,
    Submit,
    Write,
)
from mock_coordinator.core.authentication.sasl import SaslAccounts, SaslRules
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.security.scram_store import ScramStore
from mock_coordinator.security import SecurityOptions
from tests.support.plain_message import message

__all__ = ["SASL", "ConnectionHarness", "metadata", "reply_to", "request", "token"]

_PASSWORDS = {"alice": "open sesame"}
_STORE = ScramStore()
SecurityOptions(users=_PASSWORDS).put_scram_credentials(_STORE, lambda: b"salt")

PLAIN = AuthenticatorFactory()
SASL = AuthenticatorFactory(
    "SASL", SaslRules(), SaslAccounts(_PASSWORDS, _STORE), lambda: "a-nonce"
)


def request(name: str, version: int, correlation: int = 1, **fields: object) -> bytes:
    """The frame of a request."""
    return write_request(message(name, **fields), version, correlation, "test")


def metadata(correlation: int = 1) -> bytes:
    """The frame of a request that any broker answers."""
    return request("Metadata", 12, correlation, topics=None)


def token(text: bytes, version: int = 2) -> bytes:
    """The frame of a request with a token."""
    return request("SaslAuthenticate", version, auth_bytes=text)


def reply_to(received: RequestReceived, response: Message | None = None) -> Reply:
    """An answer to a request."""
    key = type(received.request).API_KEY
    found = APIS[key].response() if response is None else response
    return Reply(received.connection, received.correlation, received.version, found, key)


class ConnectionHarness:
    """Performs what the core wants, as its driver has to, and looks at what it wants.

    ``is_prompt``: the broker answers at once. ``is_greedy``: the client takes at once what is
    written. Otherwise ``answer`` and ``take`` do it.
    """

    def __init__(
        self,
        settings: ConnectionSettings | None = None,
        factory: AuthenticatorFactory = PLAIN,
        *,
        is_tls: bool = False,
        is_prompt: bool = True,
        is_greedy: bool = True,
    ) -> None:
        self.now_ms = 1_000_000
        self.authenticator: ConnectionAuthenticator = factory.for_client("10.0.0.1")
        self.core = ConnectionCore(
            self.now_ms,
            7,
            settings or ConnectionSettings(),
            None if is_tls else self.authenticator,
        )
        self.is_prompt = is_prompt
        self.is_greedy = is_greedy
        self.submitted: list[RequestReceived] = []
        self.in_hand: deque[RequestReceived] = deque()
        self.written = bytearray()
        self.reads = True
        self.has_turn = False
        self.is_writing = False
        self.closed: Close | None = None
        self._timer_ms = self.core.deadline_ms

    @property
    def correlations(self) -> list[int]:
        """Of the answers that were written. What answers a bare token (after SaslHandshake v0) has
        none, and may be empty."""
        frames = Framer().feed(self.written)
        return [struct.unpack_from(">i", payload)[0] for payload in frames if len(payload) >= 4]

    def perform(self, actions: Iterable[Action]) -> None:
        """Do what the core wants."""
        for action in actions:
            assert self.closed is None, f"{action} after the end"
            if isinstance(action, Submit):
                assert not self.in_hand, "a request before the last one was answered"
                self.submitted.append(action.received)
                self.in_hand.append(action.received)
                if self.is_prompt:
                    self.answer()
            elif isinstance(action, Write):
                assert not self.is_writing, "an answer before the last one was taken"
                self.written += action.data
                self.is_writing = True
                if self.is_greedy:
                    self.take()
            elif isinstance(action, Close):
                self.closed = action
            else:
                self._heed(action)
        assert self.reads or not self.core.is_reading, "it waits for what is not read"

    def _heed(self, signal: Signal) -> None:
        if signal is Signal.SET_TIMER:
            self._timer_ms = self.core.deadline_ms
        elif signal is Signal.NEXT_TURN:
            assert not self.has_turn
            self.has_turn = True
        else:
            assert self.reads is (signal is Signal.PAUSE)
            self.reads = signal is Signal.RESUME

    def feed(self, data: bytes) -> None:
        """The client says this."""
        self.perform(self.core.receive(self.now_ms, data))

    def end(self) -> None:
        """The client says nothing more."""
        self.perform(self.core.ended())

    def answer(self, response: Message | None = None) -> None:
        """The broker answers what it has, if it has anything."""
        if self.in_hand:
            reply = reply_to(self.in_hand.popleft(), response)
            self.perform(self.core.answered(self.now_ms, reply))

    def take(self) -> None:
        """The client takes what is written, if anything is."""
        if self.is_writing:
            self.is_writing = False
            self.perform(self.core.taken(self.now_ms))

    def turn(self) -> None:
        """The next round of the event loop has come."""
        if self.has_turn:
            self.has_turn = False
            self.perform(self.core.proceed(self.now_ms))

    def turns(self) -> int:
        """As many rounds as there is something to do; returns how many."""
        count = 0
        while self.has_turn:
            self.turn()
            count += 1
        return count

    def advance(self, by_ms: int) -> None:
        """Time passes. The timer is set as a driver has to set it, and no deadline is missed."""
        end_ms = self.now_ms + by_ms
        while self._timer_ms is not None and self._timer_ms <= end_ms:
            self.now_ms = max(self.now_ms, self._timer_ms)
            self.perform(self.core.tick(self.now_ms))
            self._timer_ms = self.core.deadline_ms
            assert self._timer_ms is None or self._timer_ms > self.now_ms, "a deadline has passed"
        self.now_ms = end_ms
        deadline_ms = self.core.deadline_ms
        assert deadline_ms is None or deadline_ms > end_ms, "a deadline is not met"

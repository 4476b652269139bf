"""Conversations with a broker's listeners, right and wrong ones, to be held with any broker.

A dialogue is a function of a ``Line``; what the line notes is what two brokers are compared by.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any, Final

from tests.support.plain_message import message
from tests.support.security.play import plain
from tests.support.security.scram_client import ScramClient
from tests.support.security.sides import PASSWORD, SecureSide
from tests.support.wire_connection import ConnectionLostError

__all__ = ["DIALOGUES", "USERS", "hold"]

USERS: Final = ("alice", "bob")
_SESSION_S: Final = 2.2
_BRAKE_S: Final = 1.1


class Line:
    """One connection to a listener, and everything that was heard on it."""

    def __init__(self, side: SecureSide, listener: str) -> None:
        self._connection = side.connect(listener, timeout_s=10)
        self.heard: list[Any] = []

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        """Send a request and note the answer, as data, or that the connection was closed."""
        try:
            answer = self._connection.request(message(api, **fields), version)
        except (ConnectionLostError, OSError):
            answer = None
        brief = getattr(answer, "error_code", "answered") if api == "ApiVersions" else plain(answer)
        self.heard.append((api, brief))
        return answer

    def frame(self, payload: bytes) -> None:
        """Send a frame of whatever is in it, and note the frame that comes back."""
        try:
            self._connection._socket.sendall(struct.pack(">i", len(payload)) + payload)
            self.heard.append(("frame", self._connection.receive_frame()))
        except (ConnectionLostError, OSError):
            self.heard.append(("frame", None))

    def versions(self, *, name: str = "tests") -> None:
        self.ask("ApiVersions", 3, client_software_name=name, client_software_version="1")

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask("SaslHandshake", version, mechanism=mechanism)

    def token(self, token: bytes, version: int = 2) -> Any:
        return self.ask("SaslAuthenticate", version, auth_bytes=token)

    def metadata(self) -> None:
        self.ask("Metadata", 12, topics=())

    def close(self) -> None:
        self._connection.close()


def _plain(user: str, password: str | None = None) -> bytes:
    return f"\0{user}\0{PASSWORD.format(user) if password is None else password}".encode()


def _login(line: Line, user: str = "alice") -> None:
    line.handshake()
    line.token(_plain(user))


def _before_the_handshake(line: Line) -> None:
    line.metadata()


def _versions_twice(line: Line) -> None:
    line.versions()
    line.versions()


def _versions_of_a_nameless_client(line: Line) -> None:
    line.versions(name="")
    line.handshake()


def _versions_of_the_future(line: Line) -> None:
    line.frame(struct.pack(">hhih", 18, 99, 7, -1) + b"\0")
    line.versions()
    line.handshake()


def _unknown_mechanism(line: Line) -> None:
    line.handshake("GSSAPI")
    line.handshake()


def _token_before_the_handshake(line: Line) -> None:
    line.token(_plain("alice"))


def _metadata_instead_of_a_token(line: Line) -> None:
    line.handshake()
    line.metadata()
    line.metadata()


def _second_handshake(line: Line) -> None:
    line.handshake()
    line.handshake()
    line.metadata()


def _versions_instead_of_a_token(line: Line) -> None:
    line.handshake()
    line.versions()


def _list_groups_instead_of_a_token(line: Line) -> None:
    line.handshake()
    line.ask("ListGroups", 4)


def _after_authentication(line: Line) -> None:
    _login(line)
    line.token(_plain("alice"))
    line.handshake()
    line.handshake("GSSAPI", 0)
    line.versions()
    line.metadata()


def _old_tokens(line: Line) -> None:
    line.handshake(version=0)
    line.frame(_plain("alice"))
    line.metadata()


def _wrong_old_token(line: Line) -> None:
    line.handshake(version=0)
    line.frame(_plain("alice", "wrong"))


def _token_at_once(line: Line) -> None:
    line.frame(_plain("alice"))


def _plain_token(token: bytes, version: int = 2) -> Callable[[Line], None]:
    def dialogue(line: Line) -> None:
        line.handshake()
        line.token(token, version)
        line.metadata()

    return dialogue


def _scram(
    mechanism: str, hash_name: str, user: str, password: str, **mistake: str
) -> Callable[[Line], None]:
    def dialogue(line: Line) -> None:
        line.handshake(mechanism)
        client = ScramClient(user, password, hash_name)
        first = line.token(client.first())
        if first is None or first.error_code:
            return
        line.heard.pop()  # the nonce is fresh
        line.heard.append(first.auth_bytes.rpartition(b",i=")[2])
        final = client.final(first.auth_bytes, **mistake)
        answer = line.token(final)
        if answer is not None and not answer.error_code:
            line.heard.pop()
            signed = client.server_signature(first.auth_bytes, final)
            line.heard.append(("the server proved itself", answer.auth_bytes == signed))
        line.metadata()

    return dialogue


def _scram_first(first: bytes) -> Callable[[Line], None]:
    def dialogue(line: Line) -> None:
        line.handshake("SCRAM-SHA-256")
        answer = line.token(first)
        if answer is not None and not answer.error_code:
            line.heard[-1] = "a challenge"

    return dialogue


def _renewed_session(line: Line) -> None:
    _login(line)
    time.sleep(_BRAKE_S)
    _login(line)
    line.handshake()  # too soon after the last one
    time.sleep(_BRAKE_S)
    line.metadata()


def _late_renewal(line: Line) -> None:
    _login(line)
    time.sleep(_SESSION_S)
    _login(line)
    line.metadata()


def _expired_session(line: Line) -> None:
    _login(line)
    time.sleep(_SESSION_S)
    line.metadata()


def _expired_session_of_old_client(line: Line) -> None:
    line.handshake()
    line.token(_plain("alice"), 0)
    time.sleep(_SESSION_S)
    line.metadata()


def _renewal_by_another(line: Line) -> None:
    _login(line)
    line.handshake()
    line.token(_plain("bob"))
    line.metadata()


def _renewal_with_another_mechanism(line: Line) -> None:
    _login(line)
    line.handshake("SCRAM-SHA-256")
    line.token(b"n,,n=alice,r=abc")


def _renewal_with_an_unknown_mechanism(line: Line) -> None:
    _login(line)
    line.handshake("GSSAPI")


def _renewal_with_a_wrong_password(line: Line) -> None:
    _login(line)
    line.handshake()
    line.token(_plain("alice", "wrong"))
    line.metadata()


def _renewal_interrupted(line: Line) -> None:
    _login(line)
    line.handshake()
    line.ask("ListGroups", 4)


_SECRET: Final = PASSWORD.format("alice")

DIALOGUES: Final[tuple[tuple[str, str, Callable[[Line], None]], ...]] = (
    ("SASL", "metadata before the handshake", _before_the_handshake),
    ("SASL", "versions twice", _versions_twice),
    ("SASL", "versions of a nameless client", _versions_of_a_nameless_client),
    ("SASL", "versions of the future", _versions_of_the_future),
    ("SASL", "unknown mechanism", _unknown_mechanism),
    ("SASL", "token before the handshake", _token_before_the_handshake),
    ("SASL", "metadata instead of a token", _metadata_instead_of_a_token),
    ("SASL", "second handshake", _second_handshake),
    ("SASL", "versions instead of a token", _versions_instead_of_a_token),
    ("SASL", "list groups instead of a token", _list_groups_instead_of_a_token),
    ("SASL", "after authentication", _after_authentication),
    ("SASL", "old tokens", _old_tokens),
    ("SASL", "wrong old token", _wrong_old_token),
    ("SASL", "token at once", _token_at_once),
    *(
        ("SASL", f"plain token {token!r}", _plain_token(token))
        for token in (
            _plain("alice"),
            _plain("alice", "wrong"),
            _plain("nobody"),
            b"alice\0secret",
            b"\0\0secret",
            b"\0alice\0",
            b"bob" + _plain("alice"),
            b"alice" + _plain("alice"),
            b"bob" + _plain("alice", "wrong"),
            b"",
            _plain("alice") + b"\0more",
            b"\0\xff\0secret",
        )
    ),
    ("SASL", "plain token in version 0", _plain_token(_plain("alice"), 0)),
    ("SASL", "wrong plain token in version 0", _plain_token(_plain("alice", "wrong"), 0)),
    ("SASL", "scram 256", _scram("SCRAM-SHA-256", "sha256", "alice", _SECRET)),
    ("SASL", "scram 512", _scram("SCRAM-SHA-512", "sha512", "alice", _SECRET)),
    ("SASL", "scram wrong password", _scram("SCRAM-SHA-256", "sha256", "alice", "wrong")),
    ("SASL", "scram unknown user", _scram("SCRAM-SHA-256", "sha256", "nobody", "x")),
    (
        "SASL",
        "scram wrong nonce",
        _scram("SCRAM-SHA-256", "sha256", "alice", _SECRET, nonce_suffix="x"),
    ),
    (
        "SASL",
        "scram proof of nothing",
        _scram("SCRAM-SHA-256", "sha256", "alice", _SECRET, proof="AAAA"),
    ),
    *(
        ("SASL", f"scram first {first!r}", _scram_first(first))
        for first in (
            b"hello",
            b"",
            b"n,a=bob,n=alice,r=abc",
            b"n,a=alice,n=alice,r=abc",
            b"y,,n=alice,r=abc",
            b"p=tls-unique,,n=alice,r=abc",
            b"n,,n=alice,r=abc,tokenauth=true",
            b"n,,n=alice,r=",
            b"n,,n=,r=abc",
        )
    ),
    ("SHORT", "renewed session", _renewed_session),
    ("SHORT", "late renewal", _late_renewal),
    ("SHORT", "expired session", _expired_session),
    ("SHORT", "expired session of an old client", _expired_session_of_old_client),
    ("SHORT", "renewal by another", _renewal_by_another),
    ("SHORT", "renewal with another mechanism", _renewal_with_another_mechanism),
    ("SHORT", "renewal with an unknown mechanism", _renewal_with_an_unknown_mechanism),
    ("SHORT", "renewal with a wrong password", _renewal_with_a_wrong_password),
    ("SHORT", "renewal interrupted", _renewal_interrupted),
    ("PLAINTEXT", "sasl on a plain listener", _after_authentication),
)
"""(listener, name, conversation)."""


def hold(side: SecureSide, listener: str, dialogue: Callable[[Line], None]) -> list[Any]:
    """Hold one conversation; returns what was heard."""
    line = Line(side, listener)
    try:
        dialogue(line)
    finally:
        line.close()
    return line.heard

"""What a broker does about too many connections and too long frames, to be asked of any broker.

Each of ``PARTS`` is a picture of it in plain data, that two brokers are compared by. Set
``LIMITS`` at its start.
"""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from tests.support.plain_message import message
from tests.support.security.sides import PASSWORD, SecureSide
from tests.support.wire_connection import ConnectionLostError, WireConnection

__all__ = ["LIMITS", "PARTS", "USERS"]

USERS: Final = ("alice", "bob")
_LATE_S: Final = 0.7
LIMITS: Final = {
    "socket.request.max.bytes": "1000000",
    "connection.failed.authentication.delay.ms": str(round(_LATE_S * 1000)),
    "num.network.threads": "1",
}
"""With several threads a listener that has one connection too many loses up to one a thread: each
looks for itself."""
_SASL_BYTES: Final = 524_288
_UNSERVED_S: Final = 1.0
_SETTLED_S: Final = 0.5


# --- Sizes ----------------------------------------------------------------------------------------


def _frames(side: SecureSide) -> list[Any]:
    sizes = (-1, -(2**31), 0, _SASL_BYTES, _SASL_BYTES + 1, 1_000_000, 1_000_001, 2**31 - 1)
    asked = [(listener, size) for listener in ("PLAINTEXT", "SASL") for size in sizes]

    def after(which: tuple[str, int]) -> Any:
        listener, size = which
        return listener, size, _after(side, listener, struct.pack(">i", size) + bytes(20))

    with ThreadPoolExecutor(len(asked)) as together:  # most of them wait
        return list(together.map(after, asked))


def _after(side: SecureSide, listener: str, data: bytes) -> str:
    """What became of a connection after these bytes."""
    with contextlib.closing(side.connect(listener, timeout_s=_UNSERVED_S + _LATE_S)) as line:
        began = time.monotonic()
        line._socket.sendall(data)
        try:
            line.receive_frame()
        except ConnectionLostError as err:
            return "open" if "in time" in str(err) else _when(began)
        return "answered"


def _when(began: float) -> str:
    return "closed late" if time.monotonic() - began >= _LATE_S else "closed at once"


def _tokens(side: SecureSide) -> list[Any]:
    found: list[Any] = []
    for size in (_SASL_BYTES - 100, _SASL_BYTES + 1):
        with contextlib.closing(side.connect("SASL")) as line:
            line.request(message("SaslHandshake", mechanism="PLAIN"), 1)
            token = b"\0alice\0" + b"x" * size
            found.append(_code(line, message("SaslAuthenticate", auth_bytes=token), 2))
    user = side.login("alice")
    topics = [{"name": "x" * 200} for _ in range(4000)]
    long = user.request(message("Metadata", topics=topics), 9)
    found.append("closed" if long is None else "served")
    user.close()
    return found


# --- Failures that are told late ------------------------------------------------------------------


def _code(line: WireConnection, request: Any, version: int) -> Any:
    try:
        return line.request(request, version).error_code
    except (ConnectionLostError, OSError):
        return None


def _plain(user: str, password: str | None = None) -> bytes:
    return f"\0{user}\0{PASSWORD.format(user) if password is None else password}".encode()


def _handshake(mechanism: str = "PLAIN") -> tuple[Any, int]:
    return message("SaslHandshake", mechanism=mechanism), 1


def _token(token: bytes) -> tuple[Any, int]:
    return message("SaslAuthenticate", auth_bytes=token), 2


_LOGIN: Final = (_handshake(), _token(_plain("alice")))
_FAILURES: Final[dict[str, tuple[str, list[tuple[Any, int]]]]] = {
    "wrong password": ("SASL", [_handshake(), _token(_plain("alice", "no"))]),
    "garbage token": ("SASL", [_handshake(), _token(b"garbage")]),
    "unknown to scram": ("SASL", [_handshake("SCRAM-SHA-256"), _token(b"n,,n=nobody,r=abc")]),
    "wrong mechanism": ("SASL", [_handshake("X")]),
    "request before the handshake": ("SASL", [(message("Heartbeat", group_id="g"), 4)]),
    "request behind it": ("SASL", [_handshake(), (message("Heartbeat", group_id="g"), 4)]),
    "second handshake": ("SASL", [_handshake(), _handshake()]),
    "later, wrong password": ("SHORT", [*_LOGIN, _handshake(), _token(_plain("alice", "no"))]),
    "later, somebody else": ("SHORT", [*_LOGIN, _handshake(), _token(_plain("bob"))]),
    "later, no mechanism": ("SHORT", [*_LOGIN, _handshake("X")]),
    "later, another one": (
        "SHORT",
        [*_LOGIN, _handshake("SCRAM-SHA-256"), _token(b"n,,n=alice,r=abc")],
    ),
    "later, too long": ("SHORT", [*_LOGIN, _handshake(), _token(bytes(600_000))]),
}


def _late(side: SecureSide, listener: str, requests: list[tuple[Any, int]]) -> Any:
    """The codes of the answers, and when the last one came or did not."""
    with contextlib.closing(side.connect(listener, timeout_s=10)) as line:
        codes = [_code(line, *request) for request in requests[:-1]]
        began = time.monotonic()
        codes.append(_code(line, *requests[-1]))
        with contextlib.suppress(ConnectionLostError):
            line.receive_frame()
        return codes, _when(began)


def _all_late(side: SecureSide) -> dict[str, Any]:
    with ThreadPoolExecutor(len(_FAILURES)) as together:  # all of them wait
        found = together.map(lambda asked: _late(side, *asked), _FAILURES.values())
        return dict(zip(_FAILURES, found, strict=True))


# --- Numbers --------------------------------------------------------------------------------------


@contextlib.contextmanager
def _limited(side: SecureSide, name: str, limit: int) -> Generator[None]:
    """The setting is this at runtime; the connection that sets it counts."""
    with contextlib.closing(side.connect()) as admin:
        for operation, value in ((0, str(limit)), (1, None)):
            config = {"name": name, "config_operation": operation, "value": value}
            resource = {"resource_type": 4, "resource_name": "1", "configs": [config]}
            request = message("IncrementalAlterConfigs", resources=[resource])
            assert admin.request(request, 1).responses[0].error_code == 0
            time.sleep(_SETTLED_S)  # a broker tells nobody when it has read the setting
            if operation == 0:
                yield


def _is_served(line: WireConnection) -> str:
    asked = message("ApiVersions", client_software_name="x", client_software_version="1")
    try:
        line.request(asked, 3)
    except ConnectionLostError as err:
        return "waits" if "in time" in str(err) else "closed"
    except OSError:
        return "closed"
    return "served"


class _Lines:
    """Connections that are opened one after the other."""

    def __init__(self, side: SecureSide) -> None:
        self._open: Callable[[str], WireConnection] = lambda listener: side.connect(
            listener, timeout_s=_UNSERVED_S
        )
        self.lines: list[WireConnection] = []

    def add(self, listener: str) -> str:
        """One more; what it is told."""
        self.lines.append(self._open(listener))
        return _is_served(self.lines[-1])

    def states(self) -> list[str]:
        """Of each, without asking again: open, closed, or an answer has come at last."""
        time.sleep(_SETTLED_S)
        return sorted(self._state(line) for line in self.lines)

    def _state(self, line: WireConnection) -> str:
        if not line.has_answer(0.05):
            return "open"
        try:
            return "answered" if line._socket.recv(1) else "closed"
        except OSError:
            return "closed"

    def close(self, count: int | None = None) -> None:
        for line in self.lines[:count]:
            line.close()
        del self.lines[:count]
        time.sleep(_SETTLED_S)  # until the broker has seen it


def _per_address(side: SecureSide) -> list[str]:
    with _limited(side, "max.connections.per.ip", 8):
        lines = _Lines(side)
        found = [lines.add(name) for _ in range(5) for name in ("PLAINTEXT", "SASL")]
        lines.close()
    return found


def _in_all(side: SecureSide) -> list[Any]:
    """The plain listener is the one of the brokers: there is always room on it."""
    found: list[Any] = []
    with _limited(side, "max.connections", 8):
        guarded, plain = _Lines(side), _Lines(side)
        found.append([guarded.add("SASL") for _ in range(9)])
        found.append([(plain.add("PLAINTEXT"), guarded.states()) for _ in range(3)])
        plain.close()
        found.append(guarded.states())
        guarded.close()
    return found


PARTS: Final[dict[str, Callable[[SecureSide], Any]]] = {
    "frames": _frames,
    "tokens": _tokens,
    "late": _all_late,
    "of one address": _per_address,
    "in all": _in_all,
}

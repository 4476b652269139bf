"""aiokafka's connection, replaced before its authentication expires (KIP-368).

A broker may limit the lifetime of a SASL session (``connections.max.reauth.ms``); the limit is in
its answer to the login. It closes the connection on the first request after that, and the request
is lost. So such a connection ``is_due`` a little earlier, and its next user closes it and opens
another one. (Kafka's Java client reauthenticates on the same connection. aiokafka cannot: requests
could come in between, and brokers allow that at most once a second.)
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import weakref
from collections.abc import Awaitable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import IllegalSaslStateError, UnsupportedSaslMechanismError
from aiokafka.protocol.admin import SaslAuthenticateRequest, SaslHandShakeRequest

from kip848_client.core.ports import ConnectionWatch
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, broker_error
from kip848_client.runtime.net._frames import FrameProtocol
from kip848_client.runtime.random import CHANCE

__all__ = ["Connection", "ConnectionOptions"]

_log = logging.getLogger("kip848_client")

_logs_in: ContextVar[bool] = ContextVar("kip848_client_logs_in", default=False)
"""Whether a connection of this client logs in, not one of aiokafka's own clients."""

_open: Final[weakref.WeakSet[Connection]] = weakref.WeakSet()


class _Gone:
    """The transport of a connection that belongs to another process."""

    def is_closing(self) -> bool:
        return True


def _leave_to_parent() -> None:
    """Drop inherited connections in a forked child. Closing one here, even by garbage collection,
    would remove its socket from the parent's selector and end its TLS session."""
    for connection in list(_open):
        connection.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)

_LOGINS: Final = ("SaslAuthenticateRequest_v0", "SaslAuthenticateRequest_v1")
"""Requests that contain a password or a token."""
_DUE_AFTER: Final = (0.85, 0.95)
"""Range of fractions of the session's lifetime, as in Kafka's Java client; random, so that
connections do not expire together."""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How to connect to any broker of the cluster; the names are aiokafka's."""

    client_id: str
    request_timeout_ms: int
    connections_max_idle_ms: int | None = 540_000
    security: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """``security_protocol``, ``ssl_context`` and ``sasl_*``, secrets wrapped."""
    meter: ConnectionWatch | None = None
    """The meter of connections, if metrics are on."""


class Connection(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka has no types
    """See the module."""

    _security_protocol: str
    _reader: Any
    _writer: Any

    def __init__(self, host: str, port: int, **options: Any) -> None:
        super().__init__(host, port, **options)
        self._due_at_s = math.inf
        self._mechanisms: tuple[str, ...] = ()

    async def connect(self) -> Any:
        """As aiokafka's, login included; from then on frames come through ``FrameProtocol``."""
        _open.add(self)
        reader, writer = await super().connect()
        myself = weakref.ref(self)  # so that a leaked connection can be collected

        def received(frame: bytes) -> bool:
            connection = myself()
            if connection is None or connection._reader is None:
                return False
            connection._handle_frame(frame)
            return True

        transport = writer.transport
        theirs: Any = transport.get_protocol()
        transport.set_protocol(FrameProtocol(theirs, reader, received, self._loop.call_soon))
        return reader, writer

    def leave_to_parent(self) -> None:
        """Drop the socket without closing it: this is a forked child."""
        writer: Any = self._writer
        self._writer = self._reader = None
        if writer is not None:  # a measured connection wraps aiokafka's
            getattr(writer, "_writer", writer)._transport = _Gone()

    @property
    def is_due(self) -> bool:
        """Whether the login is about to end: send nothing more here."""
        return bool(self._loop.time() >= self._due_at_s)

    async def answered(self, timeout_s: float) -> None:
        """Wait until all requests are answered or abandoned, or the timeout has passed."""
        pending = [answer for _, _, answer in self._requests if not answer.done()]
        if pending:
            await asyncio.wait(pending, timeout=timeout_s)

    def send(self, request: Any, expect_response: bool = True) -> Any:
        answer = super().send(request, expect_response)
        if isinstance(request, SaslAuthenticateRequest):
            return self._note_lifetime(answer, self._loop.time())
        if isinstance(request, SaslHandShakeRequest):
            return self._note_mechanisms(answer)
        return answer

    async def _note_mechanisms(self, pending: Awaitable[Any]) -> Any:
        answer = await pending
        self._mechanisms = tuple(getattr(answer, "enabled_mechanisms", None) or ())
        return answer

    async def _note_lifetime(self, pending: Awaitable[Any], asked_at_s: float) -> Any:
        """Record the lifetime from the last answer of a login. It began at the broker after our
        request, so counting from the request is safe."""
        answer = await pending
        lifetime_ms = getattr(answer, "session_lifetime_ms", 0)  # not in version 0
        if lifetime_ms > 0:
            self._due_at_s = asked_at_s + lifetime_ms / 1000 * CHANCE.uniform(*_DUE_AFTER)
        return answer

    async def _do_sasl_handshake(self) -> None:
        # This name only decides whether aiokafka warns of a clear-text password with each
        # connection. We warn once per client.
        protocol, self._security_protocol = self._security_protocol, "SASL_SSL"
        token = _logs_in.set(True)
        try:
            await super()._do_sasl_handshake()
        except (IllegalSaslStateError, UnsupportedSaslMechanismError) as err:
            raise self._no_login(err.errno, protocol) from err
        finally:
            _logs_in.reset(token)
            self._security_protocol = protocol
        _log.debug("logged in at %s:%s with %s", self.host, self.port, self._sasl_mechanism)

    def _no_login(self, code: int, protocol: str) -> BrokerError:
        """Build the error for a refused handshake: neither the broker's two answers nor aiokafka's
        errors have a text."""
        asked = f"SaslHandshake to {self.host}:{self.port}"
        if code == ErrorCode.ILLEGAL_SASL_STATE:
            plain = "PLAINTEXT" if protocol == "SASL_PLAINTEXT" else "SSL"
            hint = (
                f"the listener has no SASL: set security_protocol to {plain}, or name a listener "
                "that has it in bootstrap_servers"
            )
            return broker_error(code, "ILLEGAL_SASL_STATE", api=asked, hint=hint)
        offered = ", ".join(sorted(self._mechanisms)) or "none that it names"
        return broker_error(
            code,
            "UNSUPPORTED_SASL_MECHANISM",
            api=asked,
            hint=f"sasl_mechanism is {self._sasl_mechanism}; the listener offers {offered}",
        )


def _is_no_login_of_ours(record: logging.LogRecord) -> bool:
    """Filter for aiokafka's log lines of logins at level INFO. With short sessions they are noise:
    ours are logged at DEBUG."""
    return not (_logs_in.get() and record.levelno == logging.INFO)


def _hide_login(record: logging.LogRecord) -> bool:
    """Filter for aiokafka's log lines of logins: it logs every request at level DEBUG, including
    passwords and tokens."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            f"{type(each).__name__}(...)" if type(each).__name__ in _LOGINS else each
            for each in record.args
        )
    return True


logging.getLogger("aiokafka.conn").addFilter(_is_no_login_of_ours)
logging.getLogger("aiokafka.conn").addFilter(_hide_login)

"""A connection that reports each request and answer to a meter.

All of them, including the login's, go through aiokafka's ``send`` to its writer, and return through
``_handle_frame``. Without metrics, connections are of the base class and pay nothing for it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from aiokafka.errors import KafkaConnectionError, KafkaError

from kip848_client.core.ports import ConnectionWatch, WatchedConnection
from kip848_client.runtime.net._connection import Connection, ConnectionOptions
from kip848_client.runtime.net._tokens import in_the_clear

__all__ = ["MeasuredConnection", "open_connection"]


class MeasuredConnection(Connection):
    """See the module. It counts as opened with its first request."""

    _writer: Any

    def __init__(self, host: str, port: int, *, meter: ConnectionWatch, **options: Any) -> None:
        super().__init__(host, port, **options)
        self._meter = meter
        self._watched: WatchedConnection | None = None
        self._is_answered = True
        """Whether the request being sent has an answer."""

    async def connect(self) -> Any:
        try:
            found = await super().connect()
        except ssl.SSLError:
            self._meter.refused()
            raise
        if self._security_protocol == "SSL":
            self._meter.logged_in()
        return found

    def send(self, request: Any, expect_response: bool = True) -> Any:
        if self._watched is None and self._writer is not None:
            self._watched = self._meter.opened(self.host, self.port)
            self._writer = _Writer(self._writer, self)
        self._is_answered = expect_response
        return super().send(request, expect_response)

    def wrote(self, size_bytes: int) -> None:
        """Record a request of this size, passed to the socket."""
        if self._watched is not None:
            self._watched.sent(size_bytes, is_answered=self._is_answered)

    def close(self, reason: Any = None, exc: Any = None) -> Any:
        watched, self._watched = self._watched, None
        if watched is not None:
            watched.closed()
        return super().close(reason, exc)

    def _handle_frame(self, resp: bytes) -> None:
        if self._watched is not None:
            self._watched.received(len(resp) + 4)  # plus its size field
        super()._handle_frame(resp)

    async def _do_sasl_handshake(self) -> None:
        try:
            await super()._do_sasl_handshake()
        except KafkaError as err:
            if not isinstance(err, KafkaConnectionError):
                self._meter.refused()
            raise
        self._meter.logged_in()


class _Writer:
    """A wrapper of aiokafka's writer that reports the bytes written."""

    def __init__(self, writer: Any, connection: MeasuredConnection) -> None:
        self._writer = writer
        self._wrote = connection.wrote
        self.close = writer.close
        self.drain = writer.drain

    def write(self, data: bytes) -> None:
        self._writer.write(data)
        self._wrote(len(data))


async def open_connection(
    host: str,
    port: int,
    options: ConnectionOptions,
    on_close: Callable[[Any, Any], None] | None = None,
) -> Connection:
    """Open a connection and, with SASL, log in. Raises anything that aiokafka, the socket or a
    token provider raises; ``not_opened`` translates it. ``on_close`` gets the connection and
    aiokafka's ``CloseReason``."""
    kind: Callable[..., Connection] = Connection
    if options.meter is not None:
        kind = partial(MeasuredConnection, meter=options.meter)
    connection = kind(
        host,
        port,
        client_id=options.client_id,
        request_timeout_ms=options.request_timeout_ms,
        max_idle_ms=options.connections_max_idle_ms,
        on_close=on_close,
        **in_the_clear(options.security),
    )
    await connection.connect()
    return connection

"""Connections to brokers: one per address and purpose.

A fetch may wait half a second at the broker and answers come in order, so a heartbeat behind one
would be late (Kafka's Java client has a separate connection to the coordinator for the same
reason). So there are pools of links: one for fetches, one for outgoing records, one for everything
else. A link opens its connection on first use, and again whenever it broke or its login is about to
expire. Authentication and TLS are aiokafka's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Final

from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaError

from kip848_client.core.ports import (
    Clock,
    ConnectionBroken,
    ConnectionWatch,
    NotSent,
)
from kip848_client.core.throttle import Throttle
from kip848_client.core.types import VersionLimits
from kip848_client.errors import (
    BrokerError,
    ConsumerClosed,
    Kip848Error,
    RemoteProtocolError,
    RequestTimedOut,
)
from kip848_client.runtime.net._connection import Connection, ConnectionOptions
from kip848_client.runtime.net._errors import not_opened, translated
from kip848_client.runtime.net._measured import open_connection
from kip848_client.runtime.net._request import Garbled, WireRequest

__all__ = ["Link", "LinkPool"]

_CONNECT_TIMEOUT_S: Final = 10.0
"""Kafka's ``socket.connection.setup.timeout.ms``."""


class Link:
    """One address and at most one connection to it."""

    def __init__(self, host: str, port: int, options: ConnectionOptions, clock: Clock) -> None:
        self.host = host
        self.port = port
        self._options = options
        self._clock = clock
        self._throttle = Throttle()
        self._connection: Connection | None = None
        self._connecting: asyncio.Lock = asyncio.Lock()
        self._turn: asyncio.Lock = asyncio.Lock()
        self.opened = 0
        """Number of connections opened."""
        self._answers: Connection | None = None
        """The last connection that delivered an answer."""
        self._failures = 0
        self._failure: BrokerError | NotSent | None = None
        """The error of the last attempt to open a connection, and the number of failures."""
        self._closed: Kip848Error | None = None
        """The reason why the link is closed."""

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; it may still turn out to be broken."""
        return self._connection is not None and bool(self._connection.connected())

    @property
    def is_muted(self) -> bool:
        """Whether the broker accepts no request at the moment, because a quota is exceeded."""
        return self._throttle.remaining_ms(self._clock.now_ms()) > 0

    @property
    def offered(self) -> dict[int, tuple[int, int]]:
        """API key -> (lowest, highest version) that the broker announced; empty until connected."""
        return {} if self._connection is None else dict(self._connection._versions)

    async def connect(self) -> Connection:
        """Return the connection, opened if needed. Raises ``NotSent`` with the reason,
        ``BrokerError`` if the broker refuses our credentials, and after ``close`` the error passed
        to it.

        Callers that wait during an attempt share its failure: if each made its own attempt, the
        last of many would wait for all of them."""
        failures = self._failures
        async with self._connecting:
            if self._failure is not None and self._failures > failures:
                raise self._failure.with_traceback(None)
            if self._connection is not None and self._connection.connected():
                if not self._connection.is_due:
                    return self._connection
                await self._connection.answered(_CONNECT_TIMEOUT_S)
            self._drop()
            where = f"{self.host}:{self.port}"
            if self._closed is not None:
                raise self._closed.with_traceback(None)
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    self._connection = await open_connection(self.host, self.port, self._options)
            except Exception as err:
                self._failures += 1
                self._failure = not_opened(err, where)
                raise self._failure from err
            self.opened += 1
            self._failure = None
            return self._connection

    async def send(self, request: Any, versions: VersionLimits, timeout_ms: int) -> Any:
        """Send one message and return the answer's message; raises as ``Transport`` says.

        A throttling broker is not asked before the throttle time has passed (``NotSent`` if that is
        later than ``timeout_ms``)."""
        wired = WireRequest(request, versions)
        where = f"{wired.api.name} to {self.host}:{self.port}"
        connection, pending = await self._write(wired, where, timeout_ms)
        return await self._answer(connection, pending, where, timeout_ms)

    async def send_in_turn(
        self, request: Any, versions: VersionLimits, timeout_ms: int, *, is_answered: bool
    ) -> Any:
        """As ``send``. Messages are sent in the order of the calls, however long a connection or a
        quota takes. A message without an answer is done when it is written."""
        wired = WireRequest(request, versions)
        where = f"{wired.api.name} to {self.host}:{self.port}"
        async with self._turn:
            connection, pending = await self._write(
                wired, where, timeout_ms, is_answered=is_answered
            )
        return await self._answer(connection, pending, where, timeout_ms)

    async def _write(
        self, wired: WireRequest, where: str, timeout_ms: int, *, is_answered: bool = True
    ) -> tuple[Connection, Awaitable[Any]]:
        connection = await self.connect()
        while self.is_muted:
            await self._wait_for_quota(where, timeout_ms)
            connection = await self.connect()
        try:
            if is_answered:
                return connection, connection.send(wired)
            return connection, connection.send(wired, expect_response=False)
        except (KafkaError, OSError) as err:
            self._drop()
            raise NotSent(str(translated(err, where))) from err

    async def _answer(
        self, connection: Connection, pending: Awaitable[Any], where: str, timeout_ms: int
    ) -> Any:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                answer = await pending
        except TimeoutError as err:
            # Answers come in order: later ones would wait behind the missing one.
            self._discard(connection, CloseReason.CONNECTION_TIMEOUT)
            raise RequestTimedOut(f"{where}: no answer within {timeout_ms} ms") from err
        except (KafkaError, OSError) as err:
            doubt = self._doubt(connection)
            self._discard(connection, CloseReason.CONNECTION_BROKEN)
            raise ConnectionBroken(f"{translated(err, where)}{doubt}") from err
        if isinstance(answer, Garbled):
            self._discard(connection, CloseReason.OUT_OF_SYNC)
            raise RemoteProtocolError(
                f"{where}: {answer.error}", hint="the connection was closed; retry once"
            )
        if answer is not None:
            self._throttle.note(self._clock.now_ms(), answer)
        self._answers = connection
        return answer

    def _doubt(self, connection: Connection) -> str:
        """Return a hint for a closed connection: a broker that requires authentication accepts
        connections, reports its versions, and then closes without an error."""
        protocol = self._options.security.get("security_protocol", "PLAINTEXT")
        if self._answers is connection or protocol.startswith("SASL"):
            return ""
        return (
            f" (before it answered anything: security_protocol is {protocol}; if this goes on, "
            "see whether the listener wants a login, SASL_PLAINTEXT or SASL_SSL)"
        )

    async def _wait_for_quota(self, where: str, timeout_ms: int) -> None:
        for_ms = self._throttle.remaining_ms(self._clock.now_ms())
        if for_ms > timeout_ms:
            raise NotSent(f"{where}: a quota is used up, the broker throttles us for {for_ms} ms")
        await asyncio.sleep(for_ms / 1000)

    async def close(self, why: Kip848Error | None = None) -> None:
        """Close permanently; later sends raise ``why``, or else ``ConsumerClosed``."""
        self._closed = why or ConsumerClosed("the client is closed")
        connection, self._connection = self._connection, None
        if connection is not None:
            done = connection.close(reason=CloseReason.SHUTDOWN)
            if done is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await done

    def _discard(self, connection: Connection, reason: CloseReason) -> None:
        connection.close(reason=reason)
        if self._connection is connection:
            self._connection = None
        if self._answers is connection:
            self._answers = None

    def _drop(self) -> None:
        if self._connection is not None:
            self._discard(self._connection, CloseReason.CONNECTION_BROKEN)


class LinkPool:
    """The links of one client, by address."""

    def __init__(self, options: ConnectionOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._links: dict[tuple[str, int], Link] = {}

    def to(self, host: str, port: int) -> Link:
        """Return the link to an address; nothing is opened yet."""
        link = self._links.get((host, port))
        if link is None:
            link = self._links[host, port] = Link(host, port, self._options, self._clock)
        return link

    def offers(self, api_key: int) -> bool:
        """Whether any broker supports this API, as far as known; true if none was asked."""
        told = [link.offered for link in self._links.values() if link.is_open]
        return not told or any(api_key in offered for offered in told)

    def measure(self, meter: ConnectionWatch) -> None:
        """Measure the connections of future links by ``meter``."""
        self._options = replace(self._options, meter=meter)

    async def close(self, why: Kip848Error | None = None) -> None:
        """Close all current links, see ``Link.close``. The pool creates new ones on request."""
        links = list(self._links.values())
        self._links.clear()
        await asyncio.gather(*(link.close(why) for link in links))

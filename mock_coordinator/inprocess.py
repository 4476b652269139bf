"""Connections to a broker in the same event loop, without sockets.

With ``through_bytes`` (the default) each request and response is encoded and decoded, so that a
field that the version does not have is lost exactly as on a socket. Without it both sides share the
objects, which is faster.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self

import anyio

from kip848_client.core.wire import (
    negotiate,
    read_response,
    request_api,
    write_request,
    write_response,
)
from kip848_client.core.wire._fields import Message
from kip848_client.errors import TransportError
from mock_coordinator.connection.requests import read_received
from mock_coordinator.core.authentication.distinguished_names import ANONYMOUS
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.outputs import NoReply, Reply, TornReply
from mock_coordinator.driver.core_driver import CoreDriver

__all__ = ["InProcessConnection"]

_SIZE_BYTES: Final = 4


class InProcessConnection:
    """A connection that takes request objects and returns response objects.

    Unlike a socket it serves any number of requests at a time. Leaving its ``with`` block closes
    it. ``MockBroker.connect`` creates one.

    Args:
        driver: The broker's driver.
        client_id: The client id in request headers.
        host: The client's address, as the broker sees it.
        through_bytes: Whether requests and responses are encoded and decoded.
        node_id: The broker to connect to. ``None``: each request goes to the broker that it needs.
        principal: The authenticated principal, for the authorizer.
        is_own: As for ``CoreDriver.connect``.
    """

    def __init__(
        self,
        driver: CoreDriver,
        *,
        client_id: str | None = "in-process",
        host: str = "/127.0.0.1",
        through_bytes: bool = True,
        node_id: int | None = None,
        principal: str = ANONYMOUS,
        is_own: bool = False,
    ) -> None:
        self._driver: Final = driver
        self._client: Final = ClientInfo(client_id, host, principal)
        self._through_bytes: Final = through_bytes
        self._correlation = 0
        self._expected: Final[set[int]] = set()
        self._replies: dict[int, Reply | NoReply] = {}
        self._waiting: dict[int, anyio.Event] = {}
        self._why_closed: str | None = None
        self._number: Final = driver.connect(self, node_id, is_own=is_own)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def number(self) -> int:
        """The connection's number in the broker's request log."""
        return self._number

    @property
    def is_closed(self) -> bool:
        """Whether the connection was closed, by the broker or by ``close``."""
        return self._why_closed is not None

    # -- what the driver calls ---------------------------------------------------------------------

    def replied(self, reply: Reply | NoReply) -> None:
        """Called by the driver when a request was answered. Raises nothing.

        Args:
            reply: The response, or its absence (acks=0).
        """
        if reply.correlation not in self._expected:
            return  # its request was given up
        self._replies[reply.correlation] = reply
        waiting = self._waiting.get(reply.correlation)
        if waiting is not None:
            waiting.set()

    def torn(self, torn: TornReply) -> None:
        """Called by the driver when a fault sends a part of a response, which does not count.
        Raises nothing.

        Args:
            torn: The part.
        """
        self.closed(f"{torn.after_bytes} bytes into a response")

    def closed(self, why: str) -> None:
        """Called by the driver when the broker closes this connection. Raises nothing.

        Args:
            why: The reason, for the errors of later requests.
        """
        self._why_closed = why
        for waiting in self._waiting.values():
            waiting.set()

    # -- what the user calls -----------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection. Requests in flight fail. Raises nothing."""
        if self._why_closed is None:
            self.closed("closed by the client")
            self._driver.disconnect(self._number)

    async def request(self, request: Message, version: int | None = None) -> Any:
        """Send a request and wait for its response.

        Args:
            request: The request.
            version: The API version. Default: the highest one that both sides have.

        Returns:
            The response; ``None`` for a produce request with acks=0.

        Raises:
            TransportError: If the broker closes the connection.
            WireError: If the version has no field for a value of the request.
        """
        version, correlation = self._submit(request, version)
        event = anyio.Event()
        self._waiting[correlation] = event
        try:
            while correlation not in self._replies and self._why_closed is None:
                await event.wait()
            return self._take(request, version, correlation)
        finally:
            del self._waiting[correlation]
            self._expected.discard(correlation)

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Send a request that is answered at once (all but a fetch that waits), and return its
        response.

        Args:
            request: The request.
            version: The API version. Default: the highest one that both sides have.

        Returns:
            The response; ``None`` for a produce request with acks=0.

        Raises:
            TransportError: If there is no response yet; a later one is dropped. Or as ``request``.
            WireError: As ``request``.
        """
        version, correlation = self._submit(request, version)
        try:
            self._driver.gate.flush()
            return self._take(request, version, correlation)
        finally:
            self._expected.discard(correlation)

    def _submit(self, request: Message, version: int | None) -> tuple[int, int]:
        if self._why_closed is not None:
            raise TransportError(f"the connection is closed: {self._why_closed}")
        api = request_api(request)
        if version is None:
            version = negotiate(api, self._driver.core.api_versions.get(api.key))
        self._correlation += 1
        correlation = self._correlation
        if self._through_bytes:
            name = self._client.client_id
            frame = write_request(request, version, correlation, name)
            event = read_received(self._number, self._client, frame[_SIZE_BYTES:])
        else:
            event = RequestReceived(self._number, correlation, version, self._client, request)
        self._expected.add(correlation)
        self._driver.submit(event)
        return version, correlation

    def _take(self, request: Message, version: int, correlation: int) -> Any:
        reply = self._replies.pop(correlation, None)
        if reply is None:
            raise TransportError(
                f"the connection was closed: {self._why_closed}"
                if self._why_closed is not None
                else f"{request_api(request).name} v{version} has no response yet"
            )
        if isinstance(reply, NoReply):
            return None
        if not self._through_bytes:
            return reply.response
        api = request_api(request)
        frame = write_response(reply.response, api, reply.version, correlation)
        _, response = read_response(frame[_SIZE_BYTES:], api, reply.version)
        return response

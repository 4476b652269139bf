"""A blocking connection that sends one request at a time through our wire layer.

The plainest client there is: no retries, no metadata, no threads. Tests use it where the client
itself is not what is tested: to warm a broker up, to create topics, to play one request sequence
on two brokers.
"""

from __future__ import annotations

import select
import socket
from types import TracebackType
from typing import Any, Final, Protocol, Self

from kip848_client.core.wire import APIS, Api, Framer, read_response, request_api, write_request
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest

__all__ = ["ConnectionLostError", "Requester", "WireConnection"]

_CHUNK_BYTES: Final = 65536


class ConnectionLostError(AssertionError):
    """The broker closed the connection, or did not answer in time."""


class Requester(Protocol):
    """Whatever can send a request message in a version and return the response message."""

    def request(self, message: Any, version: int) -> Any: ...


class WireConnection:
    """One TCP connection. ``request(message, version)`` sends and waits for the answer.

    Every answer must come within ``timeout_s`` seconds; ``ConnectionLostError`` otherwise.
    """

    def __init__(
        self, host: str, port: int, *, client_id: str = "kip848-tests", timeout_s: float = 30
    ) -> None:
        self.client_id = client_id
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._framer = Framer()
        self._frames: list[bytes] = []
        self._correlation = 0

    def request(self, message: Any, version: int) -> Any:
        """Send one request and return the response message."""
        correlation = self.send(message, version)
        return self.receive(request_api(message), version, correlation)

    def send(self, message: Any, version: int) -> int:
        """Send one request without waiting; returns its correlation id."""
        self._correlation += 1
        self._socket.sendall(write_request(message, version, self._correlation, self.client_id))
        return self._correlation

    def receive(self, api: Api, version: int, correlation: int) -> Any:
        """The next response, which must be the one to ``correlation``."""
        got, message = read_response(self.receive_frame(), api, version)
        assert got == correlation, f"an answer to request {got}, {correlation} was expected"
        return message

    def has_answer(self, timeout_s: float = 0) -> bool:
        """Whether something can be received now (an answer, or that the connection ended)."""
        if self._frames:
            return True
        readable, _, _ = select.select([self._socket], [], [], timeout_s)
        return bool(readable)

    def receive_frame(self) -> bytes:
        """The payload of the next frame, whatever it is."""
        while not self._frames:
            try:
                chunk = self._socket.recv(_CHUNK_BYTES)
            except TimeoutError as err:
                raise ConnectionLostError("no answer in time") from err
            except OSError as err:
                raise ConnectionLostError(f"connection lost: {err}") from err
            if not chunk:
                raise ConnectionLostError("the broker closed the connection")
            self._frames += self._framer.feed(chunk)
        return self._frames.pop(0)

    def versions(self) -> dict[str, tuple[int, int]]:
        """What the broker offers: Kafka's name of each API that we know, and its version range."""
        ask = ApiVersionsRequest(client_software_name="kip848-tests", client_software_version="1")
        answer = self.request(ask, 3)
        assert answer.error_code == 0, answer
        offered = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        return {api.name: offered[key] for key, api in APIS.items() if key in offered}

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

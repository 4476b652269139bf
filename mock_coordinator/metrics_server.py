"""``GET /metrics``: a web server for this one page. Nothing that a visitor sends can harm it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.stapled import MultiListener

__all__ = ["MetricsServer"]

_log: Final = logging.getLogger("mock_coordinator")

_HEAD_BYTES: Final = 8_192
_VISIT_S: Final = 5.0
"""How long a visitor may take to say what it wants, and to take the answer."""
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


class MetricsServer:
    """``page`` gives the text of the moment. ``port`` 0 picks a free one."""

    def __init__(self, page: Callable[[], str], host: str, port: int) -> None:
        self._page: Final = page
        self.host: Final = host
        self.port = port
        self._listener: MultiListener[SocketStream] | None = None

    async def listen(self) -> None:
        """Bind the port, which ``port`` names then. Raises ``OSError`` when it is taken."""
        self._listener = await anyio.create_tcp_listener(local_host=self.host, local_port=self.port)
        self.port = self._listener.extra(SocketAttribute.local_port)

    async def serve(self) -> None:
        """Answer visitors until cancelled; after ``listen``."""
        assert self._listener is not None, "listen() comes first"
        async with self._listener:
            await self._listener.serve(self._visit)

    async def _visit(self, stream: SocketStream) -> None:
        async with stream:
            try:
                with anyio.move_on_after(_VISIT_S):
                    await stream.send(self._answer(await _request(stream)))
            except (OSError, anyio.EndOfStream, anyio.BrokenResourceError) as err:
                _log.debug("a visitor of the metrics is gone: %s", err)

    def _answer(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.split(b" ")[0].split(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET is answered\n")
        if path != b"/metrics":
            return _response("404 Not Found", "the page is /metrics\n")
        return _response("200 OK", self._page(), with_body=method == b"GET")


async def _request(stream: SocketStream) -> bytes:
    """The first line; what follows of the head is read and of no interest."""
    head = b""
    while b"\r\n\r\n" not in head and b"\n\n" not in head and len(head) < _HEAD_BYTES:
        head += await stream.receive(_HEAD_BYTES)
    return head.splitlines()[0] if head.strip() else b""


def _response(status: str, text: str, *, with_body: bool = True) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {_TEXT}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")

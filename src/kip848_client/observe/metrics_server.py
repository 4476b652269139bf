"""A web server of one page, ``/metrics``, and the text format of that page (Prometheus').

For ``kip848 mock`` and ``kip848 pipeline``. Applications register their ``Metrics`` with
``kip848_client.prometheus`` instead.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.from_thread import start_blocking_portal
from anyio.streams.stapled import MultiListener

__all__ = ["Family", "MetricsServer", "as_text", "serving"]

_log: Final = logging.getLogger("kip848_client")

_HEAD_BYTES: Final = 8_192
_VISIT_S: Final = 5.0
"""How long a client may take to send its request and to read the answer."""
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. ``kind`` is the Prometheus type; each sample has its labels and its value."""

    name: str
    kind: str
    samples: Iterable[tuple[Mapping[str, str], float]]
    help: str | None = None


def as_text(families: Iterable[Family]) -> str:
    """Format metrics in Prometheus' text format, version 0.0.4."""
    lines: list[str] = []
    for family in families:
        if family.help is not None:
            lines.append(f"# HELP {family.name} {family.help}\n")
        lines.append(f"# TYPE {family.name} {family.kind}\n")
        for tags, value in family.samples:
            labels = ",".join(f'{tag}="{text}"' for tag, text in tags.items())
            name = f"{family.name}{{{labels}}}" if labels else family.name
            lines.append(f"{name} {_number(value)}\n")
    return "".join(lines)


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:g}"


class MetricsServer:
    """Serves ``GET /metrics``.

    Args:
        page: Returns the current text. Called in the task that runs ``serve``. If it raises, the
            request is answered with status 500 and the error is logged.
        host: The address to bind.
        port: The port to bind; 0 picks a free one.
    """

    def __init__(self, page: Callable[[], str], host: str, port: int) -> None:
        self._page: Final = page
        self.host: Final = host
        self.port = port
        self._listener: MultiListener[SocketStream] | None = None

    async def listen(self) -> None:
        """Bind the port; ``port`` has its number afterwards. Raises ``OSError`` if it is taken."""
        self._listener = await anyio.create_tcp_listener(local_host=self.host, local_port=self.port)
        self.port = self._listener.extra(SocketAttribute.local_port)

    async def serve(self) -> None:
        """Answer requests until cancelled. Call ``listen`` first."""
        assert self._listener is not None, "listen() comes first"
        async with self._listener:
            await self._listener.serve(self._visit)

    async def _visit(self, stream: SocketStream) -> None:
        async with stream:
            try:
                with anyio.move_on_after(_VISIT_S):
                    await stream.send(self._answer(await _request(stream)))
            except (OSError, anyio.EndOfStream, anyio.BrokenResourceError) as err:
                _log.debug("a client of /metrics has disconnected: %s", err)

    def _answer(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.split(b" ")[0].split(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET and HEAD are allowed\n")
        if path != b"/metrics":
            return _response("404 Not Found", "the only page is /metrics\n")
        with_body = method == b"GET"
        try:
            page = self._page()
        except Exception as err:  # noqa: BLE001 - the server continues, whatever a page raises
            _log.exception("the page /metrics failed; later requests are answered again")
            text = f"the metrics cannot be read: {type(err).__name__}; see the program's log\n"
            return _response("500 Internal Server Error", text, with_body=with_body)
        return _response("200 OK", page, with_body=with_body)


@contextlib.contextmanager
def serving(page: Callable[[], str], host: str, port: int) -> Generator[str]:
    """Serve ``/metrics`` in a separate thread inside the ``with`` block, for programs without an
    event loop. Yields the page's URL. Raises ``OSError`` if the port is taken."""
    server = MetricsServer(page, host, port)
    with start_blocking_portal() as portal:
        portal.call(server.listen)
        running = portal.start_task_soon(server.serve)
        try:
            yield f"http://{host}:{server.port}/metrics"
        finally:
            running.cancel()


async def _request(stream: SocketStream) -> bytes:
    """Read the head of a request; returns its first line."""
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

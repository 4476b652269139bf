"""The control channel: a UNIX socket between the driver's program and the source.

Spark does not notify a source that a batch is done until it asks for the next one, which may be a
trigger interval later. The channel notifies the source at once, and can stop the query cleanly. A
request and its answer are one line of JSON each.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, cast

from kip848_client.errors import ConfigError, Kip848Error, TransportError

__all__ = ["ControlServer", "ask"]

_log = logging.getLogger("kip848_client.spark")

_LINE_BYTES_MAX: Final = 64 << 20
"""A manifest of 100,000 partitions has about 5 MB."""

Handle = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class ControlServer:
    """Listens on a path that only this user may open. An invalid request is answered with an
    error."""

    def __init__(self, path: str, handle: Handle) -> None:
        self._path = Path(path)
        self._handle = handle
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Start listening; a socket that an earlier run left behind is removed. Raises
        ``ConfigError`` if the path cannot be a socket."""
        try:
            _take_over(self._path)
            self._server = await asyncio.start_unix_server(
                self._serve, self._path, limit=_LINE_BYTES_MAX
            )
            self._path.chmod(0o600)
        except OSError as err:
            raise ConfigError(f"option control={str(self._path)!r}: {err}") from err

    async def stop(self) -> None:
        """Stop listening, and remove the socket."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError) as err:
            _log.debug("a connection of the control channel ended: %s", err)
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ConfigError("a request must be a JSON object")
            return {"ok": await self._handle(cast("dict[str, Any]", request))}
        except (ValueError, Kip848Error) as err:
            return {"error": f"{type(err).__name__}: {err}"}


def _take_over(path: Path) -> None:
    """Remove a socket on which no process listens any more."""
    if not path.exists():
        return
    if not path.is_socket():
        raise ConfigError(f"option control={str(path)!r}: the path is a file, not a socket")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise ConfigError(f"option control={str(path)!r}: another query already listens there")


def ask(path: str, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """Send a request to a source, and wait for its answer. Raises ``TransportError`` if no source
    listens or no answer comes in time, ``ConfigError`` if the source refuses the request."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(path)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
    except OSError as err:
        raise TransportError(f"the source at {path!r} cannot be reached: {err}") from err
    if not line:
        raise TransportError(f"the source at {path!r} closed the connection")
    answer = json.loads(line)
    if "error" in answer:
        raise ConfigError(f"the source at {path!r} refused the request: {answer['error']}")
    return cast("dict[str, Any]", answer["ok"])

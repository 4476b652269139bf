"""Frames of a connection, received directly into memory of their size.

aiokafka reads through ``asyncio.StreamReader``: a large answer is copied three times, and reading
pauses and resumes with each piece. A consumer mostly receives records, so that took a third of its
time. ``FrameProtocol`` replaces the stream once a connection is open; how it ends, and what that
means, stays with aiokafka's own protocol, reader and task.
"""

from __future__ import annotations

import asyncio
import io
import struct
from collections.abc import Callable
from typing import Final

__all__ = ["FrameProtocol"]

_SIZE: Final = struct.Struct(">i")
_SMALL_BYTES: Final = 8192
"""Size of the buffer used before a frame's size is known. Most answers fit, and take one system
call."""


class FrameProtocol(asyncio.BufferedProtocol):
    """Calls ``on_frame`` with each frame, without its size, until it returns False. Bytes that are
    not a valid frame end the connection, with an ``OSError`` for the callers that wait for an
    answer."""

    def __init__(
        self,
        inner: asyncio.StreamReaderProtocol,
        reader: asyncio.StreamReader,
        on_frame: Callable[[bytes], bool],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._inner = inner
        self._reader = reader
        self._on_frame = on_frame
        self._call_soon = call_soon
        self._small = bytearray(_SMALL_BYTES)
        self._small_bytes = 0
        self._frame: io.BytesIO | None = None
        """The frame that did not fit. It becomes ``bytes`` without a copy if no view is left."""
        self._view: memoryview = memoryview(b"")
        self._frame_bytes = 0
        self._ended = False
        """Reading has ended; the connection is about to be closed."""

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's own signature
        """Return where the next bytes go: never beyond the end of a frame that is being
        received."""
        self._finish()
        if self._frame is not None:
            return self._view[self._frame_bytes :]
        return memoryview(self._small)[self._small_bytes :]

    def buffer_updated(self, nbytes: int) -> None:
        """Process received bytes."""
        if self._ended:
            return
        if self._frame is None:
            self._small_bytes += nbytes
            try:
                self._take_small()
            except Exception as err:  # noqa: BLE001 - broken bytes may raise anything
                self._fail(err)
            return
        self._frame_bytes += nbytes
        if self._frame_bytes == len(self._view):
            self._call_soon(self._finish)  # the transport still holds our buffer

    def _finish(self) -> None:
        """Pass on the large frame, if it is complete."""
        frame = self._frame
        if frame is None or self._frame_bytes < len(self._view):
            return
        self._view.release()
        self._frame, self._frame_bytes = None, 0
        try:
            self._hand_out(frame.getvalue())
        except Exception as err:  # noqa: BLE001 - see above
            self._fail(err)

    def _hand_out(self, frame: bytes) -> None:
        self._ended = not self._on_frame(frame)

    def _take_small(self) -> None:
        """Pass on complete frames, and begin the incomplete one, or keep its first bytes."""
        start, end = 0, self._small_bytes
        while end - start >= _SIZE.size and not self._ended:
            (size,) = _SIZE.unpack_from(self._small, start)
            if size < 0:
                raise ConnectionError(f"the broker sent a frame of {size} bytes")
            body = start + _SIZE.size
            if end - body < size:
                if body + size - start > _SMALL_BYTES:
                    self._begin(size, self._small[body:end])
                    start = end
                break
            start = body + size
            self._hand_out(bytes(self._small[body:start]))
        if self._ended:
            start = end
        self._small[: end - start] = self._small[start:end]
        self._small_bytes = end - start

    def _begin(self, size: int, received: bytearray) -> None:
        try:
            frame = io.BytesIO(bytes(size))  # memory is allocated as it is written
        except MemoryError as err:
            raise ConnectionError(f"no memory for a frame of {size} bytes") from err
        self._frame, self._view, self._frame_bytes = frame, frame.getbuffer(), len(received)
        self._view[: len(received)] = received

    def _fail(self, error: Exception) -> None:
        self._ended, self._small_bytes = True, 0
        if not isinstance(error, OSError):
            error = ConnectionError(f"the broker's bytes cannot be read: {error!r}")
        self._reader.set_exception(error)  # aiokafka's task waits there, and closes

    # The rest is the stream's business.

    def connection_lost(self, exc: Exception | None) -> None:
        """See ``asyncio.BaseProtocol``."""
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """See ``asyncio.BufferedProtocol``."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """See ``asyncio.BaseProtocol``."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """See ``asyncio.BaseProtocol``."""
        self._inner.resume_writing()

"""The buffer that a codec writes to.

The codecs of ``cramjam`` fill a buffer of a given size, and raise the same error for a buffer that
is too small as for damaged bytes. So we put a mark at the end of the buffer. If it was overwritten,
the buffer was too small.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any, Final

from kip848_client.core.compression._model import CorruptPayload, Unpacked

__all__ = ["Fill", "filled"]

Fill = Callable[[Any, Any], int]
"""Decompress the first argument into the second, a writable buffer; returns how much it wrote."""

_MARK: Final = bytes(range(0xE0, 0xF0))


def filled(fill: Fill, payload: Any, size: int, limit: int, head: bytes) -> Unpacked:
    """``head`` followed by the output of ``fill`` for ``payload``: expected to be at most ``size``
    bytes, and never more than ``limit``. Raises ``CorruptPayload``."""
    room = min(size, limit)
    start = len(head)
    # bytes in a BytesIO are written in place, and become the result without a copy; zeroed memory
    # that the codec does not reach costs nothing
    memory = BytesIO(bytes(start + room))
    with memory.getbuffer() as view:
        view[:start] = head
        mark = _MARK[:room]
        at_mark = start + room - len(mark)
        view[at_mark:] = mark
        try:
            written = fill(payload, view[start:])
        except Exception as err:
            # each codec raises its own classes
            if size <= limit or bytes(view[at_mark:]) == mark:
                raise CorruptPayload(str(err)) from err
            is_whole, written = False, room
        else:
            is_whole = True
    memory.truncate(start + written)
    return Unpacked(memory.getvalue(), is_whole)

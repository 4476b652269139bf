"""zstd: one or more frames, with or without their content size, and skippable frames. A truncated
last frame is ignored if it has no output yet, as in Java.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Final

from kip848_client.core.compression._model import CorruptPayload, Unpacked
from kip848_client.core.compression._output import filled

__all__ = ["look", "pack", "unpack", "unpack_small"]

_MAGIC: Final = 0xFD2F_B528
_UINT: Final = struct.Struct("<I")
_MAGIC_BYTES: Final = _UINT.pack(_MAGIC)
_SKIPPED_FIRST: Final = 5
"""The high bits of the first byte of a frame to be skipped."""
_SKIPPED_REST: Final = b"\x2a\x4d\x18"
"""The other three bytes of its magic."""
_BEGINNING: Final = struct.Struct("<IB")
"""Magic and descriptor of a frame."""
_BLOCK_BYTES_MAX: Final = 128 << 10
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_CHECKSUM: Final = 4
"""The descriptor's checksum bit. Its value equals the size of the checksum in bytes."""
_BLOCK_HEADER_BYTES: Final = 3
_COMPRESSED: Final = 2
_REPEATED: Final = 1
_LAST_COMPRESSED: Final = 1 | _COMPRESSED << 1
_HEADER_BYTES: Final = tuple(
    5
    + (0 if each >> 5 & 1 else 1)
    + _DICTIONARY_ID_BYTES[each & 3]
    + (_CONTENT_SIZE_BYTES[each >> 6] or each >> 5 & 1)
    for each in range(256)
)
"""Of a frame, by its descriptor."""
_PLAIN_BYTES_MIN: Final = 22
"""No header is longer."""
_COPIED_BYTES_MAX: Final = 256 << 10
"""Up to this size it is faster to let the library allocate, and to copy the result."""
_LEVEL: Final = 3
"""Kafka's ``compression.zstd.level`` (KIP-390)."""


def pack(data: bytes) -> bytes:
    """One frame."""
    return bytes(_library().compress(data, level=_LEVEL))


def look(payload: bytes, enough: int, magic: int) -> tuple[bytes, int]:
    """Return the part of ``payload`` to unpack, and an upper bound of the unpacked size from the
    headers of its frames and blocks. Counting stops at ``enough``.
    """
    del magic
    if (known := _plain_size_max(payload)) is not None:
        return payload, known
    size = at = 0
    while at < len(payload):
        start = at
        try:
            frame_size, at = _frame_or_skipped(payload, at, enough - size)
        except _Cut as cut:
            if not start or cut.size:
                raise CorruptPayload("zstd: truncated in a frame") from cut
            return payload[:start], size  # Java's reader leaves it out, too
        size += frame_size
        if size > enough:
            break
    return payload, size


def unpack_small(payload: bytes, enough: int, magic: int) -> bytes | None:
    """All of the data; ``None`` if it may be more than ``enough``."""
    size = _plain_size_max(payload)
    if size is None:
        payload, size = look(payload, enough, magic)
    if size > enough:
        return None
    if not payload:
        return b""
    if size > _COPIED_BYTES_MAX:
        return unpack(payload, size, size, b"").data
    return bytes(_library().decompress(payload))


@cache
def _library() -> Any:
    """Imported on first use. Cached, because ``import`` on each call is slower."""
    import cramjam

    return cramjam.zstd


def unpack(payload: bytes, size: int, limit: int, head: bytes) -> Unpacked:
    """See ``kip848_client.core.compression.unpack``."""
    if not payload:
        return Unpacked(head, is_whole=True)
    return filled(_library().decompress_into, payload, size, limit, head)


def _plain_size_max(payload: bytes) -> int | None:
    """An upper bound for a single frame with a single block; ``None`` for other payloads."""
    if len(payload) < _PLAIN_BYTES_MIN:
        return None
    magic, descriptor = _BEGINNING.unpack_from(payload)
    at = _HEADER_BYTES[descriptor]
    header = payload[at] | payload[at + 1] << 8 | payload[at + 2] << 16
    end = at + _BLOCK_HEADER_BYTES + (header >> 3) + (descriptor & _CHECKSUM)
    is_one = magic == _MAGIC and header & 7 == _LAST_COMPRESSED and end == len(payload)
    return _BLOCK_BYTES_MAX if is_one else None


def _frame_or_skipped(payload: bytes, at: int, enough: int) -> tuple[int, int]:
    """Return an upper bound of a frame's unpacked size, and its end. Raises ``_Cut``."""
    beginning = payload[at : at + 4]
    is_frame = _MAGIC_BYTES.startswith(beginning)
    if not is_frame and not (
        beginning[0] >> 4 == _SKIPPED_FIRST and _SKIPPED_REST.startswith(beginning[1:])
    ):
        raise CorruptPayload("zstd: a frame does not start with its magic number")
    if is_frame and len(beginning) == len(_MAGIC_BYTES):
        return _frame(payload, at + 4, enough)
    if at + 8 > len(payload):
        raise _Cut(0)
    (length,) = _UINT.unpack_from(payload, at + 4)
    at += 8 + length
    if at > len(payload):
        raise _Cut(0)
    return 0, at


class _Cut(Exception):
    """A payload ends inside a frame, which has unpacked to ``size`` bytes so far."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def _frame(payload: bytes, at: int, enough: int) -> tuple[int, int]:
    """An upper bound for a frame, and its end. ``at`` is the position after its magic.
    Raises ``_Cut``."""
    total = len(payload)
    if at >= total or at - 4 + _HEADER_BYTES[payload[at]] > total:
        raise _Cut(0)
    descriptor = payload[at]
    at += 1
    is_single = descriptor >> 5 & 1
    block_max = _BLOCK_BYTES_MAX
    if not is_single:
        window = payload[at]
        at += 1
        base = 1 << (10 + (window >> 3))
        block_max = min(block_max, base + (base >> 3) * (window & 7))
    at += _DICTIONARY_ID_BYTES[descriptor & 3]
    flag = descriptor >> 6
    size_bytes = _CONTENT_SIZE_BYTES[flag] or is_single
    said: int | None = None
    if size_bytes:
        said = int.from_bytes(payload[at : at + size_bytes], "little") + (256 if flag == 1 else 0)
    at += size_bytes
    size, is_last = 0, False
    while not is_last:
        if size > enough and (said is None or said > enough):
            return size if said is None else min(size, said), at
        if at + _BLOCK_HEADER_BYTES > total:
            raise _Cut(size)
        header = payload[at] | payload[at + 1] << 8 | payload[at + 2] << 16
        at += _BLOCK_HEADER_BYTES
        is_last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
        stored = 1 if kind == _REPEATED else length
        if at + stored > total:
            # stored bytes do not need an end
            raise _Cut(size + (0 if kind in (_COMPRESSED, _REPEATED) else total - at))
        at += stored
        size += block_max if kind == _COMPRESSED else length
    at += descriptor & _CHECKSUM
    if at > total:
        raise _Cut(size)
    return size if said is None else min(size, said), at

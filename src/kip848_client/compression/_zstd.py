"""zstd: frames one after the other, with or without the size of their content, and frames to be
skipped."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Final

from kip848_client.compression._model import CorruptPayload, Unpacked
from kip848_client.compression._output import filled

__all__ = ["look", "pack", "unpack", "unpack_small"]

_MAGIC: Final = 0xFD2F_B528
_SKIPPED: Final = 0x184D_2A5
"""The magic of a frame to be skipped, but for its last 4 bits."""
_UINT: Final = struct.Struct("<I")
_BEGINNING: Final = struct.Struct("<IB")
"""Magic and descriptor of a frame."""
_BLOCK_BYTES_MAX: Final = 128 << 10
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_CHECKSUM: Final = 4
"""The bit of the descriptor that says that a checksum follows; it takes as many bytes."""
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
"""Up to here it is faster to let the library choose its memory, and to copy."""
_LEVEL: Final = 3
"""Kafka's ``compression.zstd.level`` (KIP-390)."""


def pack(data: bytes) -> bytes:
    """One frame."""
    return bytes(_library().compress(data, level=_LEVEL))


def look(payload: bytes, enough: int, magic: int) -> tuple[bytes, int]:
    """``payload``, and what it unpacks to at most, by the headers of its frames and blocks. More
    than ``enough`` is not counted."""
    del magic
    if (known := _plain_size_max(payload)) is not None:
        return payload, known
    size = at = 0
    try:
        while at < len(payload):
            (kind,) = _UINT.unpack_from(payload, at)
            if kind >> 4 == _SKIPPED:
                (length,) = _UINT.unpack_from(payload, at + 4)
                at += 8 + length
            elif kind == _MAGIC:
                frame_size, at = _frame(payload, at + 4, enough - size)
                size += frame_size
                if size > enough:
                    break
            else:
                raise CorruptPayload("zstd: a frame does not begin with its magic")
    except (IndexError, struct.error) as err:
        raise CorruptPayload("zstd: it ends inside of a frame") from err
    return payload, size


def unpack_small(payload: bytes, enough: int, magic: int) -> bytes | None:
    """All of it; ``None`` where it may be more than ``enough``."""
    size = _plain_size_max(payload)
    if size is None:
        _, size = look(payload, enough, magic)
    if size > enough:
        return None
    if size > _COPIED_BYTES_MAX:
        return unpack(payload, size, size, b"").data
    return bytes(_library().decompress(payload))


@cache
def _library() -> Any:
    """Imported when it is needed: to ask for it by ``import`` takes longer each time."""
    import cramjam

    return cramjam.zstd


def unpack(payload: bytes, size: int, limit: int, head: bytes) -> Unpacked:
    """See ``kip848_client.compression.unpack``."""
    return filled(_library().decompress_into, payload, size, limit, head)


def _plain_size_max(payload: bytes) -> int | None:
    """What a single frame with a single block unpacks to at most; ``None`` for others."""
    if len(payload) < _PLAIN_BYTES_MIN:
        return None
    magic, descriptor = _BEGINNING.unpack_from(payload)
    at = _HEADER_BYTES[descriptor]
    header = payload[at] | payload[at + 1] << 8 | payload[at + 2] << 16
    end = at + _BLOCK_HEADER_BYTES + (header >> 3) + (descriptor & _CHECKSUM)
    is_one = magic == _MAGIC and header & 7 == _LAST_COMPRESSED and end == len(payload)
    return _BLOCK_BYTES_MAX if is_one else None


def _frame(payload: bytes, at: int, enough: int) -> tuple[int, int]:
    """What a frame unpacks to at most, and where it ends; what follows its magic is at ``at``."""
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
        header = payload[at] | payload[at + 1] << 8 | payload[at + 2] << 16
        at += _BLOCK_HEADER_BYTES
        is_last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == _COMPRESSED:
            size += block_max
            at += length
        else:
            size += length
            at += 1 if kind == _REPEATED else length
    at += descriptor & _CHECKSUM
    if at > len(payload):
        raise CorruptPayload("zstd: it ends inside of a frame")
    return size if said is None else min(size, said), at

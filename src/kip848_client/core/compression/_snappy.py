"""snappy in the framing of Java's ``SnappyInputStream``, or as one bare block.

The framing is a header of 16 bytes (a magic, a version, the version that it is compatible with) and
blocks, each with its length before it. Some writers use other version numbers, or little endian, so
only the magic is checked. Another header may appear in place of a block.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kip848_client.core.compression._model import CorruptPayload, Unpacked
from kip848_client.core.compression._output import filled

__all__ = ["look", "pack", "unpack", "unpack_small"]

_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + struct.pack(">ii", 1, 1)
_LENGTH: Final = struct.Struct(">I")
_VERSION: Final = struct.Struct(">i")
(_HEADER_AGAIN,) = _LENGTH.unpack(_MAGIC[:4])
_BLOCK_BYTES: Final = 32 << 10
"""The data size of a block that we write, as in Java."""
_SIZE_BYTES_MAX: Final = 5


def pack(data: bytes) -> bytes:
    """In Java's framing, which all readers accept."""
    import cramjam

    view = memoryview(data)
    parts = [_HEADER]
    for start in range(0, len(data), _BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def look(payload: bytes, enough: int, magic: int) -> tuple[bytes, int]:
    """``payload``, and its unpacked size from the start of each block. Counting stops at
    ``enough``."""
    del magic
    if not payload.startswith(_MAGIC):
        return payload, _size(payload, 0)
    size = 0
    for start, _ in _blocks(payload):
        size += _size(payload, start)
        if size > enough:
            break
    return payload, size


def unpack_small(payload: bytes, enough: int, magic: int) -> bytes | None:
    """All of the data; ``None`` if it is more than ``enough``."""
    import cramjam

    _, size = look(payload, enough, magic)
    if size > enough:
        return None
    unpack_block = cramjam.snappy.decompress_raw
    if not payload.startswith(_MAGIC):
        return bytes(unpack_block(payload))
    view = memoryview(payload)
    return b"".join([bytes(unpack_block(view[start:end])) for start, end in _blocks(payload)])


def unpack(payload: bytes, size: int, limit: int, head: bytes) -> Unpacked:
    """See ``kip848_client.core.compression.unpack``. If the result is too large, it is cut between
    blocks."""
    import cramjam

    into = cramjam.snappy.decompress_raw_into
    if not payload.startswith(_MAGIC):
        if size > limit:
            return Unpacked(head, is_whole=False)
        return filled(into, payload, size, limit, head)
    view = memoryview(payload)
    taken: list[tuple[int, int, int]] = []
    total = 0
    is_whole = True
    for start, end in _blocks(payload):
        block_size = _size(payload, start)
        if total + block_size > limit:
            is_whole = False
            break
        taken.append((start, end, block_size))
        total += block_size

    def blocks_into(_payload: object, out: memoryview) -> int:
        at = 0
        for start, end, block_size in taken:
            at += into(view[start:end], out[at : at + block_size])
        return at

    data, _ = filled(blocks_into, payload, total, limit, head)
    return Unpacked(data, is_whole)


def _blocks(payload: bytes) -> Iterator[tuple[int, int]]:
    """Where each block of a framed payload begins and ends."""
    at, total = len(_HEADER), len(payload)
    if total < at:
        raise CorruptPayload("snappy: truncated in its header")
    while at < total:
        if at + _LENGTH.size > total:
            return  # Java's reader also ignores up to three bytes at the end
        (length,) = _LENGTH.unpack_from(payload, at)
        if length == _HEADER_AGAIN and payload.startswith(_MAGIC, at):
            if at + len(_HEADER) > total:
                raise CorruptPayload("snappy: truncated in a header")
            if _VERSION.unpack_from(payload, at + len(_MAGIC))[0] < 1:
                raise CorruptPayload("snappy: a header has a version below 1")
            at += len(_HEADER)
            continue
        start = at + _LENGTH.size
        at = start + length
        if at > total:
            raise CorruptPayload("snappy: truncated in a block")
        yield start, at


def _size(payload: bytes, at: int) -> int:
    """Return the unpacked size of the block at ``at``, from its first bytes."""
    size = shift = 0
    for byte in payload[at : at + _SIZE_BYTES_MAX]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
        shift += 7
    raise CorruptPayload("snappy: a block does not start with its size")

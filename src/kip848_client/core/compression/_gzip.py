"""gzip as Java's ``GZIPInputStream`` reads it: one or more members, followed by any bytes that do
not look like a member.

This module parses headers and trailers itself, because zlib refuses some that Java accepts.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Final

from kip848_client.core.compression._model import CorruptPayload, Unpacked

__all__ = ["look", "pack", "unpack", "unpack_small"]

_MAGIC: Final = b"\x1f\x8b\x08"
_HEADER_BYTES: Final = 10
_TRAILER: Final = struct.Struct("<II")
"""CRC and size of the unpacked data."""
_SIZE: Final = struct.Struct("<I")
_SHORTEST_MEMBER: Final = 19
"""After the first member, Java ignores anything shorter."""
_HEADER_CRC, _EXTRA, _NAME, _COMMENT = 0x02, 0x04, 0x08, 0x10
_PORTION: Final = 1 << 20
_FEED_MIN: Final = 1 << 10
_FEED_MAX: Final = 1 << 18


def pack(data: bytes) -> bytes:
    """One member, at zlib's default level, as Kafka's producer does."""
    return zlib.compress(data, wbits=31)


def look(payload: bytes, enough: int, magic: int) -> tuple[bytes, int]:
    """``payload``, and the unpacked size from the trailer of its last member. The size may be
    wrong; ``unpack`` counts."""
    del enough, magic
    if len(payload) < _TRAILER.size:
        return payload, 0
    (size,) = _SIZE.unpack_from(payload, len(payload) - _SIZE.size)
    return payload, int(size)


def unpack_small(payload: bytes, enough: int, magic: int) -> bytes | None:
    """All of the data; ``None`` if it is, or claims to be, more than ``enough``."""
    _, size = look(payload, enough, magic)
    if size > enough:
        return None
    data, is_whole = unpack(payload, size, enough, b"")
    return data if is_whole else None


def unpack(payload: bytes, size: int, limit: int, head: bytes) -> Unpacked:
    """See ``kip848_client.core.compression.unpack``."""
    del size
    out = BytesIO()
    out.write(head)
    left = limit
    view = memoryview(payload)
    at: int | None = _after_header(payload, 0)
    if at is None:
        raise CorruptPayload("gzip: the data does not start with a member header")
    feed = len(payload)
    while at is not None:
        at, left = _member(view, at, feed, out, left)
        if left < 0:
            return Unpacked(out.getvalue(), is_whole=False)
        # zlib copies unused input, so later members are fed in small pieces
        feed = _FEED_MIN
        at = _after_header(payload, at) if len(payload) - at >= _SHORTEST_MEMBER else None
    return Unpacked(out.getvalue(), is_whole=True)


def _member(view: memoryview, at: int, feed: int, out: BytesIO, left: int) -> tuple[int, int]:
    """Unpack a member whose header ends at ``at``; returns where it ends, and how many bytes may
    still be written: -1 where the limit was reached before its end."""
    deflated = zlib.decompressobj(-15)
    crc, size = 0, 0
    rest: bytes | memoryview = b""
    try:
        while not deflated.eof:
            if not rest:
                rest = view[at : at + feed]
                at += len(rest)
                feed = min(feed * 2, _FEED_MAX) if feed <= _FEED_MAX else feed
                if not rest and not deflated.unconsumed_tail:
                    raise CorruptPayload("gzip: truncated in a member")
            portion = deflated.decompress(rest, min(left + 1, _PORTION))
            rest = deflated.unconsumed_tail
            if len(portion) > left:
                out.write(memoryview(portion)[:left])
                return at, -1
            out.write(portion)
            left -= len(portion)
            crc, size = zlib.crc32(portion, crc), size + len(portion)
    except zlib.error as err:
        raise CorruptPayload(f"gzip: {err}") from err
    at -= len(deflated.unused_data)
    if at + _TRAILER.size > len(view):
        raise CorruptPayload("gzip: truncated in a member")
    if _TRAILER.unpack_from(view, at) != (crc, size & 0xFFFF_FFFF):
        raise CorruptPayload("gzip: wrong checksum or size of a member")
    return at + _TRAILER.size, left


def _after_header(payload: bytes, at: int) -> int | None:
    """The end of the header that starts at ``at``; ``None`` if there is none."""
    start = at
    if payload[at : at + len(_MAGIC)] != _MAGIC or len(payload) < at + _HEADER_BYTES:
        return None
    flags = payload[at + 3]
    at += _HEADER_BYTES
    if flags & _EXTRA:
        if at + 2 > len(payload):
            return None
        at += 2 + int.from_bytes(payload[at : at + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            at = payload.find(b"\0", at) + 1
            if not at:
                return None
    if flags & _HEADER_CRC:
        said = int.from_bytes(payload[at : at + 2], "little")
        if zlib.crc32(payload[start:at]) & 0xFFFF != said:
            return None
        at += 2
    return at if at <= len(payload) else None

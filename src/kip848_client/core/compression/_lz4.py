"""lz4 in frames, as Kafka reads them.

Kafka's reader takes some frames that the library refuses, and those are rewritten before the
library sees them:

- It ignores the optional size and checksum of a frame's content.
- In messages of magic 0 it ignores the checksum of the frame's header: Kafka 0.8 and 0.9 computed
  it over too many bytes (KAFKA-3160).
- It ends after the first frame and ignores the rest.
- A stored block without bytes ends a frame, too.

And it refuses what the library takes: blocks that depend on those before them, dictionaries, and
frames to be skipped.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from kip848_client.core.compression._model import CorruptPayload, Unpacked
from kip848_client.core.compression._output import filled

__all__ = ["look", "pack", "unpack", "unpack_small"]

_MAGIC: Final = b"\x04\x22\x4d\x18"
_VERSION: Final = 0x40
_VERSION_MASK: Final = 0xC0
_INDEPENDENT: Final = 0x20
_BLOCK_CHECKSUMS: Final = 0x10
_CONTENT_SIZE: Final = 0x08
_CONTENT_CHECKSUM: Final = 0x04
_RESERVED: Final = 0x03
"""In Kafka; in general the last bit means that there is a dictionary."""
_SIZES_MASK: Final = 0x70
_PLAIN_HEADER_BYTES: Final = 7
_END: Final = b"\0\0\0\0"
_STORED: Final = 0x8000_0000
_BLOCK_BYTES_MAX: Final = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_RATIO_MAX: Final = 255
_COPIED_BYTES_MAX: Final = 128 << 10
"""Up to this size it is faster to let the library allocate, and to copy the result."""
_LEVEL: Final = 9
"""Kafka's ``compression.lz4.level`` (KIP-390)."""


def pack(data: bytes) -> bytes:
    """One frame of independent blocks without checksums: Kafka's reader supports no other
    blocks."""
    compressor = _library().Compressor(level=_LEVEL, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def look(payload: bytes, enough: int, magic: int) -> tuple[bytes, int]:
    """Return the frame in a form that the library accepts, and an upper bound of the unpacked
    size.
    """
    size = _plain_size_max(payload, enough)
    if size is not None:
        return payload, size
    frame = _Frame(payload)
    size = frame.size_max()
    header = frame.header(check=magic > 0)
    return b"".join((header, payload[frame.blocks : frame.blocks_end], _END)), size


def unpack_small(payload: bytes, enough: int, magic: int) -> bytes | None:
    """All of the data; ``None`` if it may be more than ``enough``."""
    size = _plain_size_max(payload, enough)
    if size is None:
        payload, size = look(payload, enough, magic)
    if size > enough:
        return None
    if size > _COPIED_BYTES_MAX:
        return unpack(payload, size, size, b"").data
    return bytes(_library().decompress(payload))


@cache
def _library() -> Any:
    """Imported on first use. Cached, because ``import`` on each call is slower."""
    import cramjam

    return cramjam.lz4


def unpack(payload: bytes, size: int, limit: int, head: bytes) -> Unpacked:
    """See ``kip848_client.core.compression.unpack``."""
    return filled(_library().decompress_into, payload, size, limit, head)


def _plain_size_max(payload: bytes, enough: int) -> int | None:
    """Like ``look``, for a single frame that needs no rewriting; ``None`` for others."""
    if len(payload) < _PLAIN_HEADER_BYTES or payload[:4] != _MAGIC:
        return None
    checksum, block_max, after = _plain_header(payload[4:6])
    if payload[6] != checksum:
        return None
    size, at, end = 0, _PLAIN_HEADER_BYTES, len(payload) - 4
    while at < end:
        length = int.from_bytes(payload[at : at + 4], "little")
        if length & _STORED:
            length ^= _STORED
            size += length
        else:
            size += min(block_max, length * _RATIO_MAX)
        if not 0 < length <= block_max:
            return None
        at += 4 + length + after
        if size > enough:
            return size
    return size if at == end and payload[at:] == _END else None


@cache
def _plain_header(descriptor: bytes) -> tuple[int, int, int]:
    """The checksum of such a header (-1 if it is not plain), the size of the following blocks, and
    the number of bytes after each.
    """
    from xxhash import xxh32_intdigest

    flags, sizes = descriptor
    block_max = _BLOCK_BYTES_MAX.get(sizes >> 4, 0)
    is_plain = block_max and flags & ~_BLOCK_CHECKSUMS == _VERSION | _INDEPENDENT
    checksum = xxh32_intdigest(descriptor) >> 8 & 0xFF if is_plain else -1
    return checksum, block_max, 4 if flags & _BLOCK_CHECKSUMS else 0


class _Frame:
    """The first frame of a payload. ``size_max`` finds the end of its blocks."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        if payload[:4] != _MAGIC:
            raise CorruptPayload("lz4: the data does not start with a frame")
        self._flags = self._byte(4)
        sizes = self._byte(5)
        self._block_max = _BLOCK_BYTES_MAX.get(sizes >> 4, 0)
        if self._flags & _VERSION_MASK != _VERSION or not self._block_max:
            raise CorruptPayload("lz4: invalid frame header")
        if not self._flags & _INDEPENDENT:
            raise CorruptPayload("lz4: the blocks depend on each other, which Kafka does not allow")
        if self._flags & _RESERVED or sizes & ~_SIZES_MASK:
            raise CorruptPayload("lz4: the header of a frame has bits that are reserved in Kafka")
        self._checksum_at = 14 if self._flags & _CONTENT_SIZE else 6
        self.blocks = self._checksum_at + 1
        self.blocks_end = self.blocks
        """Before the end mark."""

    def size_max(self) -> int:
        """An upper bound of the unpacked size."""
        size, at = 0, self.blocks
        after = 4 if self._flags & _BLOCK_CHECKSUMS else 0
        while True:
            word = self._uint(at)
            length = word & ~_STORED
            if not length:
                break
            size += length if word & _STORED else min(self._block_max, length * _RATIO_MAX)
            if length > self._block_max:
                raise CorruptPayload("lz4: a block is larger than its frame allows")
            at += 4 + length + after
        self.blocks_end = at
        if self._flags & _CONTENT_CHECKSUM:
            self._uint(at + 4)
        return size

    def header(self, *, check: bool) -> bytes:
        """The header, without size and checksum of the content."""
        from xxhash import xxh32_intdigest

        descriptor = self._payload[4 : self._checksum_at]
        said = self._byte(self._checksum_at)
        if check and xxh32_intdigest(descriptor) >> 8 & 0xFF != said:
            raise CorruptPayload("lz4: wrong checksum of a frame header")
        flags = self._flags & ~(_CONTENT_SIZE | _CONTENT_CHECKSUM)
        descriptor = bytes((flags, descriptor[1]))
        return _MAGIC + descriptor + bytes((xxh32_intdigest(descriptor) >> 8 & 0xFF,))

    def _byte(self, at: int) -> int:
        if at >= len(self._payload):
            raise CorruptPayload("lz4: truncated in a frame")
        return self._payload[at]

    def _uint(self, at: int) -> int:
        if at + 4 > len(self._payload):
            raise CorruptPayload("lz4: truncated in a frame")
        return int.from_bytes(self._payload[at : at + 4], "little")

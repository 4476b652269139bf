"""The common interface to all codecs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kip848_client.core.compression import _gzip, _lz4, _snappy, _zstd
from kip848_client.core.compression._model import (
    SMALL_BYTES,
    CorruptPayload,
    UnknownCodec,
    Unpacked,
)

__all__ = ["pack", "unpack", "unpack_small"]

_SMALL_PAYLOAD_BYTES: Final = 1 << 20
"""For a larger payload it takes too long to compute the unpacked size."""


class _Codec(NamedTuple):
    look: Callable[[bytes, int, int], tuple[bytes, int]]
    """Returns the part of a payload to unpack, and an upper bound of its unpacked size (or a bit
    more than the second argument). The third argument is the magic of the batch."""
    unpack_small: Callable[[bytes, int, int], bytes | None]
    """Unpacks a payload; ``None`` if that may give more than the second argument."""
    unpack: Callable[[bytes, int, int, bytes], Unpacked]
    """Takes the result of ``look``, the limit, and the bytes to write first."""
    pack: Callable[[bytes], bytes]


_CODECS: Final = {
    1: _Codec(_gzip.look, _gzip.unpack_small, _gzip.unpack, _gzip.pack),
    2: _Codec(_snappy.look, _snappy.unpack_small, _snappy.unpack, _snappy.pack),
    3: _Codec(_lz4.look, _lz4.unpack_small, _lz4.unpack, _lz4.pack),
    4: _Codec(_zstd.look, _zstd.unpack_small, _zstd.unpack, _zstd.pack),
}


def unpack_small(number: int, payload: bytes, limit: int, magic: int = 2) -> bytes | None:
    """Unpack a payload if that is fast enough for an event loop.

    Args:
        number: Kafka's number of the codec.
        payload: The compressed bytes.
        limit: The maximum unpacked size in bytes.
        magic: The format of the batch, 0 to 2.

    Returns:
        The unpacked bytes; ``None`` if they may exceed ``SMALL_BYTES`` or ``limit``. Then call
        ``unpack``.

    Raises:
        CorruptPayload: The payload is invalid.
        UnknownCodec: The codec is unknown.
    """
    codec = _CODECS.get(number) or _codec(number)
    if len(payload) > _SMALL_PAYLOAD_BYTES:
        return None
    try:
        return codec.unpack_small(payload, min(limit, SMALL_BYTES), magic)
    except CorruptPayload:
        raise
    except Exception as err:  # each library raises its own classes
        raise CorruptPayload(str(err)) from err


def unpack(
    number: int, payload: bytes, limit: int, *, magic: int = 2, head: bytes = b""
) -> Unpacked:
    """Unpack a payload up to a limit.

    This can take seconds, so call it in a thread; it releases the GIL.

    Args:
        number: Kafka's number of the codec.
        payload: The compressed bytes.
        limit: The maximum unpacked size in bytes.
        magic: The format of the batch, 0 to 2.
        head: Bytes to put before the result; they do not count towards ``limit``.

    Returns:
        The unpacked bytes, or the first ``limit`` bytes if there are more.

    Raises:
        CorruptPayload: The payload is invalid.
        UnknownCodec: The codec is unknown.
    """
    codec = _codec(number)
    payload, size = codec.look(payload, limit, magic)
    return codec.unpack(payload, size, limit, head)


def pack(number: int, data: bytes) -> bytes:
    """Compress data.

    Args:
        number: Kafka's number of the codec; 0 for none.
        data: The bytes to compress.

    Returns:
        The compressed bytes.

    Raises:
        UnknownCodec: The codec is unknown.
    """
    return _codec(number).pack(data) if number else bytes(data)


def _codec(number: int) -> _Codec:
    codec = _CODECS.get(number)
    if codec is None:
        raise UnknownCodec(number)
    return codec

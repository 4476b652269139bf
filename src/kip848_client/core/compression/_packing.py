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
    """Unpack ``payload`` if that is fast. ``None`` if the result may exceed ``SMALL_BYTES`` or
    ``limit``; then call ``unpack``.

    ``number`` is Kafka's number of the codec, ``magic`` that of the batch. Raises
    ``CorruptPayload`` and ``UnknownCodec``.
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
    """Unpack ``payload``, or its first ``limit`` bytes if it unpacks to more.

    ``head`` is put before the result and not counted. Otherwise like ``unpack_small``, but this can
    take seconds: call it in a thread. It releases the GIL.
    """
    codec = _codec(number)
    payload, size = codec.look(payload, limit, magic)
    return codec.unpack(payload, size, limit, head)


def pack(number: int, data: bytes) -> bytes:
    """Return ``data`` compressed by the codec with this number; 0 returns it unchanged."""
    return _codec(number).pack(data) if number else bytes(data)


def _codec(number: int) -> _Codec:
    codec = _CODECS.get(number)
    if codec is None:
        raise UnknownCodec(number)
    return codec

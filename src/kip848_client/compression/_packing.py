"""One way in and one way out for all codecs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kip848_client.compression import _gzip, _lz4, _snappy, _zstd
from kip848_client.compression._model import (
    SMALL_BYTES,
    CorruptPayload,
    UnknownCodec,
    Unpacked,
)

__all__ = ["pack", "unpack", "unpack_small"]

_SMALL_PAYLOAD_BYTES: Final = 1 << 20
"""Of more than this it takes too long to find out what it unpacks to."""


class _Codec(NamedTuple):
    look: Callable[[bytes, int, int], tuple[bytes, int]]
    """What is to be unpacked of a payload, and what it unpacks to at most (or just more than the
    second argument). The third is the magic of the batch."""
    unpack_small: Callable[[bytes, int, int], bytes | None]
    """All of a payload; ``None`` where it may be more than the second argument."""
    unpack: Callable[[bytes, int, int, bytes], Unpacked]
    """By what ``look`` has returned, the limit, and what to write before it."""
    pack: Callable[[bytes], bytes]


_CODECS: Final = {
    1: _Codec(_gzip.look, _gzip.unpack_small, _gzip.unpack, _gzip.pack),
    2: _Codec(_snappy.look, _snappy.unpack_small, _snappy.unpack, _snappy.pack),
    3: _Codec(_lz4.look, _lz4.unpack_small, _lz4.unpack, _lz4.pack),
    4: _Codec(_zstd.look, _zstd.unpack_small, _zstd.unpack, _zstd.pack),
}


def unpack_small(number: int, payload: bytes, limit: int, magic: int = 2) -> bytes | None:
    """What ``payload`` unpacks to, if that is quickly done: ``None`` where it may be more than
    ``SMALL_BYTES`` or ``limit``, which ``unpack`` finds out.

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
    """What ``payload`` unpacks to, or the beginning of it where that is more than ``limit`` bytes.

    ``head`` is put before it, and not counted. The rest is as in ``unpack_small``, but this may
    take seconds: call it in a thread. It lets other threads run.
    """
    codec = _codec(number)
    payload, size = codec.look(payload, limit, magic)
    return codec.unpack(payload, size, limit, head)


def pack(number: int, data: bytes) -> bytes:
    """``data``, compressed by the codec with this number; 0 leaves it as it is."""
    return _codec(number).pack(data) if number else bytes(data)


def _codec(number: int) -> _Codec:
    codec = _CODECS.get(number)
    if codec is None:
        raise UnknownCodec(number)
    return codec

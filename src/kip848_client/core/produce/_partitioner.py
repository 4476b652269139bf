"""Chooses the partition of a key as Java's producer does.

A key always goes to the same partition, by the murmur2 hash of its bytes.

A C extension computes it if one could be built (see ``hatch_build.py``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from kip848_client.core.extensions import ALLOWED

__all__ = ["HASHES", "murmur2", "partition_of_key"]

_SEED: Final = 0x9747B28C
_MIX: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF
_CACHED_KEY_BYTES_MAX: Final = 64
"""Longer keys are not cached: they would fill memory."""
_WORDS: Final = tuple(
    struct.Struct(f"<{words}I").unpack_from for words in range(_CACHED_KEY_BYTES_MAX // 4 + 1)
)
"""Unpackers, by the number of words."""


def murmur2(data: bytes) -> int:
    """Java's ``Utils.murmur2``, as an unsigned number."""
    length = len(data)
    words = length >> 2
    h = _SEED ^ length
    read = _WORDS[words] if words < len(_WORDS) else struct.Struct(f"<{words}I").unpack_from
    for word in read(data):
        k = word * _MIX & _MASK
        h = (h * _MIX ^ (k ^ k >> 24) * _MIX) & _MASK
    if length & 3:
        h = (h ^ int.from_bytes(data[words << 2 :], "little")) * _MIX & _MASK
    h = (h ^ h >> 13) * _MIX & _MASK
    return h ^ h >> 15


_remembered: Final = lru_cache(maxsize=8_192)(murmur2)


def _hash_of(key: bytes) -> int:
    return _remembered(key) if len(key) <= _CACHED_KEY_BYTES_MAX else murmur2(key)


HASHES: Final[dict[bool, Callable[[bytes], int]]] = {False: _hash_of}
"""By whether it is compiled."""
if ALLOWED:
    try:
        from kip848_client.core.produce._murmur2 import murmur2 as _compiled
    except ImportError:
        pass  # it was installed without a compiler
    else:
        HASHES[True] = _compiled

_hash: Final = HASHES.get(True, _hash_of)


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of a key among this number of partitions."""
    return (_hash(key) & _POSITIVE) % partitions

"""Which partition a record goes to, as Java's producer chooses it.

A key always goes to the same partition: murmur2 of its bytes. Records without a key stay with one
partition for a batch's worth of bytes, so that batches are full and all partitions get the same
(KIP-480, KIP-794).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

__all__ = ["Choose", "Sticky", "murmur2", "partition_of_key"]

Choose = Callable[[int], int]
"""Gets n and gives one of 0 .. n-1, each as likely as the others."""

_SEED: Final = 0x9747B28C
_MIX: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF
_CACHED_KEY_BYTES_MAX: Final = 64
"""Longer keys are hashed each time: they would fill memory."""


def murmur2(data: bytes) -> int:
    """Java's ``Utils.murmur2``, as an unsigned number."""
    length = len(data)
    words = length >> 2
    h = _SEED ^ length
    for word in struct.unpack_from(f"<{words}I", data):
        k = word * _MIX & _MASK
        h = h * _MIX & _MASK ^ (k ^ k >> 24) * _MIX & _MASK
    rest = int.from_bytes(data[words << 2 :], "little")
    if length & 3:
        h = (h ^ rest) * _MIX & _MASK
    h = (h ^ h >> 13) * _MIX & _MASK
    return h ^ h >> 15


_remembered: Final = lru_cache(maxsize=8_192)(murmur2)


def partition_of_key(key: bytes, partitions: int) -> int:
    """Where a key belongs among so many partitions."""
    hashed = _remembered(key) if len(key) <= _CACHED_KEY_BYTES_MAX else murmur2(key)
    return (hashed & _POSITIVE) % partitions


class Sticky:
    """The partition of a topic that records without a key go to at the moment."""

    __slots__ = ("_bytes", "_choose", "_left", "_limit_bytes", "partition")

    def __init__(self, choose: Choose, limit_bytes: int) -> None:
        self._choose = choose
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._left: int | None = None
        self.partition: int | None = None

    def pick(self, led: Sequence[int], waiting: Callable[[int], int]) -> int:
        """Choose another one among ``led``, those that have a leader: of two, the one with fewer
        batches ``waiting``, so that a slow broker gets less."""
        others = [each for each in led if each != self._left] or led
        one, two = (others[self._choose(len(others))] for _ in range(2))
        self.partition = two if waiting(two) < waiting(one) else one
        self._bytes = 0
        return self.partition

    def closed(self, partition: int, size_bytes: int, *, full: bool) -> bool:
        """A batch takes no more records. Returns whether it is another partition's turn."""
        if partition != self.partition:
            return False
        self._bytes += size_bytes
        return full or self._bytes >= self._limit_bytes

    def leave(self) -> None:
        """The next record goes elsewhere."""
        self._left, self.partition = self.partition, None

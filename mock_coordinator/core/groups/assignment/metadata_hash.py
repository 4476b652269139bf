"""The hash by which a group detects changes of its topics (KIP-1101, Kafka 4.1 and later).

Theory of operation
===================

Each topic has a hash of its id, name, number of partitions and the racks of each partition's
replicas; the group's hash is computed from those of its topics, sorted by name. Both are XXH3 with
64 bits and seed 0. The value is stored in the record of the group epoch, so a Kafka broker that
reads our records must compute the same one: the layout of the input is part of the record format.

Numbers are little-endian, text is its UTF-16 code units followed by their number::

    topic   int8 0, int64 high half of the id, int64 low half, text name, int32 partitions, then
            for each partition  int32 index, and for each rack, sorted,  int32 length, text rack
    group   int64 hash of each topic that exists

If none of a group's topics exists, the hash is 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

import xxhash

from kip848_client.core.types import TopicId

__all__ = ["NO_RACKS", "Racks", "group_hash", "topic_hash"]

Racks: TypeAlias = tuple[tuple[str, ...], ...]
"""The racks of each partition's replicas, in any order. Fewer entries than there are partitions
are repeated, so that a cluster in one rack needs one entry for all its topics."""

NO_RACKS: Final[Racks] = ()

_FORMAT: Final = 0
_TOPIC_HEAD: Final = struct.Struct("<bqq")
_ID_HALVES: Final = struct.Struct(">qq")
_INT: Final = struct.Struct("<i")
_UNSIGNED_LONG: Final = struct.Struct("<Q")
_REMEMBERED: Final = 8192


@lru_cache(maxsize=_REMEMBERED)
def topic_hash(name: str, topic_id: TopicId, partitions: int, racks: Racks = NO_RACKS) -> int:
    """The hash of one topic, as an unsigned number of 64 bits."""
    digest = xxhash.xxh3_64()
    digest.update(_TOPIC_HEAD.pack(_FORMAT, *_ID_HALVES.unpack(topic_id)))
    digest.update(_text(name) + _INT.pack(partitions))
    if not racks:
        digest.update(struct.pack(f"<{partitions}i", *range(partitions)))
    else:
        written = [_racks(each) for each in racks]
        for partition in range(partitions):
            digest.update(_INT.pack(partition) + written[partition % len(written)])
    return digest.intdigest()


def group_hash(topics: Iterable[int]) -> int:
    """The hash of a group whose existing topics, sorted by name, have these hashes; signed, as
    Kafka stores it."""
    data = b"".join(map(_UNSIGNED_LONG.pack, topics))
    if not data:
        return 0
    unsigned = xxhash.xxh3_64_intdigest(data)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def _racks(racks: Iterable[str]) -> bytes:
    # Java sorts by UTF-16 units
    ordered = sorted(racks, key=lambda rack: rack.encode("utf-16-be", "surrogatepass"))
    return b"".join(_INT.pack(_units(rack)) + _text(rack) for rack in ordered)


def _text(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass") + _INT.pack(_units(text))


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

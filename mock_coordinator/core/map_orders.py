"""The order of partitions in Kafka's responses: that of the maps that a broker uses.

Theory of operation
===================

Where a broker sorts the partitions of a request into maps, its response has the order of those
maps, and duplicates leave one entry. There are three kinds of map:

* Java's ``HashMap``: buckets in turn, keys of one bucket in order of insertion;
* Scala's ``mutable.HashMap``: buckets in turn, keys of one bucket by their hash; it grows earlier;
* Scala's immutable ``Map``: up to four keys in order of insertion, and a trie beyond. ``groupBy``
  makes a trie of any number of groups.

Orders were compared with brokers 4.0.2 and 4.4.0, for up to forty partitions of eight topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from kip848_client.core.assignors._java_order import (
    DEFAULT_CAPACITY,
    string_hash,
    string_map_order,
    table_order,
    topic_hash,
)
from kip848_client.core.types import TopicId

__all__ = [
    "grouped_as_scala",
    "id_partition_code",
    "java_order",
    "partition_code",
    "scala_map_order",
    "scala_mutable_order",
    "string_hash",
    "string_map_order",
]

K = TypeVar("K")

_MASK_32: Final = 0xFFFFFFFF
_SMALL_MAP: Final = 4
_TRIE_BITS: Final = 5
_HASH_BITS: Final = 32

Partition = tuple[str, int]
"""Topic name and partition number."""


def partition_code(partition: Partition) -> int:
    """``TopicPartition.hashCode()`` as an unsigned 32-bit number."""
    name, index = partition
    return 31 * (31 + index) + string_hash(name) & _MASK_32


def id_partition_code(topic_id: TopicId, partition: Partition) -> int:
    """``TopicIdPartition.hashCode()`` as an unsigned 32-bit number."""
    return 31 * (31 + topic_hash(topic_id)) + partition_code(partition) & _MASK_32


def _spread(code: int) -> int:
    code &= _MASK_32
    return code ^ code >> 16


def java_order(keys: Iterable[K], code: Callable[[K], int]) -> list[K]:
    """The order of a Java map that got these keys in order; each comes once."""
    return table_order(list(dict.fromkeys(keys)), lambda key: _spread(code(key)), DEFAULT_CAPACITY)


def scala_mutable_order(keys: Iterable[K], code: Callable[[K], int]) -> list[K]:
    """The order of a mutable Scala map that got these keys; each comes once."""
    distinct = list(dict.fromkeys(keys))
    capacity = DEFAULT_CAPACITY
    while len(distinct) >= capacity * 3 // 4:
        capacity *= 2

    def place(key: K) -> tuple[int, int]:
        spread = _spread(code(key))
        signed = spread - (1 << _HASH_BITS) if spread >> _HASH_BITS - 1 else spread
        return spread & capacity - 1, signed

    return sorted(distinct, key=place)


def scala_map_order(keys: Iterable[K], code: Callable[[K], int]) -> list[K]:
    """The order of an immutable Scala map that got these keys in order; each comes once."""
    distinct = list(dict.fromkeys(keys))
    return distinct if len(distinct) <= _SMALL_MAP else _trie_order(distinct, code)


def _trie_order(keys: Sequence[K], code: Callable[[K], int], shift: int = 0) -> list[K]:
    """In each node the keys that are alone in their place come first, then the deeper nodes."""
    if len(keys) <= 1 or shift >= _HASH_BITS:
        return list(keys)
    places: dict[int, list[K]] = {}
    for key in keys:
        place = _improved(code(key)) >> shift & (1 << _TRIE_BITS) - 1
        places.setdefault(place, []).append(key)
    in_turn = [places[place] for place in sorted(places)]
    alone = [found[0] for found in in_turn if len(found) == 1]
    for found in in_turn:
        if len(found) > 1:
            alone += _trie_order(found, code, shift + _TRIE_BITS)
    return alone


def _improved(code: int) -> int:
    """What Scala's tries make of a hash code."""
    code &= _MASK_32
    code = code + ~(code << 9) & _MASK_32
    code ^= code >> 14
    code = code + (code << 4) & _MASK_32
    return code ^ code >> 10


def grouped_as_scala(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    """Partitions of a mutable Scala map by topic, as its ``groupBy`` puts them."""
    topics: dict[str, list[Partition]] = {}
    for partition in dict.fromkeys(partitions):
        topics.setdefault(partition[0], []).append(partition)
    return {
        name: [index for _, index in scala_mutable_order(topics[name], partition_code)]
        for name in _trie_order(list(topics), string_hash)
    }

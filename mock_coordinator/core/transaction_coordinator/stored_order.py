"""The order in which a broker writes the partitions of a transaction: that of its hash sets.

Kafka keeps the partitions of a transaction in a set, groups them by topic when it writes a record,
and writes both levels in the order in which the collections iterate. These collections changed
twice: Scala's immutable sets (4.0), Scala's mutable ones (4.1 and 4.2), Java's (4.3 and later). No
client relies on it, but only with this order is a log equal to a broker's.

Theory
------
* Java: ``_java_order`` has the rules. A transaction whose outcome is decided has a copy of the set;
  an open one has a copy of what it had before, to which partitions were added. The map of topics is
  filled by ``computeIfAbsent``, which puts the newest first in each bucket.
* A mutable set of Scala is also an array of buckets, which begins with 16 and doubles when it is
  three quarters full; inside a bucket entries are sorted by their hash.
* An immutable set or map of Scala with more than four entries is a tree: at each level five bits of
  the mixed hash are the place; entries that have a place for themselves come first, then the
  subtrees. Up to four entries stay in order of insertion, which here is the order of the mutable
  set that they were copied from; that has eight buckets when partitions were just added, because it
  was made for their number. The map of topics is always such a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from kip848_client.core.assignors._java_order import (
    DEFAULT_CAPACITY,
    grown,
    set_copy_capacity,
    string_hash,
    string_map_order,
    table_order,
)
from mock_coordinator.core.profile import TransactionSets
from mock_coordinator.core.transaction_coordinator.records import TransactionMetadata, TxnPartition

__all__ = ["stored_partitions"]

K = TypeVar("K")

_MASK_32: Final = 0xFFFF_FFFF
_LEVEL_BITS: Final = 5
_LAST_LEVEL: Final = 30
_SMALL: Final = 4


def stored_partitions(
    sets: TransactionSets, stored: TransactionMetadata
) -> list[tuple[str, list[int]]]:
    """The topics of a transaction with their partitions, as a broker with such sets writes them."""
    if sets is TransactionSets.JAVA:
        topics = _grouped(_java_order(stored))
        return [(topic, topics[topic]) for topic in string_map_order(reversed(topics))]
    partitions: Sequence[TxnPartition] = stored.partitions
    immutable = sets is TransactionSets.SCALA_IMMUTABLE
    stays_small = immutable and len(partitions) <= _SMALL
    if stays_small:
        partitions = _mutable_order(partitions, _hash, 16 if stored.state.is_prepared else 8)
    topics = _grouped(partitions)
    for topic, indexes in topics.items():
        if not immutable:
            topics[topic] = _mutable_order(indexes, int)
        elif not stays_small:
            topics[topic] = _tree_order(indexes, int)
    return [(topic, topics[topic]) for topic in _tree_order(topics, string_hash)]


def _grouped(partitions: Iterable[TxnPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _hash(partition: TxnPartition) -> int:
    """``TopicPartition.hashCode()`` as an unsigned number."""
    topic, index = partition
    return (31 * (31 + index) + string_hash(topic)) & _MASK_32


def _java_order(stored: TransactionMetadata) -> list[TxnPartition]:
    partitions = stored.partitions
    capacity = grown(DEFAULT_CAPACITY, len(partitions))
    if stored.state.is_prepared:
        capacity = set_copy_capacity(len(partitions))
    return table_order(partitions, lambda each: _spread(_hash(each)), capacity)


def _spread(code: int) -> int:
    return code ^ code >> 16


def _mutable_order(
    keys: Sequence[K], code_of: Callable[[K], int], capacity: int = DEFAULT_CAPACITY
) -> list[K]:
    while len(keys) * 4 >= capacity * 3:
        capacity *= 2

    def place(key: K) -> tuple[int, int]:
        code = _spread(code_of(key) & _MASK_32)
        signed = code - (1 << 32) if code >> 31 else code
        return code & (capacity - 1), signed

    return sorted(keys, key=place)


def _tree_order(keys: Iterable[K], code_of: Callable[[K], int]) -> list[K]:
    return _level_order([(_mixed(code_of(key)), key) for key in keys], 0)


def _level_order(entries: list[tuple[int, K]], shift: int) -> list[K]:
    places: dict[int, list[tuple[int, K]]] = {}
    for entry in entries:
        places.setdefault(entry[0] >> shift & 31, []).append(entry)
    inner = [places[place] for place in sorted(places)]
    order = [each[0][1] for each in inner if len(each) == 1]
    for each in inner:
        if len(each) > 1 and shift < _LAST_LEVEL:
            order += _level_order(each, shift + _LEVEL_BITS)
        elif len(each) > 1:
            order += [key for _, key in each]
    return order


def _mixed(code: int) -> int:
    """What Scala makes of a hash code before it picks places."""
    code &= _MASK_32
    code = code + (~(code << 9) & _MASK_32) & _MASK_32
    code ^= code >> 14
    code = code + (code << 4) & _MASK_32
    return code ^ code >> 10

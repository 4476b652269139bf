"""The order in which Kafka's Java collections iterate: what makes targets equal to a broker's.

Kafka's assignors walk ``HashMap``s and ``HashSet``s, and where the walk decides (which one is first
to get an extra partition, which partition of a topic is given up), the answer depends on the hash
of a member id, a topic id or a partition number. Nothing here holds values; it computes orders.

Theory
------
* A ``java.util.HashMap`` is an array of buckets, a power of two long. Iteration walks the buckets,
  and inside a bucket the entries in the order of insertion. Growth doubles the array and splits
  each bucket without changing the order inside. So the iteration order is nothing but **a stable
  sort of the insertion order by bucket number of the final capacity** (:func:`table_order`), and
  the final capacity depends on the initial one and the largest size reached (:func:`grown`).
  Removing entries never shrinks the array.
* A partition number is its own hash: the spreading step leaves numbers below 65536 as they are,
  and no Kafka topic has more partitions.
* The initial capacity depends on the constructor: ``new HashMap()`` 16 (``DEFAULT_CAPACITY``),
  ``new HashSet(collection)`` :func:`set_copy_capacity`, ``new HashMap(map)``
  :func:`map_copy_capacity`, ``new HashMap(n)`` :func:`table_size_for`.
* A ninth entry in one bucket doubles an array that is shorter than 64 (Java would otherwise turn
  the bucket into a tree). That is modelled. In longer arrays such a bucket becomes a red-black
  tree, whose root moves to the front of the bucket; that is **not** modelled. It needs nine
  colliding keys in 64 or more buckets. Random ids and ids numbered in sequence do not do that
  (checked up to 10,000 members); the partitions of one topic held by one member can, when they are
  many and all equal modulo 32 or 64. Only the order inside such a bucket is then ours.
* ``computeIfAbsent`` differs from ``put``: a new entry goes to the front of its bucket, and the
  array grows before the next call instead of after the insertion (``_draft.py``).
* A group's members live in Kafka's own ``TimelineHashMap``, with another hash and another growth
  rule (:class:`TimelineOrder`).

All numbers were compared with Java 17 and with the classes of Kafka 4.0.2 to 4.4.0. Java 19 made
the two copying constructors a little tighter (a copy of exactly 12, 24, 48, .. entries gets half
the buckets); brokers on such a Java can differ there, and only there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import mul
from typing import Final, TypeVar

from kip848_client.core.types import MemberId, TopicId

__all__ = [
    "DEFAULT_CAPACITY",
    "TimelineOrder",
    "bucket_order",
    "capacity_with",
    "grown",
    "map_copy_capacity",
    "member_order",
    "partition_bucket_order",
    "partition_order",
    "partitions_capacity",
    "set_copy_capacity",
    "settled_capacity",
    "string_hash",
    "string_map_order",
    "string_set_order",
    "string_spread",
    "table_order",
    "table_size_for",
    "topic_hash",
    "topic_spread",
    "utf16_key",
]

K = TypeVar("K")

DEFAULT_CAPACITY: Final = 16
"""Buckets of a ``HashMap`` made without a size."""

_MASK_32: Final = 0xFFFF_FFFF
_MASK_64: Final = 0xFFFF_FFFF_FFFF_FFFF
_LONG_BUCKET: Final = 8  # entries that fit a bucket before Java reacts
_TREES_FROM: Final = 64  # capacity from which a long bucket becomes a tree
_FIBONACCI: Final = -7046029254386353131  # multiplier of the timeline table's second hash


# --- Hashes ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _powers(length: int) -> tuple[int, ...]:
    """31 to the power of length-1 .. 0, mod 2^32: the weights of a string's units."""
    weights = [1] * length
    for place in range(length - 2, -1, -1):
        weights[place] = weights[place + 1] * 31 & _MASK_32
    return tuple(weights)


@lru_cache(maxsize=1 << 15)
def string_hash(text: str) -> int:
    """``String.hashCode()`` as a signed 32-bit number, over UTF-16 code units."""
    if text.isascii():
        units: Sequence[int] = text.encode("ascii")
    else:
        raw = text.encode("utf-16-be", "surrogatepass")
        units = [raw[i] << 8 | raw[i + 1] for i in range(0, len(raw), 2)]
    total: int = sum(map(mul, units, _powers(len(units)))) & _MASK_32
    return total - (1 << 32) if total >> 31 else total


def topic_hash(topic_id: TopicId) -> int:
    """``Uuid.hashCode()`` as an unsigned 32-bit number: the four words xor-ed."""
    value = int.from_bytes(topic_id, "big")
    folded = value ^ value >> 64
    return (folded ^ folded >> 32) & _MASK_32


def _spread(code: int) -> int:
    """What ``HashMap`` makes of a hash code before it picks a bucket."""
    code &= _MASK_32
    return code ^ code >> 16


def string_spread(text: str) -> int:
    """The spread hash of a string key (``HashMap`` picks its bucket from the low bits)."""
    return _spread(string_hash(text))


@lru_cache(maxsize=1 << 15)
def topic_spread(topic_id: TopicId) -> int:
    """The spread hash of a topic id key."""
    return _spread(topic_hash(topic_id))


def utf16_key(text: str) -> bytes:
    """A sort key that compares like ``String.compareTo``: by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")


# --- Capacities -----------------------------------------------------------------------------------


def table_size_for(capacity: int) -> int:
    """The array length that ``new HashMap(capacity)`` gets: the next power of two, at least 1."""
    return 1 << (capacity - 1).bit_length() if capacity > 1 else 1


def set_copy_capacity(size: int) -> int:
    """Capacity of ``new HashSet(collection)`` for a collection of ``size`` entries."""
    return table_size_for(max(size * 4 // 3 + 1, DEFAULT_CAPACITY))


def map_copy_capacity(size: int) -> int:
    """Capacity of ``new HashMap(map)``; an empty map leaves the default for the first insertion."""
    return table_size_for(size * 4 // 3 + 1) if size else DEFAULT_CAPACITY


def grown(capacity: int, size: int) -> int:
    """Capacity after ``size`` entries were in a table that began with ``capacity`` buckets."""
    while size * 4 > capacity * 3:
        capacity *= 2
    return capacity


def settled_capacity(spreads: Sequence[int], capacity: int) -> int:
    """Capacity after inserting keys with these spread hashes, in this order, long buckets included.

    ``capacity`` is the initial one. Costs a count of the buckets only when there are enough keys.
    """
    size = len(spreads)
    if size <= _LONG_BUCKET or capacity >= _TREES_FROM:
        return grown(capacity, size)
    mask = capacity - 1
    if max(Counter(spread & mask for spread in spreads).values()) <= _LONG_BUCKET:
        return grown(capacity, size)  # buckets only get shorter as the table grows
    return _simulated_capacity(spreads, capacity)


def _simulated_capacity(spreads: Sequence[int], capacity: int) -> int:
    """Insert one by one, as Java does, doubling for a ninth entry in one bucket."""
    for count, spread in enumerate(spreads):
        if capacity >= _TREES_FROM:
            break
        capacity = capacity_with(spreads[:count], spread, capacity)
    return grown(capacity, len(spreads))


def capacity_with(present: Collection[int], spread: int, capacity: int) -> int:
    """Capacity after one more key is put into a table that holds keys with the spreads ``present``.

    Java doubles the array when the new key is the ninth of its bucket, and then when it is too
    full.
    """
    size = len(present) + 1
    if size > _LONG_BUCKET and capacity < _TREES_FROM:
        mask = capacity - 1
        bucket = spread & mask
        if sum(1 for other in present if other & mask == bucket) >= _LONG_BUCKET:
            capacity *= 2
    return grown(capacity, size)


# --- Orders of HashMap and HashSet ----------------------------------------------------------------


def table_order(
    keys: Sequence[K], spread: Callable[[K], int], capacity: int, *, peak: int = 0
) -> list[K]:
    """Iteration order of a table that began with ``capacity`` buckets and got ``keys`` in order.

    ``keys`` must be distinct and be all that is in the table now; ``peak`` is the largest size that
    the table ever had, when that is more.
    """
    if len(keys) <= 1:
        return list(keys)
    spreads = [spread(key) for key in keys]
    mask = max(settled_capacity(spreads, capacity), grown(capacity, peak)) - 1
    buckets = [mask & code for code in spreads]
    return [keys[place] for place in sorted(range(len(keys)), key=buckets.__getitem__)]


def bucket_order(keys: Sequence[K], spread: Callable[[K], int], capacity: int) -> list[K]:
    """Iteration order of a table of exactly ``capacity`` buckets, keys in each in this order."""
    mask = capacity - 1
    return sorted(keys, key=lambda key: spread(key) & mask)


def partition_order(partitions: Sequence[int]) -> list[int]:
    """Iteration order of ``new HashSet(partitions)``."""
    if len(partitions) <= 1:
        return list(partitions)
    return partition_bucket_order(partitions, partitions_capacity(partitions))


def partition_bucket_order(partitions: Iterable[int], capacity: int) -> list[int]:
    """Iteration order of a set of partition numbers with exactly ``capacity`` buckets."""
    return sorted(partitions, key=(capacity - 1).__and__)


def partitions_capacity(partitions: Sequence[int]) -> int:
    """Capacity of ``new HashSet(partitions)``."""
    capacity = set_copy_capacity(len(partitions))
    if len(partitions) <= _LONG_BUCKET or max(partitions) - min(partitions) < capacity:
        return capacity  # no two in one bucket, or too few to matter
    return settled_capacity(partitions, capacity)


def string_set_order(texts: Iterable[str]) -> list[str]:
    """Iteration order of ``new HashSet(texts)``: the order of a member's subscribed names.

    Feed the names of the request for the member whose heartbeat is being handled, and the sorted
    names for members known from their record. Repeated names count for the capacity, as in Java.
    """
    listed = list(texts)
    return table_order(list(dict.fromkeys(listed)), string_spread, set_copy_capacity(len(listed)))


def string_map_order(keys: Iterable[str], peak: int = 0) -> list[str]:
    """Iteration order of a ``HashMap`` that was empty and got these keys in order, each once.

    ``peak`` is the largest size that it ever had, when keys were removed: it does not shrink.
    """
    return table_order(list(keys), string_spread, DEFAULT_CAPACITY, peak=peak)


def member_order(
    timeline: Iterable[MemberId],
    *,
    joining: MemberId | None = None,
    replaced: MemberId | None = None,
    overlay: bool = False,
) -> list[MemberId]:
    """The order in which an assignor sees the members of a group.

    ``timeline``: the group's members in the order of :class:`TimelineOrder`. ``joining``: the
    member whose heartbeat is being handled (put last when it is new). ``replaced``: the member id
    that ``joining`` replaces as a static member; it is left out. ``overlay``: how Kafka 4.4 and
    later leave it out, namely before anything is inserted; up to 4.3 it is inserted first and
    removed, which can leave a larger table behind.
    """
    keys = list(timeline)
    peak = len(keys)
    if replaced is not None and replaced in keys:
        keys.remove(replaced)
        if joining is not None and joining not in keys and not overlay:
            peak += _joins_before_removal(joining, replaced)
    if joining is not None and joining not in keys:
        keys.append(joining)
    return table_order(keys, string_spread, DEFAULT_CAPACITY, peak=0 if overlay else peak)


def _joins_before_removal(joining: MemberId, replaced: MemberId) -> int:
    """1 when Kafka up to 4.3 inserts the new static member before it removes the old one.

    The two changes wait in a ``HashMap`` of their own and are applied in its order; the new member
    is put there first.
    """
    return int(table_order([joining, replaced], string_spread, DEFAULT_CAPACITY)[0] == joining)


# --- Kafka's TimelineHashMap ----------------------------------------------------------------------


class TimelineOrder:
    """The iteration order of Kafka's ``TimelineHashMap`` with string keys.

    Keep one beside the members of a group and tell it every put and removal that a record causes,
    in the order in which the records are applied: a put of a key that is already there changes no
    order but can make the table grow. Iterating gives the keys in Kafka's order: buckets ascending,
    within a bucket the newest first.
    """

    __slots__ = ("_shift", "_size", "_slots")

    def __init__(self) -> None:
        self._slots: list[list[str]] = [[], []]
        self._shift = 63
        self._size = 0

    def put(self, key: str) -> None:
        """Insert ``key`` or replace its value. Grows the table first when it is too full."""
        if (self._size + 1) * 3 > len(self._slots) * 4:
            self._grow()
        slot = self._slots[self._slot(key)]
        if key not in slot:
            slot.append(key)
            self._size += 1

    def remove(self, key: str) -> None:
        """Remove ``key`` if it is there; the table keeps its size."""
        slot = self._slots[self._slot(key)]
        if key in slot:
            slot.remove(key)
            self._size -= 1

    def _slot(self, key: str) -> int:
        return (string_hash(key) * _FIBONACCI & _MASK_64) >> self._shift

    def _grow(self) -> None:
        old = self._slots
        self._slots = [[] for _ in range(len(old) * 2)]
        self._shift -= 1
        for slot in old:
            for key in slot:
                self._slots[self._slot(key)].append(key)

    def __iter__(self) -> Iterator[str]:
        for slot in self._slots:
            yield from reversed(slot)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._slots[self._slot(key)]

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"TimelineOrder({list(self)!r})"

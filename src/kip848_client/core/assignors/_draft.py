"""One member's target while an assignor changes it, with Java's iteration order.

Kafka copies a member's previous target (a map of sets) before the first change, then removes and
adds. The order in which the result is written to the record follows from that history: which table
size the copy got, what was inserted in which order, how large it became. :class:`Draft` keeps the
insertion order (a Python dict does) and the capacities; :meth:`Draft.freeze` makes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kip848_client.core.assignors._java_order import (
    DEFAULT_CAPACITY,
    bucket_order,
    capacity_with,
    grown,
    partition_bucket_order,
    partition_order,
    partitions_capacity,
    table_order,
    table_size_for,
    topic_spread,
)
from kip848_client.core.assignors._spec import Partitions
from kip848_client.core.types import TopicId

__all__ = ["Draft", "same_partitions", "stored_topic_order"]


def stored_topic_order(target: Partitions) -> list[TopicId]:
    """The order in which a coordinator walks the topics of a target read from its record."""
    if len(target) <= 1:
        return list(target)
    return table_order(list(target), topic_spread, DEFAULT_CAPACITY)


def same_partitions(left: Partitions, right: Partitions) -> bool:
    """True when both hold the same partitions, whatever the order."""
    if left is right:
        return True
    if left.keys() != right.keys():
        return False
    return all(
        partitions == right[topic_id] or sorted(partitions) == sorted(right[topic_id])
        for topic_id, partitions in left.items()
    )


class Draft:
    """A changing copy of a member's previous target."""

    __slots__ = ("_before", "_capacities", "_map_capacity", "_order", "_sets")

    def __init__(self, target: Partitions) -> None:
        self._before = target
        self._order = stored_topic_order(target)
        self._map_capacity = grown(table_size_for(len(target)), len(target))
        self._sets: dict[TopicId, dict[int, None]] = {}
        self._capacities: dict[TopicId, int] = {}
        for topic_id in self._order:
            partitions = partition_order(target[topic_id])
            self._sets[topic_id] = dict.fromkeys(partitions)
            self._capacities[topic_id] = partitions_capacity(partitions)

    def add(self, topic_id: TopicId, partitions: Sequence[int], new_capacity: int) -> None:
        """Add one or more partitions in this order.

        ``new_capacity`` is that of the topic's set if it is made now.
        """
        self._before_lookup()
        kept = self._sets.get(topic_id)
        if kept is None:
            kept = self._sets[topic_id] = {}
            self._capacities[topic_id] = new_capacity
            self._order.insert(0, topic_id)  # computeIfAbsent puts it in front of its bucket
            if len(partitions) > 1:
                self._before_lookup()
        capacity = self._capacities[topic_id]
        for partition in partitions:
            capacity = capacity_with(kept, partition, capacity)
            kept[partition] = None
        self._capacities[topic_id] = capacity

    def _before_lookup(self) -> None:
        # computeIfAbsent grows a table that is too full when it is called, not after it inserted;
        # Kafka calls it once for every partition.
        if len(self._sets) * 4 > self._map_capacity * 3:
            self._map_capacity *= 2

    def discard(self, topic_id: TopicId, partitions: Iterable[int]) -> None:
        """Remove partitions; a topic without partitions is removed as well."""
        kept = self._sets[topic_id]
        for partition in partitions:
            kept.pop(partition, None)
        if not kept:
            self.drop(topic_id)

    def drop(self, topic_id: TopicId) -> None:
        """Remove a topic with all its partitions."""
        del self._sets[topic_id]
        self._order.remove(topic_id)

    def freeze(self) -> Partitions:
        """The new target, or the previous object when the partitions are the same."""
        capacities = self._capacities
        result = {
            topic_id: tuple(partition_bucket_order(self._sets[topic_id], capacities[topic_id]))
            for topic_id in bucket_order(self._order, topic_spread, self._map_capacity)
        }
        return self._before if same_partitions(result, self._before) else result

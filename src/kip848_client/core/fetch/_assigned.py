"""The assigned partitions and their indexes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from kip848_client.core.fetch._partition import Partition
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition

__all__ = ["Assigned"]


class Assigned:
    """All assigned partitions. A partition is in here from its assignment to its loss."""

    def __init__(self) -> None:
        self.by_tp: dict[TopicPartition, Partition] = {}
        self._by_key: dict[TopicIdPartition, Partition] = {}
        self._by_topic: dict[str, dict[TopicPartition, Partition]] = {}
        self._topics: dict[TopicId, str] = {}
        self._counts: Counter[TopicId] = Counter()
        self._generations = 0

    def new_generation(self) -> int:
        """Return a generation number that was never used before."""
        self._generations += 1
        return self._generations

    def add(self, tp: TopicPartition, topic_id: TopicId | None) -> Partition:
        """Add a newly assigned partition; without an id it was assigned manually."""
        by_hand = topic_id is None
        partition = Partition(tp, topic_id, by_hand, self.new_generation())
        self.by_tp[tp] = partition
        self._by_topic.setdefault(tp[0], {})[tp] = partition
        if topic_id is not None:
            self._index(partition, topic_id)
        return partition

    def remove(self, partition: Partition) -> bool:
        """Remove a partition; returns whether it was the last one of its topic."""
        tp = partition.tp
        del self.by_tp[tp]
        self._unindex(partition)
        of_topic = self._by_topic[tp[0]]
        del of_topic[tp]
        if not of_topic:
            del self._by_topic[tp[0]]
        return not of_topic

    def learn_id(self, partition: Partition, topic_id: TopicId) -> None:
        """Set the topic id of a partition that was assigned by name."""
        self._unindex(partition)
        partition.learn_id(topic_id)
        self._index(partition, topic_id)

    def _index(self, partition: Partition, topic_id: TopicId) -> None:
        self._by_key[partition.key] = partition
        self._topics[topic_id] = partition.tp[0]
        self._counts[topic_id] += 1

    def _unindex(self, partition: Partition) -> None:
        topic_id = partition.topic_id
        if topic_id is None:
            return
        del self._by_key[partition.key]
        self._counts[topic_id] -= 1
        if not self._counts[topic_id]:
            del self._counts[topic_id]
            del self._topics[topic_id]

    def at(self, key: TopicIdPartition) -> Partition | None:
        """Look up a partition by topic id and number, as brokers identify it."""
        return self._by_key.get(key)

    def topic_of(self, topic_id: TopicId) -> str | None:
        """The name of an assigned topic."""
        return self._topics.get(topic_id)

    def of_topic(self, topic: str) -> Collection[Partition]:
        """All assigned partitions of a topic."""
        return tuple(self._by_topic.get(topic, {}).values())

    def here(self, partitions: Iterable[TopicPartition]) -> list[Partition]:
        """Those of ``partitions`` that are assigned; the others are silently left out."""
        by_tp = self.by_tp
        return [by_tp[tp] for tp in partitions if tp in by_tp]

    def is_here(self, partition: Partition) -> bool:
        """Whether the partition has not been revoked meanwhile."""
        return self.by_tp.get(partition.tp) is partition

"""Who leads which partition, in which epoch: from metadata and from hints in refusals.

Leader epochs belong to a topic id. Within one they never go back: a broker that lags behind tells
of leaders that are no more, and believing it would switch off the check for truncation (KIP-320).
But one wrong word would be believed for ever. So an epoch that brokers refuse for long is doubted.
A partition without a leader keeps its epoch, and -1 is no epoch. A topic that was created again has
another id and begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from kip848_client.core.cluster._model import NO_EPOCH, NO_NODE, PartitionLeader, TopicLeaders
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, TopicIdPartition, TopicPartition

__all__ = ["Leaders"]


class Leaders:
    """What is known of leaders, by topic id; and which id a name has."""

    def __init__(self) -> None:
        self.nodes: frozenset[int] = frozenset()
        """The brokers that are there; empty until the first metadata."""
        self._by_id: dict[TopicId, dict[int, PartitionLeader]] = {}
        self._ids: dict[str, TopicId] = {}
        self._names: dict[TopicId, str] = {}

    # -- looking -----------------------------------------------------------------------------

    def id_of(self, topic: str) -> TopicId | None:
        """The id of the topic that has this name now, as far as metadata told."""
        return self._ids.get(topic)

    def at(self, key: TopicIdPartition) -> PartitionLeader | None:
        """What is known of this partition; its leader may be ``NO_NODE``."""
        of_topic = self._by_id.get(key[0])
        return None if of_topic is None else of_topic.get(key[1])

    def leader_of(self, tp: TopicPartition) -> tuple[int, int] | None:
        """(node, leader epoch) for the topic that has this name now; ``None`` when nobody leads it
        or it is not known who does."""
        topic_id = self._ids.get(tp[0])
        known = None if topic_id is None else self.at((topic_id, tp[1]))
        return None if known is None or known.leader == NO_NODE else (known.leader, known.epoch)

    def partitions_of(self, topic_id: TopicId) -> Mapping[int, PartitionLeader]:
        """All that is known of a topic."""
        return self._by_id.get(topic_id, {})

    # -- learning ----------------------------------------------------------------------------

    def learn(self, told: TopicLeaders) -> bool:
        """Take in what metadata says of a topic; returns whether it says anything. Another topic
        that had the name is forgotten."""
        topic, topic_id = told.topic, told.topic_id
        if told.error_code or topic_id == ZERO_TOPIC_ID:
            return False
        before = self._ids.get(topic)
        if before is not None and before != topic_id:
            self.drop(before)
        self._ids[topic] = topic_id
        self._names[topic_id] = topic
        known = self._by_id.setdefault(topic_id, {})
        for partition, new in told.partitions.items():
            known[partition] = _newest(known.get(partition), new)
        return True

    def hint(self, key: TopicIdPartition, node: int, epoch: int) -> bool:
        """Take in who leads a partition as a refusal says it (KIP-951); returns whether it is news:
        a refusal by a broker that lags behind is none."""
        before = self.at(key)
        if epoch < 0 or before is None or epoch <= before.epoch:
            return False  # of what was dropped, metadata tells: the hint may be from before that
        self._by_id[key[0]][key[1]] = PartitionLeader(node, epoch, before.replicas)
        return True

    def doubt(self, key: TopicIdPartition, read_epoch: int = NO_EPOCH) -> None:
        """Nobody has heard of the epoch that is known, for long: whoever told of it was wrong, or
        the controllers were set back. Metadata is believed anew, unless records of it were read."""
        known = self.at(key)
        if known is not None and known.epoch > read_epoch:
            del self._by_id[key[0]][key[1]]

    # -- forgetting --------------------------------------------------------------------------

    def drop(self, topic_id: TopicId) -> None:
        """The cluster does not know this id: it is deleted, or not known everywhere yet."""
        self._by_id.pop(topic_id, None)
        topic = self._names.pop(topic_id, None)
        if topic is not None and self._ids.get(topic) == topic_id:
            del self._ids[topic]

    def forget(self, topic: str) -> None:
        """Nobody wants to know of this topic any more."""
        topic_id = self._ids.get(topic)
        if topic_id is not None:
            self.drop(topic_id)

    def clear(self) -> None:
        """Nothing that was told holds any more: it is another cluster, or begun anew."""
        self.nodes = frozenset()
        self._by_id.clear()
        self._ids.clear()
        self._names.clear()


def _newest(before: PartitionLeader | None, new: PartitionLeader) -> PartitionLeader:
    """Which of two to believe. The same epoch with another leader is the newer word: brokers
    correct themselves so; -1 is no epoch, and says nothing of age."""
    if before is None or new.epoch >= before.epoch:
        return new
    if new.epoch < 0:
        return PartitionLeader(new.leader, before.epoch, new.replicas)
    return before

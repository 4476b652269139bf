"""The leader and leader epoch of each partition, from metadata and from hints in refusals.

Leader epochs belong to a topic id. Within one they never go back: a broker that lags behind may
name former leaders, and believing it would switch off the check for truncation (KIP-320). But then
a single wrong epoch would stay forever, so an epoch that brokers refuse for long is doubted. A
partition without a leader keeps its epoch; -1 does not count as an epoch. A topic that was created
again has another id and starts fresh.
"""

from __future__ import annotations

from collections.abc import Mapping

from kip848_client.core.cluster._model import NO_EPOCH, NO_NODE, PartitionLeader, TopicLeaders
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, TopicIdPartition, TopicPartition

__all__ = ["Leaders"]


class Leaders:
    """The known leaders by topic id, and the topic id of each name."""

    def __init__(self) -> None:
        self.nodes: frozenset[int] = frozenset()
        """The known brokers; empty until the first metadata."""
        self._by_id: dict[TopicId, dict[int, PartitionLeader]] = {}
        self._ids: dict[str, TopicId] = {}
        self._names: dict[TopicId, str] = {}

    # -- queries -----------------------------------------------------------------------------

    def id_of(self, topic: str) -> TopicId | None:
        """The id of the topic that has this name now, as of the last metadata."""
        return self._ids.get(topic)

    def at(self, key: TopicIdPartition) -> PartitionLeader | None:
        """What is known of this partition. Its leader may be ``NO_NODE``."""
        of_topic = self._by_id.get(key[0])
        return None if of_topic is None else of_topic.get(key[1])

    def leader_of(self, tp: TopicPartition) -> tuple[int, int] | None:
        """(node, leader epoch) for the topic that has this name now; ``None`` if there is no leader
        or it is unknown."""
        topic_id = self._ids.get(tp[0])
        known = None if topic_id is None else self.at((topic_id, tp[1]))
        return None if known is None or known.leader == NO_NODE else (known.leader, known.epoch)

    def partitions_of(self, topic_id: TopicId) -> Mapping[int, PartitionLeader]:
        """All known partitions of a topic."""
        return self._by_id.get(topic_id, {})

    # -- updates -----------------------------------------------------------------------------

    def learn(self, told: TopicLeaders) -> bool:
        """Apply the metadata of a topic; returns whether it changed anything. Another topic that
        had the same name is forgotten."""
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
        """Apply the leader named by a refusal (KIP-951); returns whether it is new. A hint from a
        broker that lags behind is not."""
        before = self.at(key)
        if epoch < 0 or before is None or epoch <= before.epoch:
            return False  # dropped: only metadata restores it; the hint may be older
        self._by_id[key[0]][key[1]] = PartitionLeader(node, epoch, before.replicas)
        return True

    def doubt(self, key: TopicIdPartition, read_epoch: int = NO_EPOCH) -> None:
        """Brokers have refused the known epoch for a long time. Either its source was wrong, or the
        controllers were reset. Accept any epoch from the next metadata, unless records of the known
        epoch were read."""
        known = self.at(key)
        if known is not None and known.epoch > read_epoch:
            del self._by_id[key[0]][key[1]]

    # -- removal -----------------------------------------------------------------------------

    def drop(self, topic_id: TopicId) -> None:
        """The cluster does not know this id: the topic was deleted, or not all brokers know it
        yet."""
        self._by_id.pop(topic_id, None)
        topic = self._names.pop(topic_id, None)
        if topic is not None and self._ids.get(topic) == topic_id:
            del self._ids[topic]

    def forget(self, topic: str) -> None:
        """This topic is not needed any more."""
        topic_id = self._ids.get(topic)
        if topic_id is not None:
            self.drop(topic_id)

    def clear(self) -> None:
        """Nothing known is valid any more: the cluster is another one, or was restarted."""
        self.nodes = frozenset()
        self._by_id.clear()
        self._ids.clear()
        self._names.clear()


def _newest(before: PartitionLeader | None, new: PartitionLeader) -> PartitionLeader:
    """The newer of two. With equal epochs and different leaders the later report counts, because
    brokers correct themselves that way. -1 does not count as an epoch and does not indicate age."""
    if before is None or new.epoch >= before.epoch:
        return new
    if new.epoch < 0:
        return PartitionLeader(new.leader, before.epoch, new.replicas)
    return before

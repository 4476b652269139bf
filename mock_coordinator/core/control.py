"""Changes of a cluster's nodes: leaders move; brokers stop, crash and restart.

The consequences are immediate: logs begin their new leader epoch, coordinators of moved partitions
are unloaded and loaded elsewhere, and the partitions are remembered for the driver, which wakes the
fetches that wait for them. Only a crash takes time to be noticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kip848_client.core.types import TopicId, TopicIdPartition
from mock_coordinator.core.groups.service.shards import GroupShards
from mock_coordinator.core.inputs import (
    CoordinatorMoved,
    Input,
    LeaderMoved,
    NodeStarted,
    NodeStopped,
)
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.state.internal_topics import (
    create_offsets_topic,
    create_transactions_topic,
)
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from mock_coordinator.core.transactions.service import Transactions

__all__ = ["ClusterControl"]


class ClusterControl:
    """Performs inputs that are about nodes; others it leaves alone."""

    def __init__(self, broker: Broker, groups: GroupShards, transactions: Transactions) -> None:
        self._broker: Final = broker
        self._groups: Final = groups
        self._transactions: Final = transactions
        self._unnoticed: Final = {n.node_id: 0 for n in broker.nodes if not n.up and not n.fenced}
        self._moved: dict[TopicIdPartition, None] = {}

    @property
    def deadline_ms(self) -> int | None:
        """When the next dead broker is noticed."""
        return min(self._unnoticed.values(), default=None)

    def take(self, now_ms: int, event: Input) -> None:
        """Perform one input. Raises ``KeyError`` for a node or topic that does not exist,
        ``IndexError`` for such a partition, ``ValueError`` for a leader that is down."""
        if isinstance(event, LeaderMoved):
            topic = self._broker.catalog.topics[event.topic]
            self._broker.partition_state(topic, event.partition)
            leaders = self._broker.disk.leaders
            self._have_moved(now_ms, leaders.move(topic, event.partition, event.node_id))
        elif isinstance(event, CoordinatorMoved):
            self._move_coordinator(now_ms, event)
        elif isinstance(event, NodeStopped):
            self._stop(now_ms, event)
        elif isinstance(event, NodeStarted):
            self._start(now_ms, event.node_id)

    def run_due(self, now_ms: int) -> None:
        """Notice brokers that have been dead for long enough."""
        if not self._unnoticed:
            return
        for node_id in [n for n, due_ms in self._unnoticed.items() if due_ms <= now_ms]:
            self._fence(now_ms, node_id)

    def perform_wanted(self, now_ms: int) -> None:
        """Do what administrators asked of leaders and replicas; the request was checked."""
        leaders = self._broker.disk.leaders
        for (topic_id, partition), replicas in leaders.take_wanted().items():
            topic = self._broker.catalog.topic_by_id(topic_id)
            if topic is None:
                continue
            if replicas is not None:
                self._have_moved(now_ms, leaders.reassign(topic, partition, replicas))
                continue
            first = self._broker.partition_state(topic, partition).replicas[0]
            self._have_moved(now_ms, leaders.move(topic, partition, first))

    def take_moved(self) -> tuple[TopicIdPartition, ...]:
        """The partitions that have got another leader, or lost theirs, since the last call."""
        if not self._moved:
            return ()
        moved = tuple(self._moved)
        self._moved = {}
        return moved

    def _move_coordinator(self, now_ms: int, event: CoordinatorMoved) -> None:
        if event.transactional:
            create_transactions_topic(self._broker, now_ms)
            topic = self._broker.catalog.topics[TRANSACTIONS_TOPIC]
            partition = self._broker.disk.transactions.partition_of(event.key)
        else:
            create_offsets_topic(self._broker, now_ms)
            topic = self._broker.catalog.topics[OFFSETS_TOPIC]
            partition = self._groups.partition_of(event.key)
        leaders = self._broker.disk.leaders
        now = self._broker.partition_state(topic, partition).leader
        node_id = self._next(now) if event.node_id is None else event.node_id
        if node_id == now:
            self._have_moved(now_ms, leaders.elect_again(topic, partition))
        elif node_id is not None:
            self._have_moved(now_ms, leaders.move(topic, partition, node_id))

    def _next(self, node_id: int | None) -> int | None:
        """The running node after this one, in the order of their ids and round again."""
        running = [node.node_id for node in self._broker.nodes if node.up]
        later = [each for each in running if node_id is None or each > node_id]
        return next(iter([*later, *running]), None)

    def _stop(self, now_ms: int, event: NodeStopped) -> None:
        node = self._broker.nodes[event.node_id]
        if not node.up:
            return
        node.up = False
        self._unnoticed[node.node_id] = now_ms + event.noticed_after_ms
        # its coordinators are gone, and no broker has taken over yet
        if event.noticed_after_ms > 0:
            self._unload(now_ms, self._broker.disk.leaders.led_by(node.node_id))
        else:
            self._fence(now_ms, node.node_id)

    def _start(self, now_ms: int, node_id: int) -> None:
        node = self._broker.nodes[node_id]
        if node.up:
            return
        if node_id in self._unnoticed:
            self._fence(now_ms, node_id)
        node.up, node.fenced = True, False
        self._have_moved(now_ms, self._broker.disk.leaders.node_unfenced(node_id))

    def _fence(self, now_ms: int, node_id: int) -> None:
        del self._unnoticed[node_id]
        self._broker.nodes[node_id].fenced = True
        self._have_moved(now_ms, self._broker.disk.leaders.node_fenced(node_id))

    def _have_moved(self, now_ms: int, partitions: Iterable[tuple[TopicId, int]]) -> None:
        moved = tuple(partitions)
        for topic_id, partition in moved:
            self._moved[topic_id, partition] = None
            topic = self._broker.catalog.topic_by_id(topic_id)
            log = None if topic is None else self._broker.logs.of(topic, partition)
            if topic is not None and log is not None:
                log.begin_epoch(self._broker.partition_state(topic, partition).leader_epoch)
        self._unload(now_ms, moved)

    def _unload(self, now_ms: int, partitions: Iterable[tuple[TopicId, int]]) -> None:
        """The coordinators of these partitions change, if they are of an internal topic."""
        catalog = self._broker.catalog
        groups, transactions = catalog.topic(OFFSETS_TOPIC), catalog.topic(TRANSACTIONS_TOPIC)
        for topic_id, partition in partitions:
            if groups is not None and topic_id == groups.topic_id:
                if partition < self._groups.partitions:
                    self._groups.leader_changed(now_ms, partition)
            elif transactions is not None and topic_id == transactions.topic_id:
                self._transactions.leader_changed(now_ms, partition)

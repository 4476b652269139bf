"""The replicas and the leader of each partition.

Theory of operation
===================

All nodes of this cluster share one disk, so a replica is never behind: the in-sync replicas are
those that run. A partition is led by one of them, and each change of leader raises the leader epoch
by one, from which clients notice that their metadata is old (KIP-320). When a leader goes down, the
next live replica in order takes over; without one, the partition has no leader and waits for its
last one. No partition returns to its preferred leader by itself.

A topic is placed when it is first used, unless ``place`` did so before: so the code that creates
topics need not know of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kip848_client.core.types import TopicId
from mock_coordinator.core.nodes.placement import placed
from mock_coordinator.core.nodes.registry import Nodes
from mock_coordinator.core.topics.catalog import Catalog, Topic

__all__ = ["Leaders", "PartitionState"]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition. ``leader`` is ``None`` while none of those that could lead runs; ``isr`` is in
    the order in which Kafka would tell it; ``eligible`` are the replicas, none of them in ``isr``,
    that may lead again without loss (KIP-966)."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int = 0
    eligible: tuple[int, ...] = ()


class Leaders:
    """The partitions of all topics of a cluster.

    ``keeps_last``: the last in-sync replica stays in the list when it goes down, as it was before
    KIP-966 (eligible leader replicas).
    """

    def __init__(self, nodes: Nodes, catalog: Catalog, *, keeps_last: bool) -> None:
        self._nodes = nodes
        self._catalog = catalog
        self._keeps_last = keeps_last
        self._partitions: dict[TopicId, list[PartitionState]] = {}
        self._placed = 0
        self.version = 0
        """Grows with every change of any partition."""
        self._wanted: dict[tuple[TopicId, int], tuple[int, ...] | None] = {}

    def of(self, topic: Topic, partition: int, replication_factor: int = 1) -> PartitionState:
        """One partition of a topic. A topic that is not placed yet gets ``replication_factor``
        replicas, or one on each node. Raises ``IndexError`` for a partition that the topic does not
        have."""
        states = self._partitions.get(topic.topic_id)
        if states is None or len(states) < topic.partitions:
            states = self.place(topic, None, replication_factor)
        return states[partition]

    def place(
        self,
        topic: Topic,
        replicas: Sequence[tuple[int, ...]] | None = None,
        replication_factor: int = 1,
    ) -> list[PartitionState]:
        """Place the partitions of a topic that are not placed yet.

        ``replicas`` says where each of them goes, else they are spread: the first ones as often as
        ``replication_factor``, later ones as often as the others of the topic.
        """
        states = self._partitions.get(topic.topic_id)
        if states is None:
            states = self._partitions[topic.topic_id] = []
            topic.placement = self._placed
            self._placed += 1
        elif states:
            replication_factor = len(states[0].replicas)
        new = range(len(states), topic.partitions)
        if replicas is None:
            factor = min(replication_factor, len(self._nodes))
            replicas = placed(list(self._nodes), topic.placement, new, factor)
        states.extend(self._born(where) for where in replicas[: len(new)])
        self.version += 1
        return states

    def placed(self, topic_id: TopicId) -> tuple[PartitionState, ...]:
        """The partitions of a topic that are placed already."""
        return tuple(self._partitions.get(topic_id, ()))

    def restore(
        self,
        topic: Topic,
        placement: int,
        partitions: Iterable[tuple[int | None, int, Sequence[int]]],
    ) -> None:
        """Partitions (leader, leader epoch, replicas) as they were when the whole cluster went
        down. Now that all nodes run every replica is in sync, and the last leader leads again; a
        partition that had no leader gets its first replica. Raises ``KeyError`` for an unknown
        node."""
        states: list[PartitionState] = []
        for leader, epoch, stored in partitions:
            replicas = tuple(self._nodes[node_id].node_id for node_id in stored)
            led = leader in replicas
            states.append(
                PartitionState(
                    replicas, replicas, leader if led else replicas[0], epoch if led else epoch + 1
                )
            )
        self._partitions[topic.topic_id] = states
        topic.placement = placement
        self._placed = max(self._placed, placement + 1)
        self.version += 1

    def _born(self, replicas: tuple[int, ...]) -> PartitionState:
        live = tuple(node_id for node_id in replicas if self._lives(node_id))
        return PartitionState(replicas, live, live[0] if live else None)

    def forget(self, topic_id: TopicId) -> None:
        """A topic was deleted."""
        self._partitions.pop(topic_id, None)
        self.version += 1

    def led_by(self, node_id: int) -> tuple[tuple[TopicId, int], ...]:
        """What a node leads."""
        return tuple(where for where, state in self._all() if state.leader == node_id)

    # -- changes: each returns the partitions that have another leader epoch -----------------------

    def move(self, topic: Topic, partition: int, node_id: int) -> tuple[tuple[TopicId, int], ...]:
        """Make a node the leader. One that is not a replica takes the place of the present leader.

        Raises ``KeyError`` for an unknown node, ``ValueError`` for one that is down.
        """
        if not self._lives(node_id) or not self._nodes[node_id].up:
            raise ValueError(f"node {node_id} is down")
        state = self.of(topic, partition)
        if state.leader == node_id:
            return ()
        replicas, isr = state.replicas, state.isr
        if node_id not in replicas:
            gone = replicas[0] if state.leader is None else state.leader
            replicas = tuple(node_id if r == gone else r for r in replicas)
            isr = tuple(node_id if r == gone else r for r in isr)
        if node_id not in isr:
            isr = tuple(sorted((*isr, node_id)))
        changed = replace(
            state,
            replicas=replicas,
            isr=isr,
            leader=node_id,
            leader_epoch=state.leader_epoch + 1,
            eligible=tuple(e for e in state.eligible if e in replicas and e != node_id),
        )
        self._set(topic.topic_id, partition, changed)
        return ((topic.topic_id, partition),)

    def elect_again(self, topic: Topic, partition: int) -> tuple[tuple[TopicId, int], ...]:
        """Let the leader of a partition begin a new leader epoch. Without a leader nothing
        happens."""
        state = self.of(topic, partition)
        if state.leader is None:
            return ()
        again = replace(state, leader_epoch=state.leader_epoch + 1)
        self._set(topic.topic_id, partition, again)
        return ((topic.topic_id, partition),)

    def reassign(
        self, topic: Topic, partition: int, replicas: tuple[int, ...]
    ) -> tuple[tuple[TopicId, int], ...]:
        """Give a partition other replicas. At least one must run: ``ValueError`` otherwise. The
        leader stays if it is one of them, otherwise the first that runs leads."""
        live = tuple(node_id for node_id in replicas if self._lives(node_id))
        if not live:
            raise ValueError(f"none of the nodes {replicas} is running")
        state = self.of(topic, partition)
        stays = state.leader in live
        changed = PartitionState(
            replicas,
            live,
            state.leader if stays else live[0],
            state.leader_epoch if stays else state.leader_epoch + 1,
        )
        self._set(topic.topic_id, partition, changed)
        return () if stays else ((topic.topic_id, partition),)

    def want(self, topic: Topic, partition: int, replicas: tuple[int, ...] | None = None) -> None:
        """Note an administrator's wish: other replicas, or (``None``) the first one as leader. The
        core carries out these wishes after each request (``take_wanted``)."""
        self._wanted[topic.topic_id, partition] = replicas

    def take_wanted(self) -> dict[tuple[TopicId, int], tuple[int, ...] | None]:
        """What was wanted since the last call."""
        wanted, self._wanted = self._wanted, {}
        return wanted

    def node_fenced(self, node_id: int) -> tuple[tuple[TopicId, int], ...]:
        """The cluster has noticed that a node is down."""
        moved: list[tuple[TopicId, int]] = []
        for (topic_id, partition), state in list(self._all()):
            if node_id not in state.isr:
                continue
            isr = tuple(r for r in state.isr if r != node_id)
            eligible = state.eligible
            if not isr:
                isr = state.isr if self._keeps_last else ()
                eligible = () if self._keeps_last else (node_id,)
            changed = replace(state, isr=isr, eligible=eligible)
            if state.leader == node_id:
                leader = next((r for r in state.replicas if r in isr and r != node_id), None)
                changed = replace(changed, leader=leader, leader_epoch=state.leader_epoch + 1)
                moved.append((topic_id, partition))
            self._set(topic_id, partition, changed)
        return tuple(moved)

    def node_unfenced(self, node_id: int) -> tuple[tuple[TopicId, int], ...]:
        """A node is back: it is in sync at once, and leads what waited for it."""
        moved: list[tuple[TopicId, int]] = []
        for (topic_id, partition), state in list(self._all()):
            if node_id not in state.replicas:
                continue
            changed = state
            if state.leader is None:
                if node_id not in (*state.isr, *state.eligible):
                    continue  # it may lack records, and there is no broker to copy them from
                changed = replace(
                    state,
                    isr=(node_id,),
                    leader=node_id,
                    leader_epoch=state.leader_epoch + 1,
                    eligible=(),
                )
                moved.append((topic_id, partition))
            elif node_id not in state.isr:
                changed = replace(state, isr=tuple(sorted((*state.isr, node_id))))
            self._set(topic_id, partition, changed)
        for (topic_id, partition), state in list(self._all()):
            back = [r for r in state.replicas if r not in state.isr and self._lives(r)]
            if state.leader is not None and back:
                isr = tuple(sorted((*state.isr, *back)))
                self._set(topic_id, partition, replace(state, isr=isr))
        return tuple(moved)

    def _set(self, topic_id: TopicId, partition: int, state: PartitionState) -> None:
        self._partitions[topic_id][partition] = state
        self.version += 1

    def _lives(self, node_id: int) -> bool:
        return not self._nodes[node_id].fenced

    def _all(self) -> Iterator[tuple[tuple[TopicId, int], PartitionState]]:
        for topic_id, states in self._partitions.items():
            for partition, state in enumerate(states):
                yield (topic_id, partition), state

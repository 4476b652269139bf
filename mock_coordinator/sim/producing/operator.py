"""Faults in a world with producers: leaders and coordinators move, nodes stop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from kip848_client.core.wire.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
)
from mock_coordinator.core.inputs import CoordinatorMoved, LeaderMoved
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.sim.nodes import Nodes
from mock_coordinator.sim.swarm import AnyParameters
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["Operator"]


class Operator(Generic[AnyParameters]):
    """Does one thing at a time to the brokers. ``forget``: of new leaders, those that know of each
    producer the newest batch alone."""

    def __init__(
        self, context: WorldContext[AnyParameters], brokers: Nodes[AnyParameters], forget: float
    ) -> None:
        self._context = context
        self._brokers = brokers
        self._forgetful = forget
        self._rng = context.kernel.rng("operator")
        self.keys: list[tuple[str, bool]] = []
        """Of coordinators: groups, and transactional ids (true)."""

    def create_topics(self, names: Iterable[str], partitions_max: int) -> None:
        """All that there will be."""
        topics = tuple(
            CreateTopicsRequestCreatableTopic(
                name=name,
                num_partitions=self._rng.randint(1, partitions_max),
                replication_factor=len(self._brokers.core.broker.nodes.ids),
            )
            for name in names
        )
        version = self._context.profile.api_versions["CreateTopics"][1]
        self._brokers.operate(CreateTopicsRequest(topics=topics, timeout_ms=1_000), version)

    def elect(self) -> None:
        """Another replica leads."""
        found = list(self._brokers.logs())
        topic, partition, log = self._rng.choice(found)
        leader = self._brokers.leader(topic, partition)
        nodes = self._brokers.core.broker.nodes
        others = [n.node_id for n in nodes if n.up and not n.fenced and n.node_id != leader]
        if others:
            node_id = self._rng.choice(others)
            self._brokers.step(LeaderMoved(topic.name, partition, node_id))
            self._context.tell("operator", "elect", f"{topic.name}-{partition} {node_id}")
            self._context.probes.reached("a leader moved")
            if self._context.happens("forget", self._forgetful):
                self._forget(log)

    def _forget(self, log: PartitionLog) -> None:
        """As a broker does that has read its state from a snapshot."""
        self._context.probes.reached("older batches forgotten")
        for _, producer in log.producers.active:
            while len(producer.batches) > 1:
                producer.batches.popleft()

    def move(self) -> None:
        """Another node coordinates."""
        if self.keys and self._brokers.some_run():
            key, transactional = self._rng.choice(self.keys)
            self._brokers.step(CoordinatorMoved(key, None, transactional))
            self._context.tell("operator", "move", key)
            self._context.probes.reached("a coordinator moved")

    def stop_a_node(self) -> None:
        """A node dies, or is shut down, and comes back."""
        self._brokers.stop_one(self._rng, 4_000)

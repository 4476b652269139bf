"""The state of a cluster, as seen by the broker that a request reached. All handlers share it.

The part that real brokers keep on disk (``disk``) survives a crash; the rest does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kip848_client.core.types import TopicId, format_topic_id
from mock_coordinator.core.logs.log import Logs
from mock_coordinator.core.nodes import Leaders, Node, Nodes, PartitionState
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.security.scram_store import ScramStore
from mock_coordinator.core.security.state import SecurityState
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.state.loggers import ROOT_LOGGER
from mock_coordinator.core.state.offsets_log import OffsetsLog
from mock_coordinator.core.state.quota_store import QuotaStore
from mock_coordinator.core.topics.catalog import Catalog, Topic
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, REPLICATION_SETTINGS
from mock_coordinator.core.transaction_coordinator.transactions_log import TransactionLogs

__all__ = ["NO_OPERATIONS", "Broker", "Disk"]

NO_OPERATIONS: Final = -2147483648
"""Authorized operations in a response that was not asked for them."""

_ATTEMPTS: Final = 1000
_PRODUCER_IDS_BLOCK: Final = 1000


@dataclass(slots=True)
class Disk:
    """What survives a crash: configuration, nodes, topics, records, the cluster's id, producer ids,
    SCRAM credentials, quotas.

    All nodes of a cluster share it. ``nodes`` are its brokers, ``config`` is what they have in
    common, ``configs`` what each of them has.
    """

    config: BrokerConfig
    cluster_id: str
    nodes: Nodes
    catalog: Catalog = field(default_factory=Catalog)
    logs: Logs = field(init=False)
    leaders: Leaders = field(init=False)
    configs: dict[int, BrokerConfig] = field(init=False)
    next_producer_id: int = 0
    security: SecurityState = field(default_factory=SecurityState)
    transactions: TransactionLogs = field(init=False)
    scram: ScramStore = field(default_factory=ScramStore)
    quotas: QuotaStore = field(default_factory=QuotaStore)
    _journals: dict[int, OffsetsLog] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.logs = Logs()
        self.transactions = TransactionLogs(
            self.config.profile,
            self.catalog,
            self.logs,
            self.config.integer("transaction.state.log.num.partitions"),
        )
        keeps_last = "eligible.leader.replicas.version" not in (
            self.config.profile.finalized_features
        )
        # a broker by itself has all its settings in one place
        alone = len(self.nodes) == 1
        self.configs = {
            node.node_id: self.config if alone else self.config.sibling(node.node_id, node.rack)
            for node in self.nodes
        }
        self.leaders = Leaders(self.nodes, self.catalog, keeps_last=keeps_last)
        self.catalog.racks_of = self._racks_of

    @classmethod
    def formatted(
        cls,
        config: BrokerConfig,
        new_uuid: Callable[[], bytes],
        nodes: Nodes | None = None,
    ) -> Disk:
        """An empty disk of a new cluster, by default of one node."""
        own = nodes or Nodes([Node(config.node_id, rack=config.rack)])
        return cls(config, format_topic_id(new_uuid()), own)

    @property
    def producer_ids_taken(self) -> int:
        """Producer ids below this one may have been given out. They are taken in blocks, as Kafka's
        controller gives them to brokers: storage writes once a block, not once an id, and after a
        crash the rest of a block is lost."""
        return -(-self.next_producer_id // _PRODUCER_IDS_BLOCK) * _PRODUCER_IDS_BLOCK

    def new_producer_id(self) -> int:
        """A producer id that was never given out before."""
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def _racks_of(self, topic: Topic) -> tuple[tuple[str, ...], ...]:
        """The racks of each partition's replicas, which are part of a topic's hash (KIP-1101)."""
        racks = {node.node_id: node.rack for node in self.nodes}
        if not any(racks.values()):
            return ()
        if len(racks) == 1:
            return (tuple(rack for rack in racks.values() if rack),)
        factor = max(1, self.config.integer("default.replication.factor"))
        states = [self.leaders.of(topic, index, factor) for index in range(topic.partitions)]
        return tuple(tuple(rack for r in state.replicas if (rack := racks[r])) for state in states)

    def replication_factor(self, name: str) -> int:
        """Of a topic that was created on its own."""
        setting = REPLICATION_SETTINGS.get(name, "default.replication.factor")
        return max(1, self.config.integer(setting))

    def journal(self, partition: int) -> OffsetsLog:
        """The journal of a partition of ``__consumer_offsets``."""
        journal = self._journals.get(partition)
        if journal is None:
            journal = OffsetsLog(self.config.profile, self.catalog, self.logs, partition)
            self._journals[partition] = journal
        return journal


@dataclass(slots=True)
class Broker:
    """One node as a request reaches it: the disk, who it is, and the source of fresh 16-byte ids.

    ``reached`` is the id of the node. ``None``: whichever node it takes; that is how the broker's
    own user interface asks.
    """

    disk: Disk
    new_uuid: Callable[[], bytes]
    reached: int | None = None
    loggers: dict[str, str] = field(default_factory=lambda: {ROOT_LOGGER: "INFO"})

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings."""
        return self.disk.configs[self.node_id]

    @property
    def profile(self) -> Profile:
        """Which Kafka this is."""
        return self.disk.config.profile

    @property
    def catalog(self) -> Catalog:
        """The topics."""
        return self.disk.catalog

    @property
    def logs(self) -> Logs:
        """The records."""
        return self.disk.logs

    @property
    def nodes(self) -> Nodes:
        """All brokers of the cluster."""
        return self.disk.nodes

    @property
    def node(self) -> Node:
        """This broker as a node."""
        return self.disk.nodes[self.node_id]

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self.disk.nodes.ids[0] if self.reached is None else self.reached

    @property
    def host(self) -> str:
        """The host that clients connect to."""
        return self.node.host

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        return self.node.port

    def partition_state(self, topic: Topic, partition: int) -> PartitionState:
        """Which nodes have a partition, and which one leads it. Raises ``IndexError`` for one that
        the topic does not have."""
        return self.disk.leaders.of(topic, partition, self.disk.replication_factor(topic.name))

    def leads(self, topic: Topic, partition: int) -> bool:
        """Whether this node leads a partition; for no node in particular: whether any does."""
        leader = self.partition_state(topic, partition).leader
        return leader is not None and self.reached in (None, leader)

    def coordinator_node(self, partition: int, topic_name: str = OFFSETS_TOPIC) -> int | None:
        """The running node that leads a partition of an internal topic, which makes it coordinator
        of the keys there; ``None`` while there is none."""
        topic = self.catalog.topic(topic_name)
        if topic is None:  # a broker by itself is the coordinator of whatever comes
            leader = self.nodes.ids[0] if len(self.nodes) == 1 else None
        elif partition < topic.partitions:
            leader = self.partition_state(topic, partition).leader
        else:
            leader = None
        node = self.nodes.get(leader)
        return None if node is None or not node.up else node.node_id

    def new_topic_id(self) -> TopicId:
        """A topic id that no topic has and that is not one of Kafka's reserved ones.

        Kafka also avoids ids whose text begins with a dash, which command lines take for an option.
        """
        for _ in range(_ATTEMPTS):
            topic_id = TopicId(self.new_uuid())
            reserved = topic_id in (bytes(16), bytes(15) + b"\x01")
            taken = self.catalog.topic_by_id(topic_id) is not None
            if not reserved and not taken and not format_topic_id(topic_id).startswith("-"):
                return topic_id
        raise RuntimeError(f"new_uuid returned {_ATTEMPTS} ids that are taken or reserved")

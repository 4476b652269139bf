"""Several brokers for tests, whose leaders and coordinators can be moved.

::

    async with MockCluster({"orders": 6}, brokers=3) as cluster:
        ...                                            # any Kafka client, at cluster.bootstrap
        cluster.move_leader("orders", 0, 2)
        cluster.move_coordinator("my-group", 3)
        await cluster.stop_broker(1)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Unpack

import anyio

from kip848_client.errors import ConfigError
from mock_coordinator.core.authentication.distinguished_names import ANONYMOUS
from mock_coordinator.core.inputs import Input, LeaderMoved, NodeStarted, NodeStopped
from mock_coordinator.core.nodes import Node
from mock_coordinator.core.state.internal_topics import (
    create_offsets_topic,
    create_transactions_topic,
)
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from mock_coordinator.inprocess import InProcessConnection
from mock_coordinator.mock_broker import MockBroker
from mock_coordinator.options import BrokerOptions
from mock_coordinator.tcp.server import WireServer, listen_all

__all__ = ["NOTICED_AFTER_MS", "MockCluster"]

NOTICED_AFTER_MS: Final = 9_000
"""How long a crashed broker goes unnoticed: Kafka's ``broker.session.timeout.ms``."""


_BROKERS: Final = 3


class MockCluster(MockBroker):
    """Several brokers, with ids from 1 up (or from ``node.id``), each on a port of its own.

    All brokers share their disks. A replica is in sync whenever its broker runs, and no record is
    lost when a leader moves, however the old one stopped. Topics have three replicas by default.

    Methods act on the broker that leads the partition or coordinates the group.
    ``connect(node_id=2)`` opens an in-process connection to a particular broker.

    Args:
        topics: As for ``MockBroker``.
        **options: As for ``MockBroker``; ``brokers`` is 3 by default.

    Raises:
        TypeError, ConfigError, OSError, OwnershipViolation: As ``MockBroker``.
    """

    def __init__(
        self, topics: Mapping[str, int] | None = None, **options: Unpack[BrokerOptions]
    ) -> None:
        self._starting: Final = anyio.Lock()
        """Only one broker starts or stops at a time: its port must be free before it is bound
        again."""
        options.setdefault("brokers", _BROKERS)
        super().__init__(topics, **options)

    # -- where -------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The brokers by id: their addresses, and whether they run. Read only."""
        return tuple(self.core.broker.nodes)

    @property
    def bootstrap(self) -> str:
        """``host:port,host:port,..`` of all brokers, running or not."""
        return ",".join(f"{node.host}:{node.port}" for node in self.nodes)

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """The addresses that the brokers are bound to, by id; empty if they do not listen."""
        return tuple((server.host, server.port) for server in self._servers.values())

    def connect(
        self,
        *,
        client_id: str | None = "in-process",
        host: str = "/127.0.0.1",
        through_bytes: bool = True,
        principal: str = ANONYMOUS,
        node_id: int | None = None,
    ) -> InProcessConnection:
        """Open an in-process connection to a broker.

        Args:
            client_id: The client id in request headers.
            host: The client's address, as the broker sees it.
            through_bytes: Whether requests and responses are encoded and decoded, as on a socket.
            principal: The authenticated principal, for the authorizer.
            node_id: The broker. ``None``: each request goes to the broker that it needs.

        Returns:
            The connection. Close it, or use it in a ``with`` block.

        Raises:
            ConfigError: If the broker does not exist or is down.
        """
        if node_id is not None and not self._node(node_id).up:
            raise ConfigError(f"broker {node_id} is down")
        return InProcessConnection(
            self._driver,
            client_id=client_id,
            host=host,
            through_bytes=through_bytes,
            principal=principal,
            node_id=node_id,
        )

    def leader_of(self, topic: str, partition: int = 0) -> int | None:
        """The leader of a partition.

        Args:
            topic: The topic's name.
            partition: The partition's number.

        Returns:
            The broker's id; ``None`` if there is no leader.

        Raises:
            KeyError: For an unknown topic.
            IndexError: For an unknown partition.
        """
        found = self.core.broker.catalog.topics[topic]
        return self.core.broker.partition_state(found, partition).leader

    def coordinator_of(self, group_id: str) -> int | None:
        """The coordinator of a group, which need not exist. Raises nothing.

        Args:
            group_id: The group's id.

        Returns:
            The broker's id; ``None`` if there is no coordinator.
        """
        self._have_offsets_topic()
        return self.core.broker.coordinator_node(self.core.groups.partition_of(group_id))

    def transaction_coordinator_of(self, transactional_id: str) -> int | None:
        """The coordinator of a transactional id, which need not exist. Raises nothing.

        Args:
            transactional_id: The transactional id.

        Returns:
            The broker's id; ``None`` if there is no coordinator.
        """
        self._have_transactions_topic()
        broker = self.core.broker
        partition = broker.disk.transactions.partition_of(transactional_id)
        return broker.coordinator_node(partition, TRANSACTIONS_TOPIC)

    # -- doing -------------------------------------------------------------------------------------

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make a broker the leader of a partition, with the next leader epoch.

        A broker without a replica replaces the old leader in the list of replicas.

        Args:
            topic: The topic's name.
            partition: The partition's number.
            node_id: The new leader.

        Raises:
            KeyError: For an unknown topic.
            IndexError: For an unknown partition.
            ConfigError: If the broker does not exist or is down.
        """
        found = self.core.broker.catalog.topics[topic]
        self.core.broker.partition_state(found, partition)
        if not self._node(node_id).up:
            raise ConfigError(f"broker {node_id} is down")
        self._submit(LeaderMoved(topic, partition, node_id))

    def move_coordinator(self, group_id: str, node_id: int) -> None:
        """Make a broker the coordinator of a group, and of all groups in the same partition of
        ``__consumer_offsets``.

        Args:
            group_id: The group's id.
            node_id: The new coordinator.

        Raises:
            ConfigError: If the broker does not exist or is down.
        """
        self._have_offsets_topic()
        self.move_leader(OFFSETS_TOPIC, self.core.groups.partition_of(group_id), node_id)

    def move_transaction_coordinator(self, transactional_id: str, node_id: int) -> None:
        """Make a broker the coordinator of a transactional id, and of all ids in the same partition
        of ``__transaction_state``.

        Args:
            transactional_id: The transactional id.
            node_id: The new coordinator.

        Raises:
            ConfigError: If the broker does not exist or is down.
        """
        self._have_transactions_topic()
        partition = self.core.broker.disk.transactions.partition_of(transactional_id)
        self.move_leader(TRANSACTIONS_TOPIC, partition, node_id)

    async def stop_broker(self, node_id: int) -> None:
        """Shut a broker down cleanly: its leaderships move, then its connections are closed.

        Does nothing if the broker is down.

        Args:
            node_id: The broker.

        Raises:
            ConfigError: For an unknown broker.
        """
        await self._down(node_id, 0, "the broker was shut down")

    async def crash_broker(self, node_id: int, *, noticed_after_ms: int = NOTICED_AFTER_MS) -> None:
        """Crash a broker: its connections are closed at once, the cluster notices later.

        Until then its partitions have no leader that answers. A partition with a single replica
        (``default.replication.factor`` is 1 by default) has none until the broker is back.

        Args:
            node_id: The broker.
            noticed_after_ms: When the cluster notices, in milliseconds (Kafka's
                ``broker.session.timeout.ms``). Pass 500 or so in a test that waits for it.

        Raises:
            ConfigError: For an unknown broker.
        """
        await self._down(node_id, noticed_after_ms, "the broker died")

    async def start_broker(self, node_id: int) -> None:
        """Start a broker again, on its port and with its records.

        Leaderships do not move back to it, except for partitions without a leader. Does nothing if
        the broker runs.

        Args:
            node_id: The broker.

        Raises:
            ConfigError: For an unknown broker.
            OSError: If another process has taken the port; the broker stays down.
        """
        self._node(node_id)
        async with self._starting:
            if self._node(node_id).up:
                return
            if self._tasks is not None:
                servers = self._servers_of(node_id)
                await listen_all(servers)
                for server in servers:
                    self._tasks.start_soon(server.serve)
            self._submit(NodeStarted(node_id))

    async def _down(self, node_id: int, noticed_after_ms: int, why: str) -> None:
        self._node(node_id)
        async with self._starting:
            if not self._node(node_id).up:
                return
            self._submit(NodeStopped(node_id, noticed_after_ms))
            self._driver.close_node(node_id, why)
            if self._tasks is not None:
                for server in self._servers_of(node_id):
                    await server.stop()

    def _servers_of(self, node_id: int) -> list[WireServer]:
        """The servers of a broker's listeners, including those with TLS and SASL."""
        plain = self._servers.get(node_id)
        more = [server for server in self._more_servers if server.node_id in (None, node_id)]
        return more if plain is None else [plain, *more]

    def _submit(self, event: Input) -> None:
        self._driver.submit(event)

    def _node(self, node_id: int) -> Node:
        node = self.core.broker.nodes.get(node_id)
        if node is None:
            known = ", ".join(map(str, self.core.broker.nodes.ids))
            raise ConfigError(f"unknown broker {node_id}, expected one of {known}")
        return node

    def _have_offsets_topic(self) -> None:
        create_offsets_topic(self.core.broker, self._driver.now_ms())

    def _have_transactions_topic(self) -> None:
        create_transactions_topic(self.core.broker, self._driver.now_ms())

"""One or more brokers in a thread, for tests that are not async and clients that block.

::

    with BrokerThread({"orders": 3}) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        ...
        broker.wait_for(lambda each: len(each.records("orders")) == 10)

    with ClusterThread({"orders": 3}, brokers=3) as cluster:
        cluster.move_leader("orders", 0, 2)
        cluster.stop_broker(1)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from inspect import isawaitable
from types import TracebackType
from typing import Final, Generic, Self, TypeVar, Unpack, overload

from anyio.from_thread import BlockingPortal, start_blocking_portal

from kip848_client.errors import ConfigError
from mock_coordinator.batches import NewRecord, StoredRecord
from mock_coordinator.core.faults import Fault
from mock_coordinator.core.groups import CoordinatorMetric, GroupSnapshot
from mock_coordinator.core.nodes import Node
from mock_coordinator.driver.request_log import LoggedRequest
from mock_coordinator.mock_broker import MockBroker
from mock_coordinator.mock_cluster import NOTICED_AFTER_MS, MockCluster
from mock_coordinator.options import BrokerOptions, CheckedOptions

__all__ = ["BrokerThread", "ClusterThread"]

T = TypeVar("T")
B = TypeVar("B", bound=MockBroker)


class _Threaded(Generic[B]):
    """A broker or cluster in a thread, with the methods that both have."""

    def __init__(self, make: Callable[[], B]) -> None:
        self._make: Final = make
        self._portal: BlockingPortal | None = None
        self._broker: B | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal("asyncio"))
            broker = portal.call(self._make)
            stack.enter_context(portal.wrap_async_context_manager(broker))
            self._portal, self._broker = portal, broker
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(exc_type, exc, traceback)

    @overload
    def call(self, function: Callable[[B], Awaitable[T]]) -> T: ...

    @overload
    def call(self, function: Callable[[B], T]) -> T: ...

    def call(self, function: Callable[[B], object]) -> object:
        """Call a function in the broker's thread and return its result.

        Args:
            function: Gets the ``MockBroker`` or ``MockCluster``. A returned awaitable is awaited
                there.

        Raises:
            RuntimeError: Outside of the ``with`` block.
        """
        if self._portal is None or self._broker is None:
            raise RuntimeError("start the broker with a `with` block first")
        broker = self._broker

        async def run() -> object:
            result = function(broker)
            return await result if isawaitable(result) else result

        return self._portal.call(run)

    @property
    def bootstrap(self) -> str:
        """``host:port``, for ``bootstrap.servers``."""
        return self.call(lambda broker: broker.bootstrap)

    def inject(self, *faults: Fault) -> None:
        """Add faults (see ``mock_coordinator.core.faults``)."""
        self.call(lambda broker: broker.faults.add(*faults))

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises ``BrokerError``."""
        self.call(lambda broker: broker.create_topic(name, partitions))

    def add_partitions(self, name: str, total: int) -> None:
        """Raise a topic's partition count to ``total``. Raises ``BrokerError``."""
        self.call(lambda broker: broker.add_partitions(name, total))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records. Raises ``BrokerError``."""
        self.call(lambda broker: broker.delete_topic(name))

    def produce(
        self,
        topic: str,
        *values: bytes | NewRecord | None,
        partition: int = 0,
        key: bytes | None = None,
    ) -> int:
        """Append records and return the first one's offset. See ``MockBroker.produce``."""
        return self.call(
            lambda broker: broker.produce(topic, *values, partition=partition, key=key)
        )

    def records(self, topic: str, partition: int | None = None) -> list[StoredRecord]:
        """The records of one partition, or of all. See ``MockBroker.records``."""
        return self.call(lambda broker: broker.records(topic, partition))

    def requests(self, api: str | None = None) -> list[LoggedRequest]:
        """The newest requests of all clients, oldest first. See ``MockBroker.requests``."""
        return self.call(lambda broker: broker.requests(api))

    def metrics(self) -> tuple[CoordinatorMetric, ...]:
        """See ``MockBroker.metrics``."""
        return self.call(lambda broker: broker.metrics())

    def snapshot(self, group_id: str) -> GroupSnapshot | None:
        """The current state of a group; ``None`` if it does not exist."""
        return self.call(lambda broker: broker.snapshot(group_id))

    def restart(self) -> None:
        """Crash and restart. Topics, records and groups are kept; all connections are closed."""
        self.call(lambda broker: broker.restart())

    def advance(self, by_ms: int) -> None:
        """Advance a virtual clock. Raises ``ConfigError`` for a real one."""
        self.call(lambda broker: broker.advance(by_ms))

    def wait_for(self, predicate: Callable[[B], bool], timeout_s: float = 10) -> None:
        """Block until a condition holds.

        Args:
            predicate: Gets the broker; called in the broker's thread after each of its steps.
            timeout_s: The limit in seconds.

        Raises:
            TimeoutError: If the condition does not hold in time.
        """
        self.call(lambda broker: broker.wait_for(lambda: predicate(broker), timeout_s))


class BrokerThread(_Threaded[MockBroker]):
    """A ``MockBroker`` in a thread of its own.

    Use it as a context manager. Its methods may be called from any thread, and block until the
    broker has done the work. Reach everything else with ``call``.

    Args:
        topics: As for ``MockBroker``.
        **options: As for ``MockBroker``, except ``brokers``: see ``ClusterThread``.

    Raises:
        TypeError, OSError, OwnershipViolation: As ``MockBroker``.
        ConfigError: As ``MockBroker``, and for more than one broker.
    """

    def __init__(
        self, topics: Mapping[str, int] | None = None, **options: Unpack[BrokerOptions]
    ) -> None:
        brokers = CheckedOptions.of(options).brokers
        if brokers != 1:
            raise ConfigError(f"use ClusterThread for more than one broker (brokers = {brokers})")
        super().__init__(lambda: MockBroker(topics, **options))


class ClusterThread(_Threaded[MockCluster]):
    """A ``MockCluster`` in a thread of its own. Used like ``BrokerThread``.

    Args:
        topics: As for ``MockCluster``.
        **options: As for ``MockCluster``.

    Raises:
        TypeError, ConfigError, OSError, OwnershipViolation: As ``MockCluster``.
    """

    def __init__(
        self, topics: Mapping[str, int] | None = None, **options: Unpack[BrokerOptions]
    ) -> None:
        CheckedOptions.of(options)
        super().__init__(lambda: MockCluster(topics, **options))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The brokers by id: their addresses, and whether they run. Read only."""
        return self.call(lambda cluster: cluster.nodes)

    def leader_of(self, topic: str, partition: int = 0) -> int | None:
        """The id of the broker that leads a partition; ``None`` without a leader. Raises
        ``KeyError`` for an unknown topic, ``IndexError`` for an unknown partition."""
        return self.call(lambda cluster: cluster.leader_of(topic, partition))

    def coordinator_of(self, group_id: str) -> int | None:
        """The id of the broker that coordinates a group; ``None`` without a coordinator."""
        return self.call(lambda cluster: cluster.coordinator_of(group_id))

    def transaction_coordinator_of(self, transactional_id: str) -> int | None:
        """The id of the broker that coordinates a transactional id; ``None`` if there is none."""
        return self.call(lambda cluster: cluster.transaction_coordinator_of(transactional_id))

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make a broker the leader of a partition. See ``MockCluster.move_leader``."""
        self.call(lambda cluster: cluster.move_leader(topic, partition, node_id))

    def move_coordinator(self, group_id: str, node_id: int) -> None:
        """Make a broker the coordinator of a group. See ``MockCluster.move_coordinator``."""
        self.call(lambda cluster: cluster.move_coordinator(group_id, node_id))

    def move_transaction_coordinator(self, transactional_id: str, node_id: int) -> None:
        """Make a broker the coordinator of a transactional id. See
        ``MockCluster.move_transaction_coordinator``."""
        self.call(lambda cluster: cluster.move_transaction_coordinator(transactional_id, node_id))

    def stop_broker(self, node_id: int) -> None:
        """Shut a broker down cleanly. See ``MockCluster.stop_broker``."""
        self.call(lambda cluster: cluster.stop_broker(node_id))

    def crash_broker(self, node_id: int, *, noticed_after_ms: int = NOTICED_AFTER_MS) -> None:
        """Crash a broker. See ``MockCluster.crash_broker``."""
        self.call(lambda cluster: cluster.crash_broker(node_id, noticed_after_ms=noticed_after_ms))

    def start_broker(self, node_id: int) -> None:
        """Start a broker again. See ``MockCluster.start_broker``."""
        self.call(lambda cluster: cluster.start_broker(node_id))

"""A broker, or several, in a thread of their own, for tests that are not async and clients that
block.

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
    """What runs in a thread of its own, and what every broker can be asked there."""

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
        """What a function of the broker returns, called (and awaited) where the broker lives."""
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
        """Let these go wrong from now on (see ``mock_coordinator.core.faults``)."""
        self.call(lambda broker: broker.faults.add(*faults))

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises ``BrokerError``."""
        self.call(lambda broker: broker.create_topic(name, partitions))

    def add_partitions(self, name: str, total: int) -> None:
        """Raise the number of a topic's partitions to ``total``. Raises ``BrokerError``."""
        self.call(lambda broker: broker.add_partitions(name, total))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raises ``BrokerError``."""
        self.call(lambda broker: broker.delete_topic(name))

    def produce(
        self,
        topic: str,
        *values: bytes | NewRecord | None,
        partition: int = 0,
        key: bytes | None = None,
    ) -> int:
        """Append records and return the first one's offset. Raises ``BrokerError``."""
        return self.call(
            lambda broker: broker.produce(topic, *values, partition=partition, key=key)
        )

    def records(self, topic: str, partition: int | None = None) -> list[StoredRecord]:
        """The records of one partition, or of all. Raises ``KeyError`` for an unknown one."""
        return self.call(lambda broker: broker.records(topic, partition))

    def requests(self, api: str | None = None) -> list[LoggedRequest]:
        """The latest requests of all clients, oldest first; of one API when it is named."""
        return self.call(lambda broker: broker.requests(api))

    def metrics(self) -> tuple[CoordinatorMetric, ...]:
        """As ``MockBroker.metrics``."""
        return self.call(lambda broker: broker.metrics())

    def snapshot(self, group_id: str) -> GroupSnapshot | None:
        """A group as it is now; ``None`` for none."""
        return self.call(lambda broker: broker.snapshot(group_id))

    def restart(self) -> None:
        """Crash and come back with topics, records and groups; every connection is closed."""
        self.call(lambda broker: broker.restart())

    def advance(self, by_ms: int) -> None:
        """Move a virtual clock on. Raises ``ConfigError`` for a real one."""
        self.call(lambda broker: broker.advance(by_ms))

    def wait_for(self, predicate: Callable[[B], bool], timeout_s: float = 10) -> None:
        """Block until a predicate of the broker holds; it is looked at after everything that the
        broker does, in the broker's thread. Raises ``TimeoutError``."""
        self.call(lambda broker: broker.wait_for(lambda: predicate(broker), timeout_s))


class BrokerThread(_Threaded[MockBroker]):
    """``MockBroker``, run by another thread; takes what that takes. For several see
    ``ClusterThread``.

    Use it as a context manager. Everything here may be called from any thread, and blocks until
    the broker has done it. What is not here is reached with ``call``. Leaving the block raises
    ``OwnershipViolation`` as leaving ``MockBroker`` does.

    Raises ``ConfigError`` for several ``brokers``, and what ``MockBroker`` does for its options.
    """

    def __init__(
        self, topics: Mapping[str, int] | None = None, **options: Unpack[BrokerOptions]
    ) -> None:
        brokers = CheckedOptions.of(options).brokers
        if brokers != 1:
            raise ConfigError(f"use ClusterThread for more than one broker (brokers = {brokers})")
        super().__init__(lambda: MockBroker(topics, **options))


class ClusterThread(_Threaded[MockCluster]):
    """``MockCluster``, run by another thread; takes what that takes, and is used as
    ``BrokerThread`` is."""

    def __init__(
        self, topics: Mapping[str, int] | None = None, **options: Unpack[BrokerOptions]
    ) -> None:
        CheckedOptions.of(options)
        super().__init__(lambda: MockCluster(topics, **options))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The brokers, by id: where they are, and whether they run. Look, do not touch."""
        return self.call(lambda cluster: cluster.nodes)

    def leader_of(self, topic: str, partition: int = 0) -> int | None:
        """The id of the broker that leads a partition, ``None`` when none does. Raises ``KeyError``
        for an unknown topic and ``IndexError`` for an unknown partition."""
        return self.call(lambda cluster: cluster.leader_of(topic, partition))

    def coordinator_of(self, group_id: str) -> int | None:
        """The id of the broker that coordinates a group, ``None`` when none does."""
        return self.call(lambda cluster: cluster.coordinator_of(group_id))

    def transaction_coordinator_of(self, transactional_id: str) -> int | None:
        """The id of the broker that coordinates a transactional id, ``None`` when none does."""
        return self.call(lambda cluster: cluster.transaction_coordinator_of(transactional_id))

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make a broker the leader of a partition, with the next leader epoch. Raises ``KeyError``
        for an unknown topic and ``IndexError`` for an unknown partition, ``ConfigError`` for a
        broker that does not exist or is down."""
        self.call(lambda cluster: cluster.move_leader(topic, partition, node_id))

    def move_coordinator(self, group_id: str, node_id: int) -> None:
        """Make a broker the coordinator of a group, and of those that share its partition of
        ``__consumer_offsets``. Raises ``ConfigError`` as ``move_leader``."""
        self.call(lambda cluster: cluster.move_coordinator(group_id, node_id))

    def move_transaction_coordinator(self, transactional_id: str, node_id: int) -> None:
        """Make a broker the coordinator of a transactional id. Raises ``ConfigError`` as
        ``move_leader``."""
        self.call(lambda cluster: cluster.move_transaction_coordinator(transactional_id, node_id))

    def stop_broker(self, node_id: int) -> None:
        """Shut a broker down in good order. Raises ``ConfigError`` for an unknown one."""
        self.call(lambda cluster: cluster.stop_broker(node_id))

    def crash_broker(self, node_id: int, *, noticed_after_ms: int = NOTICED_AFTER_MS) -> None:
        """Let a broker die, which the others notice after ``noticed_after_ms``. Raises
        ``ConfigError`` for an unknown one."""
        self.call(lambda cluster: cluster.crash_broker(node_id, noticed_after_ms=noticed_after_ms))

    def start_broker(self, node_id: int) -> None:
        """Start a broker again, at its port and with its records. Raises ``ConfigError`` for an
        unknown one, ``OSError`` when another process has taken the port."""
        self.call(lambda cluster: cluster.start_broker(node_id))

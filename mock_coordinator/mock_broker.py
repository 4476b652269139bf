"""A broker for tests: ``async with MockBroker(topics={"orders": 3}) as broker: ...``"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, Unpack

from kip848_client.core.types import format_topic_id
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
)
from kip848_client.error_codes import error_name
from kip848_client.errors import ConfigError, broker_error
from mock_coordinator.background import Background, open_background
from mock_coordinator.batches import NewRecord, StoredRecord, encode_batch, stored_records
from mock_coordinator.core.authentication.distinguished_names import ANONYMOUS
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.faults import FaultInjector
from mock_coordinator.core.groups import CoordinatorMetric, GroupSnapshot
from mock_coordinator.core.groups.assignment.own_assignors import OwnAssignor
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.settings.tables.topic import TOPIC_ID_SETTING
from mock_coordinator.core.state.internal_topics import (
    create_offsets_topic,
    create_transactions_topic,
)
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.driver.clock import VirtualClock
from mock_coordinator.driver.core_driver import CoreDriver
from mock_coordinator.driver.request_log import LoggedRequest
from mock_coordinator.events_file import EventsFile
from mock_coordinator.inprocess import InProcessConnection
from mock_coordinator.options import BrokerOptions, CheckedOptions, partition_counts
from mock_coordinator.own_assignors import own_assignors
from mock_coordinator.security.listeners import (
    LOCAL_PRINCIPAL,
    extra_servers,
    prepared_state,
    without_authorizer_settings,
)
from mock_coordinator.security.options import SecurityOptions
from mock_coordinator.storage import Storage
from mock_coordinator.tcp.server import WireServer, listen_all

__all__ = ["MockBroker"]

_PRODUCE_VERSION: Final = 12
_ADMIN_TIMEOUT_MS: Final = 60_000


class MockBroker:
    """A Kafka broker with its coordinators, on TCP and in process.

    Use it as an async context manager, under asyncio or trio. Without entering it, it works in
    process only, and only if its clock is virtual or no request has to wait.

    Args:
        topics: Partition counts by topic name. Topics that a data folder already has are not
            changed.
        **options: See ``BrokerOptions``. For several ``brokers`` see ``MockCluster``.

    Raises:
        TypeError: For an unknown option.
        ConfigError: For an invalid value, for settings that Kafka rejects, and for a data folder
            that cannot be used.
        OSError: On entering the block, if the address is in use.
        OwnershipViolation: On leaving the block; see ``check_ownership``.
    """

    def __init__(
        self, topics: Mapping[str, int] | None = None, **options: Unpack[BrokerOptions]
    ) -> None:
        given = CheckedOptions.of(options)
        config, security = without_authorizer_settings(given.config, given.security)
        assignors, config = own_assignors(given.assignors, config)
        self._clock: Final = given.a_clock()
        core = ClusterCore.create(
            BrokerConfig(
                given.a_profile(),
                config,
                client_assignors=given.draft_protocols,
                assignors={name: OwnAssignor(each) for name, each in assignors.items()},
            ),
            given.uuids(),
            self._clock(),
            host=given.host,
            port=given.port,
            brokers=given.brokers,
            racks=given.racks,
            security=prepared_state(security),
        )
        folder = given.folder
        self._storage: Final = None if folder is None else Storage(folder, given.fsync)
        if self._storage is not None:
            core = _on_disk(self._storage, core, self._clock())
        self._driver: Final = CoreDriver(
            core, self._clock, log_size=given.log_size, storage=self._storage
        )
        self._events: Final = None if given.events is None else EventsFile(given.events, core)
        self._servers: Final = self._make_servers(given.host, given.port) if given.listen else {}
        self._local: InProcessConnection | None = None
        self._checks_ownership: Final = given.check_ownership
        self._tasks: Background | None = None
        try:
            self._more_servers: Final = (
                extra_servers(self._driver, security) if given.listen else ()
            )
            self._prepare(topics, security)
        except BaseException:
            self.close()
            raise

    def _prepare(self, topics: Mapping[str, int] | None, security: SecurityOptions | None) -> None:
        """Create the topics and accounts that the user gave, unless the data folder has them."""
        broker = self.core.broker
        if security is not None:
            security.put_scram_credentials(broker.disk.scram, broker.new_uuid)
        for name, partitions in partition_counts(topics):
            if self._storage is None or name not in broker.catalog.topics:
                self.create_topic(name, partitions)

    async def __aenter__(self) -> Self:
        if self._tasks is not None:
            raise RuntimeError("the broker is already running")
        servers = (*self._servers.values(), *self._more_servers)
        try:
            await listen_all(servers)
            tasks = self._tasks = await open_background()
        except BaseException:
            for server in servers:
                await server.abandon()
            self.close()
            raise
        self._driver.timer.join()
        for server in servers:
            tasks.start_soon(server.serve)
        tasks.start_soon(self._driver.timer.run)
        tasks.start_soon(self._driver.gate.run)
        return self

    def _make_servers(self, host: str, port: int) -> dict[int, WireServer]:
        """One server per node. A given port is the first node's; the others count up from it."""
        nodes = self._driver.core.broker.nodes.ids
        if len(nodes) == 1:
            return {nodes[0]: WireServer(self._driver, host, port)}
        return {
            node_id: WireServer(self._driver, host, port and port + i, node_id)
            for i, node_id in enumerate(nodes)
        }

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        tasks, self._tasks = self._tasks, None
        try:
            if tasks is not None:
                await tasks.close()
        finally:
            self._driver.close_all("the broker has ended")
            self.close()
        if exc is None and self._checks_ownership:
            self.check_ownership()

    def close(self) -> None:
        """Release the data folder and a virtual clock. Raises nothing.

        Leaving the ``async with`` block does this. A broker with a data folder must not be used
        afterwards, but its groups, records and requests can still be read.
        """
        self._driver.timer.leave()
        if self._events is not None:
            self._events.close()
        if self._storage is not None:
            self._storage.close()

    # -- where -------------------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The host that clients connect to."""
        return self._driver.core.broker.host

    @property
    def port(self) -> int:
        """The port that clients connect to; 0 until the broker listens."""
        return self._driver.core.broker.port

    @property
    def bootstrap(self) -> str:
        """``host:port``, for ``bootstrap_servers``."""
        return f"{self.host}:{self.port}"

    def bootstrap_of(self, listener: str) -> str:
        """The addresses of one of the further listeners of ``security``.

        Args:
            listener: The listener's name.

        Returns:
            ``host:port`` of each broker, separated by commas.

        Raises:
            KeyError: If the listener does not exist or is not bound yet.
        """
        addresses = self.core.broker.disk.security.addresses[listener]
        if not addresses:
            raise KeyError(f"listener {listener} has no address before the broker listens")
        return ",".join(f"{host}:{port}" for host, port in addresses.values())

    @property
    def address(self) -> tuple[str, int]:
        """The host and port that the broker is bound to; ``("", 0)`` if it does not listen.

        It differs from where clients are sent if the broker listens on all addresses, or if
        ``advertised.listeners`` is set.
        """
        first = next(iter(self._servers.values()), None)
        return ("", 0) if first is None else (first.host, first.port)

    @property
    def driver(self) -> CoreDriver:
        """Runs the broker; for code that drives it in another way."""
        return self._driver

    @property
    def faults(self) -> FaultInjector:
        """The faults to inject: ``broker.faults.add(Fault(Drop(), Match(api="OffsetCommit")))``."""
        return self._driver.faults

    @property
    def core(self) -> ClusterCore:
        """The broker's pure core. Read only."""
        return self._driver.core

    # -- doing (faults hit clients, not this) ------------------------------------------------------

    def connect(
        self,
        *,
        client_id: str | None = "in-process",
        host: str = "/127.0.0.1",
        through_bytes: bool = True,
        principal: str = ANONYMOUS,
    ) -> InProcessConnection:
        """Open an in-process connection. Raises nothing.

        Args:
            client_id: The client id in request headers.
            host: The client's address, as the broker sees it.
            through_bytes: Whether requests and responses are encoded and decoded, as on a socket.
            principal: The authenticated principal, for the authorizer.

        Returns:
            The connection. Close it, or use it in a ``with`` block.
        """
        return InProcessConnection(
            self._driver,
            client_id=client_id,
            host=host,
            through_bytes=through_bytes,
            principal=principal,
        )

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        topic_id: bytes | None = None,
        config: Mapping[str, str] | None = None,
        replication_factor: int | None = None,
    ) -> Topic:
        """Create a topic.

        Args:
            name: The topic's name.
            partitions: The number of partitions.
            topic_id: 16 bytes; random if not given.
            config: Topic settings by Kafka's names.
            replication_factor: Replicas per partition. Default: 3, or the number of brokers if that
                is less.

        Returns:
            The topic, with its id.

        Raises:
            BrokerError: If Kafka would reject the topic.
        """
        brokers = len(self.core.broker.nodes)
        settings = dict(config or {})
        if topic_id is not None:
            settings[TOPIC_ID_SETTING] = format_topic_id(topic_id)
        response = self._ask().ask(
            CreateTopicsRequest(
                topics=(
                    CreateTopicsRequestCreatableTopic(
                        name=name,
                        num_partitions=partitions,
                        replication_factor=replication_factor or min(3, brokers),
                        configs=tuple(
                            CreateTopicsRequestCreatableTopicConfig(name=key, value=value)
                            for key, value in settings.items()
                        ),
                    ),
                ),
                timeout_ms=_ADMIN_TIMEOUT_MS,
            )
        )
        result = response.topics[0]
        _raise_for(result.error_code, result.error_message, "CreateTopics")
        return self.core.broker.catalog.topics[name]

    def add_partitions(self, name: str, total: int) -> None:
        """Add partitions to a topic.

        Args:
            name: The topic's name.
            total: The new number of partitions.

        Raises:
            BrokerError: If the topic does not exist, or ``total`` is not an increase.
        """
        asked = CreatePartitionsRequestCreatePartitionsTopic(
            name=name, count=total, assignments=None
        )
        request = CreatePartitionsRequest(topics=(asked,), timeout_ms=_ADMIN_TIMEOUT_MS)
        result = self._ask().ask(request).results[0]
        _raise_for(result.error_code, result.error_message, "CreatePartitions")

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records.

        Args:
            name: The topic's name.

        Raises:
            BrokerError: If the topic does not exist.
        """
        asked = DeleteTopicsRequestDeleteTopicState(name=name)
        request = DeleteTopicsRequest(topics=(asked,), timeout_ms=_ADMIN_TIMEOUT_MS)
        result = self._ask().ask(request).responses[0]
        _raise_for(result.error_code, result.error_message, "DeleteTopics")

    def produce(
        self,
        topic: str,
        *values: bytes | NewRecord | None,
        partition: int = 0,
        key: bytes | None = None,
    ) -> int:
        """Append records to a partition, in one batch.

        Args:
            topic: The topic's name.
            *values: Values of records (``None``: a tombstone), which get ``key``, or whole
                ``NewRecord`` objects.
            partition: The partition's number.
            key: The key of records that are given by their values.

        Returns:
            The offset of the first record.

        Raises:
            BrokerError: If the broker rejects the records.
        """
        records: Sequence[NewRecord] = [
            value if isinstance(value, NewRecord) else NewRecord(value, key) for value in values
        ]
        data = ProduceRequestPartitionProduceData(
            index=partition, records=encode_batch(records, self._driver.now_ms())
        )
        request = ProduceRequest(
            acks=-1,
            timeout_ms=_ADMIN_TIMEOUT_MS,
            topic_data=(ProduceRequestTopicProduceData(name=topic, partition_data=(data,)),),
        )
        response = self._ask().ask(request, _PRODUCE_VERSION)
        result = response.responses[0].partition_responses[0]
        _raise_for(result.error_code, result.error_message, "Produce")
        offset: int = result.base_offset
        return offset

    def advance(self, by_ms: int) -> None:
        """Advance a virtual clock, firing timers on the way.

        Args:
            by_ms: Milliseconds.

        Raises:
            ConfigError: If the broker has a real clock.
            ValueError, RuntimeError: As ``VirtualClock.advance``.
        """
        if not isinstance(self._clock, VirtualClock):
            raise ConfigError("advance() needs a broker with clock=VirtualClock()")
        self._clock.advance(by_ms)

    @property
    def load_time_ms(self) -> int:
        """How long a coordinator of groups or transactions loads after it has moved, and after
        ``restart``, in milliseconds. Until then it answers COORDINATOR_LOAD_IN_PROGRESS. Default:
        0."""
        return self.core.groups.load_ms

    @load_time_ms.setter
    def load_time_ms(self, value: int) -> None:
        self.core.groups.load_ms = value

    def restart(self) -> None:
        """Crash and restart. Topics, records and groups are kept; all connections are closed.

        Raises:
            OSError: If a data folder cannot be written.
        """
        if self._local is not None:
            self._local.close()
        self._local = None
        self._driver.restart()

    def check_ownership(self) -> None:
        """Check that no two members of a group used the same partition.

        Leaving the ``async with`` block does this, unless ``check_ownership=False``.

        Raises:
            OwnershipViolation: If two members of a group may have used the same partition, or if a
                member used one that was not assigned to it. The message has the requests that led
                to it.
        """
        self._driver.ownership.check()

    async def wait_for(self, predicate: Callable[[], bool], timeout_s: float = 10) -> None:
        """Wait until a condition holds.

        Args:
            predicate: Called after each step of the broker.
            timeout_s: The limit in seconds.

        Raises:
            TimeoutError: If the condition does not hold in time.
        """
        await self._driver.wait_for(predicate, timeout_s)

    # -- looking -----------------------------------------------------------------------------------

    def snapshot(self, group_id: str) -> GroupSnapshot | None:
        """The current state of a group. Raises nothing.

        Args:
            group_id: The group's id.

        Returns:
            Epochs, members, assignments and offsets; ``None`` if the group does not exist.
        """
        return self.core.groups.snapshot(group_id)

    def metrics(self) -> tuple[CoordinatorMetric, ...]:
        """The metrics of the group coordinators. Raises nothing.

        ``event-queue-size`` is the number of requests that faults hold back.

        Returns:
            Metrics with the names of Kafka's ``group-coordinator-metrics``: groups by type and
                state, rebalances, committed offsets, partitions and their load times. Sorted by
                name.
        """
        now_ms = self._driver.now_ms()
        queue = CoordinatorMetric("event-queue-size", {}, self._driver.faults.held_requests)
        found = [*self.core.groups.metrics(now_ms), queue]
        return tuple(sorted(found, key=lambda each: each.name))

    def metric(self, name: str, **tags: str) -> float:
        """One of ``metrics``: ``broker.metric("consumer-group-count", state="stable")``.

        Args:
            name: The metric's name.
            **tags: Tags that it must have.

        Returns:
            The sum of the metrics with this name and these tags.

        Raises:
            KeyError: For an unknown name.
        """
        named = [each for each in self.metrics() if each.name == name]
        if not named:
            raise KeyError(name)
        return sum(each.value for each in named if tags.items() <= each.tags.items())

    def records(self, topic: str, partition: int | None = None) -> list[StoredRecord]:
        """Read a topic's records.

        Args:
            topic: The topic's name.
            partition: One partition; ``None`` for all, in order of their numbers.

        Returns:
            The records, oldest first, including those of aborted transactions.

        Raises:
            KeyError: For an unknown topic or partition.
            WireError: For a batch that unpacks to more than 64 MB.
        """
        found = self.core.broker.catalog.topics[topic]
        wanted = range(found.partitions) if partition is None else (partition,)
        result: list[StoredRecord] = []
        for index in wanted:
            log = self.core.broker.logs.of(found, index)
            if log is None:
                raise KeyError(f"{topic} has no partition {index}")
            result.extend(stored_records(topic, index, log))
        return result

    def requests(self, api: str | None = None) -> list[LoggedRequest]:
        """The newest requests of all clients. Raises nothing.

        Args:
            api: Only those of this API, by Kafka's name.

        Returns:
            The requests, oldest first; at most ``log_size``.
        """
        log = self._driver.requests
        return [entry for entry in log if api is None or entry.api == api]

    def _ask(self) -> InProcessConnection:
        if self._local is None or self._local.is_closed:
            self._local = InProcessConnection(
                self._driver, client_id="mock-broker", principal=LOCAL_PRINCIPAL, is_own=True
            )
        return self._local


def _on_disk(storage: Storage, empty: ClusterCore, now_ms: int) -> ClusterCore:
    """The broker whose disk is a data folder. Creates the coordinators' topics at once, so that
    their records have a place in it. Raises ``ConfigError`` for a folder that cannot be used."""
    disk = empty.broker.disk
    try:
        storage.load(disk)
        create_offsets_topic(empty.broker, now_ms)
        create_transactions_topic(empty.broker, now_ms)
        core = ClusterCore(disk, empty.broker.new_uuid, now_ms)
        storage.begin(disk)
    except BaseException:
        storage.abandon()
        raise
    return core


def _raise_for(code: int, message: str | None, api: str) -> None:
    if code:
        raise broker_error(code, error_name(code), message, api=api)

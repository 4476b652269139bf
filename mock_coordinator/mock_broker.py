"""A broker to test against: ``async with MockBroker(topics={"orders": 3}) as broker: ...``"""

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
    """A single Kafka broker with its group coordinator, on TCP and in process.

    ``topics`` maps names to partition counts; those that are in the data folder already stay as
    they are. All other options are ``BrokerOptions``. For several ``brokers`` see ``MockCluster``.

    Use it as an async context manager, under asyncio or trio. The constructor raises ``TypeError``
    for an option that does not exist, and ``ConfigError`` for one that cannot be meant and for
    settings that Kafka would refuse; entering raises ``OSError`` when the address is taken. Without
    entering it the broker works in process only, as long as the clock is virtual or nothing has to
    wait.
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
        """What users say that there is, unless the data folder has it already."""
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
        """One for each node; a port that was chosen is the first one's, and counts up."""
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
        """Let go of the data folder, if there is one, and of a virtual clock; leaving
        ``async with`` does it. A broker with a data folder must not be asked to do anything
        afterwards; its groups, records and requests can still be looked at."""
        self._driver.timer.leave()
        if self._events is not None:
            self._events.close()
        if self._storage is not None:
            self._storage.close()

    # -- where -------------------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """Where clients connect to."""
        return self._driver.core.broker.host

    @property
    def port(self) -> int:
        """Where clients connect to; 0 until the broker listens."""
        return self._driver.core.broker.port

    @property
    def bootstrap(self) -> str:
        """``host:port``, for ``bootstrap_servers``."""
        return f"{self.host}:{self.port}"

    def bootstrap_of(self, listener: str) -> str:
        """``host:port`` (of each broker, with commas) of a further listener, by its name.

        Raises ``KeyError`` for a listener that does not exist or has no address yet.
        """
        addresses = self.core.broker.disk.security.addresses[listener]
        if not addresses:
            raise KeyError(f"listener {listener} has no address before the broker listens")
        return ",".join(f"{host}:{port}" for host, port in addresses.values())

    @property
    def address(self) -> tuple[str, int]:
        """What the broker is bound to; differs from where clients are sent to when it listens on
        all addresses, or ``advertised.listeners`` says so. ``("", 0)`` when it does not listen."""
        first = next(iter(self._servers.values()), None)
        return ("", 0) if first is None else (first.host, first.port)

    @property
    def driver(self) -> CoreDriver:
        """What runs the broker; for drivers of other kinds."""
        return self._driver

    @property
    def faults(self) -> FaultInjector:
        """What is to go wrong: ``broker.faults.add(Fault(Drop(), Match(api="OffsetCommit")))``."""
        return self._driver.faults

    @property
    def core(self) -> ClusterCore:
        """The broker itself. Look, do not touch."""
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
        """A connection without a socket, as any principal."""
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
        """Create a topic, with an id of your choice if you like. Raises ``BrokerError``.

        It gets ``replication_factor`` replicas; three by default, or one for each broker of fewer.
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
        """Raise the number of a topic's partitions to ``total``. Raises ``BrokerError``."""
        asked = CreatePartitionsRequestCreatePartitionsTopic(
            name=name, count=total, assignments=None
        )
        request = CreatePartitionsRequest(topics=(asked,), timeout_ms=_ADMIN_TIMEOUT_MS)
        result = self._ask().ask(request).results[0]
        _raise_for(result.error_code, result.error_message, "CreatePartitions")

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raises ``BrokerError``."""
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
        """Append records (in one batch) and return the first one's offset.

        A value is the record's value (``None``: a tombstone), with ``key``, or a whole
        ``NewRecord``. Raises ``BrokerError`` when the broker refuses them.
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
        """Move a virtual clock on; timers fire on the way. Raises ``ConfigError`` for a real
        one."""
        if not isinstance(self._clock, VirtualClock):
            raise ConfigError("advance() needs a broker with clock=VirtualClock()")
        self._clock.advance(by_ms)

    @property
    def load_time_ms(self) -> int:
        """How long a coordinator, of groups or of transactions, loads after it has moved, and after
        ``restart``; meanwhile it answers COORDINATOR_LOAD_IN_PROGRESS. 0 unless it is set."""
        return self.core.groups.load_ms

    @load_time_ms.setter
    def load_time_ms(self, value: int) -> None:
        self.core.groups.load_ms = value

    def restart(self) -> None:
        """Crash and come back with topics, records and groups; every connection is closed."""
        if self._local is not None:
            self._local.close()
        self._local = None
        self._driver.restart()

    def check_ownership(self) -> None:
        """Raise ``OwnershipViolation``, with the conversation, when two members of a group may have
        used the same partition, or one used what it was not given. Leaving the ``async with``
        block does it, too, unless ``check_ownership=False``."""
        self._driver.ownership.check()

    async def wait_for(self, predicate: Callable[[], bool], timeout_s: float = 10) -> None:
        """Wait until a predicate holds; it is looked at after everything that the broker does.

        Raises ``TimeoutError``.
        """
        await self._driver.wait_for(predicate, timeout_s)

    # -- looking -----------------------------------------------------------------------------------

    def snapshot(self, group_id: str) -> GroupSnapshot | None:
        """A group as it is now: epochs, members, assignments, offsets; ``None`` for none."""
        return self.core.groups.snapshot(group_id)

    def metrics(self) -> tuple[CoordinatorMetric, ...]:
        """What the group coordinators measure, by Kafka's names (``group-coordinator-metrics``):
        groups by type and state, rebalances, committed offsets, partitions and their load times.
        ``event-queue-size`` is how many requests a fault holds back."""
        now_ms = self._driver.now_ms()
        queue = CoordinatorMetric("event-queue-size", {}, self._driver.faults.held_requests)
        found = [*self.core.groups.metrics(now_ms), queue]
        return tuple(sorted(found, key=lambda each: each.name))

    def metric(self, name: str, **tags: str) -> float:
        """The sum of the metrics of this name and these tags:
        ``broker.metric("consumer-group-count", state="stable")``. Raises ``KeyError`` for a name
        that does not exist."""
        named = [each for each in self.metrics() if each.name == name]
        if not named:
            raise KeyError(name)
        return sum(each.value for each in named if tags.items() <= each.tags.items())

    def records(self, topic: str, partition: int | None = None) -> list[StoredRecord]:
        """The records of one partition, or of all in order of partition.

        Raises ``KeyError`` for an unknown topic or partition, ``WireError`` for records whose
        compression cannot be undone here.
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
        """The latest requests of all clients, oldest first; of one API when it is named."""
        log = self._driver.requests
        return [entry for entry in log if api is None or entry.api == api]

    def _ask(self) -> InProcessConnection:
        if self._local is None or self._local.is_closed:
            self._local = InProcessConnection(
                self._driver, client_id="mock-broker", principal=LOCAL_PRINCIPAL, is_own=True
            )
        return self._local


def _on_disk(storage: Storage, empty: ClusterCore, now_ms: int) -> ClusterCore:
    """The broker whose disk is a data folder. The topics of coordinators are made at once, so that
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

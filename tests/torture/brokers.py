"""Three brokers to torture processes with: the bundled ones, or Apache Kafka. Leaders move when
told to; with those of the internal topics, which have one partition each, coordinators move. Apache
Kafka's can be killed as well, and clients can be cut from them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from kip848_client.error_codes import ErrorCode, error_name
from mock_coordinator import MockCluster
from tests.support.kafka_broker import BrokerFailedError
from tests.support.plain_message import message
from tests.support.real_cluster import RealCluster
from tests.support.tcp_proxy import TcpProxy
from tests.support.wire_connection import ConnectionLostError
from tests.torture.names import GROUP, IN, OUT, PARTITIONS, READERS, SESSION_MS

__all__ = [
    "NODES",
    "OFFSETS",
    "TRANSACTIONS",
    "UNREACHABLE",
    "Brokers",
    "RealBrokers",
    "committed",
    "mock_brokers",
    "proxied_brokers",
    "real_brokers",
]

OFFSETS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"

NODES: Final = (1, 2, 3)
UNREACHABLE: Final = (ConnectionLostError, OSError)
"""What asking a broker raises that is down."""

_TOPICS: Final = (IN, OUT, OFFSETS, TRANSACTIONS)
_BY_NAME: Final = 12
"""Of Metadata."""
_HEARTBEAT_MS: Final = 300
_PREFERRED: Final = 0
_IS_MOVED: Final = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
_PATIENCE_S: Final = 30.0
_PAUSE_S: Final = 0.05

_CONFIGS: Final = {
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(_HEARTBEAT_MS),
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "auto.create.topics.enable": "false",
}
_KILLED_CONFIGS: Final = {
    **_CONFIGS,
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
"""Of brokers of which one may be missing: what is acknowledged is on two of them."""

_LOG_LEVELS: Final = {
    "kafka.coordinator.transaction": "debug",
    "kafka.server.AddPartitionsToTxnManager": "debug",
    "kafka.cluster.Partition": "info",
    "org.apache.kafka.coordinator": "info",
    "org.apache.kafka.storage.internals.log.ProducerStateManager": "info",
    "state.change.logger": "info",
}
"""Of brokers that are harmed: why they do not end a transaction, and who led what, is told
nowhere else. It makes some 5 MB in 20 minutes."""


class Brokers(Protocol):
    """Three of them, with ids 1, 2, 3, and the topics ``in`` and ``out``."""

    @property
    def bootstrap(self) -> str: ...

    async def ask(self, node_id: int, request: Any, version: int) -> Any:
        """The answer of one broker. Raises one of ``UNREACHABLE`` if it is down."""
        ...

    async def lead(self, topic: str, partition: int, after: Callable[[int], int]) -> str | None:
        """Make another broker the leader: which one, ``after`` makes of the present one. Returns
        why that is not done; ``None`` if it is."""
        ...

    async def bounce(self, node_id: int) -> None:
        """Stop a broker in good order and start it again; returns when all replicas are in sync."""
        ...

    async def bounce_controller(self) -> None:
        """Kill the first broker, which is the only controller, and start it again; returns as
        ``bounce`` does."""
        ...


async def _ask_any(brokers: Brokers, request: Any, version: int) -> Any:
    """The answer of one that is there. Raises one of ``UNREACHABLE``."""
    for node_id in NODES:
        try:
            return await brokers.ask(node_id, request, version)
        except UNREACHABLE:
            if node_id == NODES[-1]:
                raise
    return None


async def committed(
    brokers: Brokers, group: str = GROUP, *, is_stable: bool = True
) -> dict[int, int] | None:
    """What the group has committed of ``in``; ``None`` while that cannot be told, or, if it is to
    be stable, while a transaction is open that would change it."""
    find = message("FindCoordinator", key_type=0, coordinator_keys=[group])
    wanted = {"group_id": group, "topics": None}
    request = message("OffsetFetch", groups=[wanted], require_stable=is_stable)
    try:
        found = (await _ask_any(brokers, find, 4)).coordinators[0]
        if found.error_code:
            return None
        told = (await brokers.ask(found.node_id, request, 9)).groups[0]
    except UNREACHABLE:
        return None
    rows = [row for topic in told.topics if topic.name == IN for row in topic.partitions]
    if told.error_code or any(row.error_code for row in rows):
        return None
    return {row.partition_index: row.committed_offset for row in rows}


async def _until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    loop = asyncio.get_running_loop()
    give_up = loop.time() + _PATIENCE_S
    while not await condition():
        assert loop.time() < give_up, what
        await asyncio.sleep(_PAUSE_S)


async def _prepare(brokers: Brokers) -> None:
    """Create the topics, the coordinators' among them, and wait until all brokers know them."""
    topics = [
        {"name": name, "num_partitions": PARTITIONS, "replication_factor": len(NODES)}
        for name in (IN, OUT)
    ]
    answer = await brokers.ask(NODES[0], message("CreateTopics", topics=topics), 7)
    assert not any(each.error_code for each in answer.topics), answer

    async def is_ready() -> bool:
        for kind, key in ((0, GROUP), (1, "a")):
            find = message("FindCoordinator", key_type=kind, coordinator_keys=[key])
            if (await brokers.ask(NODES[0], find, 4)).coordinators[0].error_code:
                return False
        metadata = message("Metadata", topics=[{"name": name} for name in _TOPICS])
        for node_id in NODES:
            told = await brokers.ask(node_id, metadata, _BY_NAME)
            if not all(topic.partitions and _is_led(topic) for topic in told.topics):
                return False
        told = [await committed(brokers, group) for group in (GROUP, READERS)]
        return all(each is not None for each in told)

    await _until(is_ready, "the topics are not there in time")


def _is_led(topic: Any) -> bool:
    return all(each.leader_id >= 0 for each in topic.partitions)


class _Mock:
    def __init__(self, cluster: MockCluster) -> None:
        self._cluster = cluster

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    async def ask(self, node_id: int, request: Any, version: int) -> Any:
        connection = self._cluster.connect(node_id=node_id, client_id="torture")
        try:
            return connection.ask(request, version)
        finally:
            connection.close()

    async def lead(self, topic: str, partition: int, after: Callable[[int], int]) -> str | None:
        leader = self._cluster.leader_of(topic, partition)
        if leader is None:
            return "nobody leads it"
        self._cluster.move_leader(topic, partition, after(leader))
        return None

    async def bounce(self, node_id: int) -> None:
        await self._cluster.stop_broker(node_id)
        await self._cluster.start_broker(node_id)

    async def bounce_controller(self) -> None:
        await self.bounce(NODES[0])  # the others take its part


@asynccontextmanager
async def mock_brokers(profile: str) -> AsyncGenerator[Brokers]:
    """The bundled ones, as Kafka of this line."""
    async with MockCluster(profile=profile, config=_CONFIGS) as cluster:
        found = _Mock(cluster)
        await _prepare(found)
        yield found


class RealBrokers:
    """Those of Apache Kafka; asked directly, however clients get there."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    async def ask(self, node_id: int, request: Any, version: int) -> Any:
        return await asyncio.to_thread(self._cluster.ask, node_id, request, version)

    async def lead(self, topic: str, partition: int, after: Callable[[int], int]) -> str | None:
        told = await _ask_any(self, message("Metadata", topics=[{"name": topic}]), _BY_NAME)
        (led_by,) = (
            each.leader_id
            for each in told.topics[0].partitions
            if each.partition_index == partition
        )
        if led_by < 0:
            return "nobody leads it"
        leader = after(led_by)
        order = [leader, *(node_id for node_id in NODES if node_id != leader)]
        preferred = {
            "name": topic,
            "partitions": [{"partition_index": partition, "replicas": order}],
        }
        alter = message("AlterPartitionReassignments", topics=[preferred])
        altered = await _ask_any(self, alter, 0)
        code = altered.error_code or altered.responses[0].partitions[0].error_code
        if code != ErrorCode.NONE:
            return error_name(code)
        chosen = {"topic": topic, "partitions": [partition]}
        elect = message("ElectLeaders", election_type=_PREFERRED, topic_partitions=[chosen])
        elected = await _ask_any(self, elect, 2)
        rows = [row for each in elected.replica_election_results for row in each.partition_result]
        codes = [elected.error_code, *(row.error_code for row in rows)]
        wrong = [error_name(code) for code in codes if code not in _IS_MOVED]
        return ", ".join(wrong) or None

    async def crash(self, node_id: int) -> None:
        """Kill a broker."""
        await asyncio.to_thread(self._cluster.crash, node_id)

    async def restart(self, node_id: int) -> None:
        """Start a broker again; returns when all replicas are in sync. Raises
        ``BrokerFailedError``."""
        await asyncio.to_thread(self._cluster.restart, node_id)
        metadata = message("Metadata", topics=None)

        async def is_whole() -> bool:
            try:
                told = await self.ask(node_id, metadata, _BY_NAME)
            except UNREACHABLE:
                return False
            partitions = [each for topic in told.topics for each in topic.partitions]
            return all(len(each.isr_nodes) == len(NODES) for each in partitions)

        try:
            await _until(is_whole, f"broker {node_id} is not in sync in time")
        except AssertionError as err:
            raise BrokerFailedError(f"{err}\n{self._cluster.log_tail(node_id)}") from err

    async def bounce(self, node_id: int) -> None:
        await asyncio.to_thread(self._cluster.stop, node_id)
        await self.restart(node_id)

    async def bounce_controller(self) -> None:
        await self.crash(NODES[0])
        await self.restart(NODES[0])


@asynccontextmanager
async def proxied_brokers(
    version: str, keep: Path | None = None
) -> AsyncGenerator[tuple[RealBrokers, TcpProxy]]:
    """Apache Kafka's of a release, each of which is a controller, too, and a proxy to reach them
    through. Their logs and data are in ``keep`` afterwards. Raises what ``RealCluster`` raises."""
    async with TcpProxy.open(NODES) as proxy:
        manager = RealCluster.start(
            version,
            _KILLED_CONFIGS,
            advertised=proxy.ports,
            controllers=len(NODES),
            log_levels=_LOG_LEVELS,
            keep=keep,
        )
        cluster = await asyncio.to_thread(manager.__enter__)
        proxy.targets = cluster.behind
        try:
            found = RealBrokers(cluster)
            await _prepare(found)
            yield found, proxy
        finally:
            await asyncio.to_thread(manager.__exit__, None, None, None)


@asynccontextmanager
async def real_brokers(version: str) -> AsyncGenerator[Brokers]:
    """Apache Kafka's of a release. Raises what ``RealCluster`` raises."""
    manager = RealCluster.start(version, _CONFIGS)
    cluster = await asyncio.to_thread(manager.__enter__)
    try:
        found = RealBrokers(cluster)
        await _prepare(found)
        yield found
    finally:
        await asyncio.to_thread(manager.__exit__, None, None, None)

"""Three brokers at three ports: leaders and coordinators move under the feet of clients, brokers
stop and die, and no record is lost and no commit goes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio.to_thread
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from kip848_client import Consumer, Record
from mock_coordinator import MockCluster
from mock_coordinator.core.faults import Fault, Match, MoveCoordinator
from mock_coordinator.security import ListenerOptions, SecurityOptions
from tests.integration.cluster import eventually, polling
from tests.integration.test_server_cli import running

pytestmark = [pytest.mark.asyncio]

FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
PARTITIONS = 6
PATIENCE_S = 20.0


@asynccontextmanager
async def three_brokers() -> AsyncGenerator[MockCluster]:
    async with MockCluster({"orders": PARTITIONS}, config=FAST) as cluster:
        yield cluster


def move_all(cluster: MockCluster, group: str) -> None:
    """Every leader, and the group's coordinator, to the next broker that runs."""
    up = [node.node_id for node in cluster.nodes if node.up]

    def after(node_id: int | None) -> int:
        return up[(up.index(node_id) + 1) % len(up)] if node_id in up else up[0]

    for partition in range(PARTITIONS):
        cluster.move_leader("orders", partition, after(cluster.leader_of("orders", partition)))
    cluster.move_coordinator(group, after(cluster.coordinator_of(group)))


async def produce(producer: AIOKafkaProducer, numbers: Iterable[int]) -> None:
    for number in numbers:
        await producer.send("orders", b"%d" % number, partition=number % PARTITIONS)
    await producer.flush()


def committed(cluster: MockCluster, group: str) -> int:
    snapshot = cluster.snapshot(group)
    if snapshot is None:
        return -1
    return sum(offset.offset for offset in snapshot.offsets.get("orders", {}).values())


def has_all(seen: list[Record[Any, Any]], total: int) -> bool:
    """Whether every number below ``total`` has come."""
    return {int(record.value or b"") for record in seen} == set(range(total))


def consumer(cluster: MockCluster) -> Consumer[bytes | None, bytes | None]:
    return Consumer(
        "orders",
        bootstrap_servers=cluster.bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
    )


async def test_our_consumer_follows_whatever_moves() -> None:
    async with (
        three_brokers() as cluster,
        AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer,
        consumer(cluster) as one,
        polling(one) as seen,
    ):
        total = 0
        for _ in range(4):
            await produce(producer, range(total, total + 30))
            total += 30
            await eventually(partial(has_all, seen, total))
            await one.commit()
            assert committed(cluster, "g") == total
            move_all(cluster, "g")
        assert sorted(int(record.value or b"") for record in seen) == list(range(total))


async def test_our_consumer_waits_for_a_coordinator_that_loads() -> None:
    async with (
        three_brokers() as cluster,
        AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer,
        consumer(cluster) as one,
        polling(one) as seen,
    ):
        await produce(producer, range(30))
        await eventually(lambda: len(seen) == 30)
        cluster.load_time_ms = 700
        move_all(cluster, "g")
        began = time.monotonic()
        await one.commit()
        assert time.monotonic() - began > 0.5, "nothing could be committed while it loaded"
        assert committed(cluster, "g") == 30
        await produce(producer, range(30, 60))
        await eventually(lambda: len(seen) == 60)
        snapshot = cluster.snapshot("g")
        assert snapshot is not None
        assert len(snapshot.members) == 1, "the member has stayed who it was"


async def test_two_of_our_consumers_live_through_a_rolling_restart() -> None:
    async with (
        three_brokers() as cluster,
        AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer,
        consumer(cluster) as one,
        consumer(cluster) as two,
        polling(one) as seen,
        polling(two, seen),
    ):
        await eventually(lambda: len(one.assignment()) == len(two.assignment()) == 3)
        total = 0
        for node_id in (1, 2, 3):
            await cluster.stop_broker(node_id)
            await produce(producer, range(total, total + 30))
            total += 30
            await eventually(partial(has_all, seen, total))
            await cluster.start_broker(node_id)
        assert {cluster.leader_of("orders", p) for p in range(PARTITIONS)} <= {1, 2, 3}


async def test_our_consumer_outlives_a_broker_that_dies() -> None:
    async with (
        three_brokers() as cluster,
        AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer,
        consumer(cluster) as one,
        polling(one) as seen,
    ):
        await produce(producer, range(30))
        await eventually(lambda: len(seen) == 30)
        await one.commit()
        victim = cluster.coordinator_of("g")
        assert victim is not None
        await cluster.crash_broker(victim, noticed_after_ms=1_000)
        await produce(producer, range(30, 60))
        await eventually(lambda: {int(r.value or b"") for r in seen} == set(range(60)))
        await one.commit()
        assert committed(cluster, "g") == 60


async def fetch_no_more(consumer: AIOKafkaConsumer) -> None:
    """Return once no fetch of the consumer is under way or rests between two attempts: aiokafka
    0.14's ``stop`` trips over one that it cancels in its rest, which a broker that is down causes.
    """
    consumer.pause(*consumer.assignment())
    fetcher = consumer._fetcher
    assert fetcher is not None
    await eventually(lambda: all(task.done() for task in fetcher._pending_tasks))


def aiokafkas_consumer(cluster: MockCluster) -> AIOKafkaConsumer:
    """A member for as long as the test has patience. By default a session lasts ten seconds: when
    the machine stood still for longer, the group had removed the member before its next heartbeat,
    and its commit failed, as it should."""
    return AIOKafkaConsumer(
        "orders",
        bootstrap_servers=cluster.bootstrap,
        group_id="classic",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=100,
        retry_backoff_ms=50,
        session_timeout_ms=60_000,
    )


async def read_up_to(total: int, one: AIOKafkaConsumer, seen: list[int]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while len(set(seen)) < total:
            batches = await one.getmany(timeout_ms=200)
            seen.extend(int(r.value or b"") for batch in batches.values() for r in batch)


async def test_aiokafkas_consumer_follows_whatever_moves() -> None:
    async with (
        three_brokers() as cluster,
        AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer,
        aiokafkas_consumer(cluster) as one,
    ):
        seen: list[int] = []
        total = 0
        for _ in range(3):
            await produce(producer, range(total, total + 30))
            total += 30
            await read_up_to(total, one, seen)
            await one.commit()
            assert committed(cluster, "classic") == total
            move_all(cluster, "classic")
        await cluster.stop_broker(cluster.coordinator_of("classic") or 1)
        await produce(producer, range(total, total + 30))
        await read_up_to(total + 30, one, seen)
        await one.commit()
        assert set(seen) == set(range(total + 30))
        assert committed(cluster, "classic") == total + 30
        await fetch_no_more(one)


@pytest.mark.parametrize(
    "api", ["JoinGroup", "SyncGroup", "OffsetFetch", "Heartbeat", "OffsetCommit"]
)
async def test_aiokafkas_consumer_finds_a_coordinator_that_moves_under_each_request(
    api: str,
) -> None:
    """The coordinator moves up to three times, always when a request of this kind comes. Each
    time costs no more than a look-up behind a fetch that waits (half a second)."""
    async with (
        three_brokers() as cluster,
        AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer,
    ):
        match = Match(api=api, group_id="classic")
        cluster.faults.add(Fault(MoveCoordinator(), match, times=3))
        async with aiokafkas_consumer(cluster) as one:
            seen: list[int] = []
            await produce(producer, range(30))
            await read_up_to(30, one, seen)
            await one.commit()
            await eventually(lambda: bool(cluster.faults.hits))
            assert committed(cluster, "classic") == 30
            assert sorted(seen) == list(range(30)), "none came twice"
            await fetch_no_more(one)


RECONNECT = {"reconnect.backoff.ms": 20, "retry.backoff.ms": 20, "retry.backoff.max.ms": 100}


def librdkafka_at_work(bootstrap: str, protocol: str, ask: Callable[[str], None]) -> set[int]:
    """Produce, consume and commit, and after each round ``ask`` for something to happen; returns
    what was consumed. Runs in a thread."""
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    producer = confluent.Producer({"bootstrap.servers": bootstrap, **RECONNECT})
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "g",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **RECONNECT,
    }
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 100
    reader = confluent.Consumer(settings)
    reader.subscribe(["orders"])
    seen: set[int] = set()
    total = 0
    try:
        for what in ("move", "move", "stop", "end"):
            for number in range(total, total + 30):
                producer.produce("orders", b"%d" % number, partition=number % PARTITIONS)
            assert producer.flush(PATIENCE_S) == 0
            total += 30
            give_up = time.monotonic() + PATIENCE_S
            while len(seen) < total:
                assert time.monotonic() < give_up, f"{len(seen)} of {total} came"
                message = reader.poll(0.05)
                if message is not None and message.error() is None:
                    seen.add(int(message.value()))
            reader.commit(asynchronous=False)
            ask(what)
    finally:
        reader.close()
    return seen


@pytest.mark.foreign
@pytest.mark.parametrize("protocol", ["consumer", "classic"])
async def test_librdkafkas_consumer_follows_whatever_moves(protocol: str) -> None:
    rounds = 0

    async def happen(cluster: MockCluster, what: str) -> None:
        nonlocal rounds
        rounds += 1
        assert committed(cluster, "g") == 30 * rounds
        if what == "move":
            move_all(cluster, "g")
        elif what == "stop":
            await cluster.stop_broker(cluster.coordinator_of("g") or 1)

    async with three_brokers() as cluster:
        loop = asyncio.get_running_loop()

        def ask(what: str) -> None:
            asyncio.run_coroutine_threadsafe(happen(cluster, what), loop).result(PATIENCE_S)

        seen = await anyio.to_thread.run_sync(librdkafka_at_work, cluster.bootstrap, protocol, ask)
    assert rounds == 4
    assert seen == set(range(120))


async def test_transactions_follow_their_coordinator() -> None:
    async with (
        three_brokers() as cluster,
        AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id="t") as producer,
        AIOKafkaConsumer(
            "orders",
            bootstrap_servers=cluster.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as one,
    ):
        for round_ in range(3):
            async with producer.transaction():
                await produce(producer, range(round_ * 6, round_ * 6 + 6))
                moved = cluster.leader_of("__transaction_state", 0)
                for partition in range(50):
                    cluster.move_leader("__transaction_state", partition, (moved or 1) % 3 + 1)
                move_all(cluster, "g")
        seen: list[int] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(seen) < 18:
                batches = await one.getmany(timeout_ms=200)
                seen.extend(int(r.value or b"") for batch in batches.values() for r in batch)
        assert sorted(seen) == list(range(18))


async def test_a_broker_that_is_down_accepts_no_connection_and_comes_back_at_its_port() -> None:
    async with three_brokers() as cluster:
        where = [(node.host, node.port) for node in cluster.nodes]
        assert len(set(where)) == 3
        await cluster.stop_broker(2)
        with pytest.raises(OSError):
            await anyio.connect_tcp(*where[1])
        await cluster.stop_broker(2)
        await cluster.start_broker(2)
        stream = await anyio.connect_tcp(*where[1])
        await stream.aclose()
        await cluster.start_broker(2)
        assert [(node.host, node.port) for node in cluster.nodes] == where


async def test_a_broker_that_is_down_has_no_listener_at_all() -> None:
    listener = ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT")
    security = SecurityOptions(users={"alice": "x"}, listeners=(listener,))
    async with MockCluster({"t": 1}, brokers=2, security=security) as cluster:
        first, second = (int(a.rpartition(":")[2]) for a in cluster.bootstrap_of("SASL").split(","))
        await cluster.stop_broker(1)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(cluster.host, first)
        await cluster.start_broker(1)
        for port in (first, second):
            _, writer = await asyncio.open_connection(cluster.host, port)
            writer.close()
            await writer.wait_closed()


async def test_brokers_that_are_started_and_stopped_at_once_do_it_one_after_the_other() -> None:
    async with three_brokers() as cluster:
        _, writer = await asyncio.open_connection(cluster.nodes[1].host, cluster.nodes[1].port)
        for _ in range(3):
            await asyncio.gather(
                cluster.stop_broker(2), cluster.start_broker(2), cluster.start_broker(2)
            )
            assert cluster.nodes[1].up
            await asyncio.gather(
                cluster.stop_broker(2), cluster.crash_broker(2), cluster.start_broker(2)
            )
            assert cluster.nodes[1].up
        stream = await anyio.connect_tcp(cluster.nodes[1].host, cluster.nodes[1].port)
        await stream.aclose()
        writer.close()


async def test_a_broker_that_cannot_start_listens_nowhere_and_may_try_again() -> None:
    listener = ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT")
    security = SecurityOptions(users={"alice": "x"}, listeners=(listener,))
    async with MockCluster({"t": 1}, brokers=2, security=security) as cluster:
        plain = cluster.nodes[0].port
        sasl = int(cluster.bootstrap_of("SASL").split(",")[0].rpartition(":")[2])
        await cluster.stop_broker(1)
        other = await asyncio.start_server(lambda *_: None, cluster.host, sasl)
        with pytest.raises(OSError, match="in use"):
            await cluster.start_broker(1)
        assert not cluster.nodes[0].up
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(cluster.host, plain)
        other.close()
        await other.wait_closed()
        await cluster.start_broker(1)
        for port in (plain, sasl):
            _, writer = await asyncio.open_connection(cluster.host, port)
            writer.close()
            await writer.wait_closed()


async def test_the_command_line_starts_several() -> None:
    def story() -> list[str]:
        with running("kip848_client", "--brokers", "3", "--topic", "orders:6") as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            return line.removeprefix("listening on ").strip().split(",")

    addresses = await anyio.to_thread.run_sync(story)
    assert len({address.rpartition(":")[2] for address in addresses}) == 3

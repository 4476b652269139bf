"""Workers on the classic protocol over TCP: on our broker, with and without the drafts, and on real
Kafka."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kip848_client import Consumer
from kip848_client.connect import AssignedItem, Worker
from kip848_client.connect.core import ConnectorTasks
from kip848_client.core.connect import IncrementalCooperativeAssignor, SpreadAssignor
from kip848_client.core.member import MemberState
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
)
from kip848_client.errors import ConfigError, ProtocolUnsupported
from mock_coordinator import MockBroker
from tests.support.connect_worker import JavaConnectWorker
from tests.support.kafka_jars import connect_libs
from tests.support.pytest_kafka import skip_without_kafka
from tests.support.real_kafka import RealKafka

pytestmark = pytest.mark.asyncio

CONFIG = {"group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "0"}
FAST = {
    **CONFIG,
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
}
CONNECTORS = {"a": 3, "b": 2}
ALL = frozenset(
    [AssignedItem(name) for name in CONNECTORS]
    + [AssignedItem(name, task, 0) for name, count in CONNECTORS.items() for task in range(count)]
)


Key = tuple[str, int]


class Items:
    """Starts and stops items, each of which beats while it runs, and notices what runs twice."""

    def __init__(
        self, name: str, running: dict[Key, str], beats: Counter[tuple[Key, str]], twice: set[Key]
    ) -> None:
        self.name = name
        self.running = running
        self.beats = beats
        self.twice = twice
        self.calls: list[tuple[str, tuple[AssignedItem, ...]]] = []
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def on_assigned(self, items: tuple[AssignedItem, ...]) -> None:
        self.calls.append(("assigned", items))
        for item in items:
            key = (item.connector, item.task)
            if key in self.running:
                self.twice.add(key)
            self.running[key] = self.name
            self._tasks[key] = asyncio.create_task(self._beat(key))

    async def _beat(self, key: Key) -> None:
        while True:
            if self.running.get(key) != self.name:
                self.twice.add(key)
            self.beats[key, self.name] += 1
            await asyncio.sleep(0.02)

    async def on_revoked(self, items: tuple[AssignedItem, ...]) -> None:
        self.calls.append(("revoked", items))
        await asyncio.sleep(0)
        self.drop(items)

    def on_lost(self, items: tuple[AssignedItem, ...]) -> None:
        self.calls.append(("lost", items))
        self.drop(items)

    def drop(self, items: tuple[AssignedItem, ...]) -> None:
        for item in items:
            key = (item.connector, item.task)
            self.running.pop(key, None)
            task = self._tasks.pop(key, None)
            if task is not None:
                task.cancel()


class Group:
    """Workers on one broker."""

    def __init__(self, bootstrap: str, group_id: str, **settings: Any) -> None:
        self.bootstrap = bootstrap
        self.group_id = group_id
        self.settings = settings
        self.running: dict[Key, str] = {}
        self.beats: Counter[tuple[Key, str]] = Counter()
        """Of each item at each worker."""
        self.twice: set[Key] = set()
        self.workers: dict[str, Worker] = {}
        self.items: dict[str, Items] = {}

    async def join(
        self,
        name: str,
        *,
        connectors: Mapping[str, int] = CONNECTORS,
        version: int = 1,
        **more: Any,
    ) -> Worker:
        items = Items(name, self.running, self.beats, self.twice)
        self.items[name] = items
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "group_id": self.group_id,
            "rest_advertised_url": f"http://{name}/",
            "assignors": (IncrementalCooperativeAssignor(scheduled_rebalance_max_delay_ms=1_000),),
            "session_timeout_ms": 6_000,
            "heartbeat_interval_ms": 200,
            "rebalance_timeout_ms": 10_000,
            "task_shutdown_graceful_timeout_ms": 500,
            **self.settings,
            **more,
        }
        worker = self.workers[name] = Worker(connectors, items, version=version, **settings)
        await worker.start()
        return worker

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(40):
            while not holds():  # noqa: ASYNC110 - nothing signals what is waited for
                await asyncio.sleep(0.01)

    def shared(self, *names: str) -> bool:
        """Whether these run everything, each its part."""
        parts = [self.workers[name].assigned for name in names]
        stable = all(self.workers[name].state is MemberState.STABLE for name in names)
        return stable and all(parts) and len(self.running) == len(ALL) == sum(map(len, parts))

    async def all_beat(self) -> None:
        """Return when each item has beaten anew."""
        before = self.beats.copy()

        def have() -> bool:
            new = {key for key, name in (self.beats - before) if name in self.workers}
            return new == {(item.connector, item.task) for item in ALL}

        await self.until(have)
        assert not self.twice

    async def kill(self, name: str) -> None:
        """As if its process were killed: nothing is told to the group, and nothing runs."""
        worker = self.workers.pop(name)
        runtime = worker._runtime
        assert runtime.task is not None
        runtime.task.cancel()
        await asyncio.wait([runtime.task])
        await runtime.transport.close()
        self.items[name].drop(tuple(worker.assigned))


@asynccontextmanager
async def group(bootstrap: str, group_id: str = "workers", **more: Any) -> AsyncGenerator[Group]:
    made = Group(bootstrap, group_id, **more)
    try:
        yield made
    finally:
        await asyncio.gather(*(worker.stop() for worker in made.workers.values()))


@asynccontextmanager
async def on_a_mock(**more: Any) -> AsyncGenerator[Group]:
    async with (
        MockBroker(config=CONFIG, draft_protocols=False) as broker,
        group(broker.bootstrap, session_timeout_ms=1_500, **more) as workers,
    ):
        yield workers


def type_of_group(broker: MockBroker, group_id: str) -> str:
    snapshot = broker.snapshot(group_id)
    assert snapshot is not None
    return snapshot.type


async def test_what_the_broker_offers_decides() -> None:
    async with on_a_mock() as workers:
        worker = await workers.join("w1")
        await workers.until(lambda: worker.assigned == ALL)
        assert worker.group_protocol == "classic"
        assert worker.member_id
        assert worker.leader_url == "http://w1/"
    async with MockBroker(config=CONFIG) as broker, group(broker.bootstrap) as workers:
        first = await workers.join("w1")
        assert first.group_protocol == "connect"
    async with MockBroker(config=CONFIG) as broker, group(broker.bootstrap) as workers:
        second = await workers.join("w1", group_protocol="classic")
        await workers.until(lambda: second.assigned == ALL)
        assert second.group_protocol == "classic"


async def test_what_was_named_is_refused_where_it_is_not_offered() -> None:
    async with on_a_mock() as workers:
        with pytest.raises(ProtocolUnsupported, match="workers cannot share connectors there"):
            await workers.join("w1", group_protocol="connect")
        with pytest.raises(ConfigError, match="has no static workers"):
            await workers.join("w2", group_instance_id="one")
        with pytest.raises(ConfigError, match="not 'spread'"):
            await workers.join("w3", assignors=(SpreadAssignor(),))
        with pytest.raises(ConfigError, match="group_protocol"):
            await workers.join("w4", group_protocol="consumer")
        workers.workers.clear()


async def test_a_worker_that_asks_for_a_new_assignment_begins_a_round() -> None:
    async with on_a_mock() as workers:
        first, second = await workers.join("w1"), await workers.join("w2")
        await workers.until(lambda: workers.shared("w1", "w2"))
        before = first.generation
        assert before is not None
        second.rebalance(70)
        await workers.until(lambda: (first.generation or 0) > before)
        await workers.until(lambda: first.generation == second.generation)
        await workers.until(lambda: workers.shared("w1", "w2"))


async def test_workers_share_take_over_and_are_configured_anew() -> None:
    async with on_a_mock() as workers:
        for name in ("w1", "w2", "w3"):
            await workers.join(name)
        await workers.until(lambda: workers.shared("w1", "w2", "w3"))
        await workers.workers.pop("w2").stop()
        assert workers.items["w2"].calls[-1][0] == "revoked"
        await workers.until(lambda: workers.shared("w1", "w3"))
        for worker in workers.workers.values():
            worker.reconfigure({"a": ConnectorTasks(1, 1), "c": 2}, version=2)
        await workers.until(
            lambda: sorted(workers.running) == [("a", -1), ("a", 0), ("c", -1), ("c", 0), ("c", 1)]
        )


async def test_workers_are_rolled_to_the_new_protocol_and_back_while_others_run_on() -> None:
    async with MockBroker(config=FAST) as broker, group(broker.bootstrap) as workers:
        for name in ("w1", "w2"):
            await workers.join(name, group_protocol="classic", session_timeout_ms=1_500)
        await workers.until(lambda: workers.shared("w1", "w2"))
        assert type_of_group(broker, "workers") == "classic"
        kept = workers.workers["w2"].assigned
        await workers.workers["w1"].stop()
        await workers.join("w1", group_protocol="connect")
        await workers.until(lambda: workers.shared("w1", "w2"))
        assert workers.workers["w2"].assigned == kept
        assert [what for what, _ in workers.items["w2"].calls if what != "assigned"] == []
        assert type_of_group(broker, "workers") == "connect"
        assert workers.workers["w2"].leader_url == "http://w1/"
        await workers.workers["w1"].stop()
        await workers.until(lambda: workers.shared("w2"))
        assert "revoked" not in [what for what, _ in workers.items["w2"].calls]
        assert type_of_group(broker, "workers") == "classic"


async def test_a_worker_that_leaves_while_a_round_waits_does_not_wait_for_it() -> None:
    async with on_a_mock() as workers:
        await workers.join("w1")
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
        hold = asyncio.Event()

        async def waits(items: tuple[AssignedItem, ...]) -> None:
            await hold.wait()
            workers.items["w1"].drop(items)

        workers.items["w1"].on_revoked = waits  # type: ignore[method-assign]  # slow to stop
        second = await workers.join("w2")
        await workers.until(lambda: workers.workers["w1"].state is MemberState.RECONCILING)
        third = await workers.join("w3")  # its JoinGroup waits for the first
        async with asyncio.timeout(5):
            await third.stop()
        hold.set()
        workers.workers.pop("w3")
        await workers.until(lambda: workers.shared("w1", "w2"))
        assert second.state is MemberState.STABLE


async def one_is_killed_and_one_bounces(workers: Group, protocol: str) -> None:
    for name in ("w1", "w2", "w3"):
        worker = await workers.join(name)
        assert worker.group_protocol == protocol
    await workers.until(lambda: workers.shared("w1", "w2", "w3"))
    await workers.all_beat()
    kept = workers.workers["w1"].assigned

    await workers.kill("w3")
    while_away = workers.beats.copy()
    await workers.until(lambda: workers.shared("w1", "w2"))
    assert kept <= workers.workers["w1"].assigned
    for item in kept:  # it went on while what the dead one ran was waited for
        key = ((item.connector, item.task), "w1")
        assert workers.beats[key] > while_away[key] + 1
    await workers.all_beat()

    await workers.workers.pop("w2").stop()
    await workers.join("back", rest_advertised_url="http://w2/")
    await workers.until(lambda: workers.shared("w1", "back"))
    await workers.all_beat()
    assert kept <= workers.workers["w1"].assigned
    assert not [what for what, _ in workers.items["w1"].calls if what == "lost"]


@pytest.mark.real_kafka
async def test_on_real_kafka_one_is_killed_and_one_bounces(
    real_kafka: RealKafka, unique: Callable[[str], str]
) -> None:
    async with group(real_kafka.bootstrap, unique("workers")) as workers:
        await one_is_killed_and_one_bounces(workers, "classic")


async def test_on_our_broker_with_the_drafts_one_is_killed_and_one_bounces() -> None:
    session = {
        "group.consumer.min.session.timeout.ms": "6000",
        "group.consumer.session.timeout.ms": "6000",
    }
    async with (
        MockBroker(config={**FAST, **session}) as broker,
        group(broker.bootstrap) as workers,
    ):
        await one_is_killed_and_one_bounces(workers, "connect")


# -- beside a Java worker --------------------------------------------------------------------------

FILES = {"in-1": 1, "in-2": 1, "in-3": 1, "out": 2}
"""Connectors from files, which have one task, and one to a file."""
FILE_ITEMS = {(name, task) for name, count in FILES.items() for task in range(-1, count)}
JAVA = {
    "session_timeout_ms": "6000",
    "heartbeat_interval_ms": "500",
    "rebalance_timeout_ms": "10000",
    "scheduled_rebalance_max_delay_ms": "1000",
}


def create(java: JavaConnectWorker, folder: Path) -> None:
    """The connectors, by the Java worker's REST interface; returns when they run there."""
    package = "org.apache.kafka.connect.file"
    for name, tasks in FILES.items():
        config = {"tasks.max": str(tasks), "file": str(folder / name)}
        if name == "out":
            config |= {"connector.class": f"{package}.FileStreamSinkConnector", "topics": "lines"}
        else:
            (folder / name).write_text(f"a line of {name}\n")
            config |= {"connector.class": f"{package}.FileStreamSourceConnector", "topic": "lines"}
        java.ask("POST", "/connectors", {"name": name, "config": config})
    deadline = time.monotonic() + 60
    while java.running() != FILE_ITEMS:
        assert time.monotonic() < deadline, (java.running(), java.log_tail())
        time.sleep(0.1)


def config_offset(kafka: RealKafka, topic: str) -> int:
    """How far a worker has read the configuration that has read all of it."""
    partition = ListOffsetsRequestListOffsetsPartition(partition_index=0, timestamp=-1)
    wanted = ListOffsetsRequestListOffsetsTopic(name=topic, partitions=(partition,))
    with kafka.connect() as connection:
        answer = connection.request(ListOffsetsRequest(replica_id=-1, topics=(wanted,)), 7)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


async def spread_over(workers: Group, java: JavaConnectWorker, *names: str) -> None:
    """Return when these and the Java worker run everything, each its part and none another's."""
    parts: list[set[tuple[str, int]]] = []
    for _ in range(300):
        theirs = await asyncio.to_thread(java.running)
        ours = [{(i.connector, i.task) for i in workers.workers[name].assigned} for name in names]
        parts = [theirs, *ours]
        if all(parts) and sum(map(len, parts)) == len(FILE_ITEMS) == len(set().union(*parts)):
            tasks = [sum(task >= 0 for _, task in part) for part in parts]
            assert max(tasks) - min(tasks) <= 1, parts
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"it does not come to that: {parts}\n{java.log_tail()}")


@asynccontextmanager
async def java_worker(bootstrap: str, name: str, folder: Path) -> AsyncGenerator[JavaConnectWorker]:
    """A Java worker; what waits for its process waits in a thread, for ours have to go on."""
    with contextlib.ExitStack() as stack:
        started = JavaConnectWorker.start(bootstrap, name, folder, **JAVA)
        try:
            yield await asyncio.to_thread(stack.enter_context, started)
        finally:
            await asyncio.to_thread(stack.close)


@pytest.mark.real_kafka
@pytest.mark.two_releases
@pytest.mark.timeout(240)  # two JVMs start, one after the other
async def test_two_of_ours_and_a_java_worker_lead_and_are_led(
    real_kafka: RealKafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name, bootstrap = unique("mixed"), real_kafka.bootstrap
    with skip_without_kafka():
        connect_libs()
    async with group(bootstrap, name) as workers:
        async with java_worker(bootstrap, name, tmp_path / "java-1") as java:
            await asyncio.to_thread(create, java, tmp_path)
            offset = config_offset(real_kafka, f"{name}-config")
            for ours in ("w1", "w2"):
                await workers.join(ours, connectors=FILES, version=offset)
            await spread_over(workers, java, "w1", "w2")
            assert {each.leader_url for each in workers.workers.values()} == {f"http://{java.id}/"}
        await workers.until(lambda: len(workers.running) == len(FILE_ITEMS))
        leader = workers.workers["w1"].leader_url
        assert leader in {"http://w1/", "http://w2/"}
        async with java_worker(bootstrap, name, tmp_path / "java-2") as java:
            await spread_over(workers, java, "w1", "w2")
            assert {each.leader_url for each in workers.workers.values()} == {leader}


@pytest.mark.real_kafka
@pytest.mark.timeout(120)  # a JVM starts
async def test_a_java_worker_stays_in_a_group_that_changes_its_type(tmp_path: Path) -> None:
    with skip_without_kafka():
        connect_libs()
    async with (
        MockBroker(config=FAST) as broker,
        group(broker.bootstrap, "mixed") as workers,
        java_worker(broker.bootstrap, "mixed", tmp_path / "java") as java,
    ):
        await asyncio.to_thread(create, java, tmp_path)
        assert type_of_group(broker, "mixed") == "classic"
        async with Consumer(bootstrap_servers=broker.bootstrap) as reader:
            [offset] = (await reader.end_offsets([("mixed-config", 0)])).values()
        await workers.join("w1", connectors=FILES, version=offset, group_protocol="connect")
        await spread_over(workers, java, "w1")
        assert type_of_group(broker, "mixed") == "connect"
        await workers.workers["w1"].stop()
        async with asyncio.timeout(40):
            ask = java.running
            while await asyncio.to_thread(ask) != FILE_ITEMS:  # noqa: ASYNC110 - Java is asked
                await asyncio.sleep(0.1)
        assert type_of_group(broker, "mixed") == "classic"

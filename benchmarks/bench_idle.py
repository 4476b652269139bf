"""What a consumer costs when little happens: idle partitions, many partitions, many consumers.

*Idle partitions*: one consumer with 1,000 partitions in which nothing happens; processor time over
ten seconds, and with our coordinator the requests a second as well. *Many partitions*: one consumer
of a topic with 4,000 partitions; the longest time that its event loop did not run while it joined,
and after the topic was deleted under it, which refuses all of them at once. *Many consumers*: 100
consumers in one process; memory, threads, and processor time while nothing happens. Each figure is
of a process of its own; the brokers run in others. With ``--bundled`` ours alone is measured, on
the bundled broker.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import resource
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any, Final

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.timing import machine, say, table
from kip848_client import Consumer
from tests.support.real_kafka import RealKafka

__all__ = ["main"]

_WATCHED_S: Final = 10.0
_SETTLE_S: Final = 6.0
_LIMIT_S: Final = 90.0
_IDLE_PARTITIONS: Final = 1_000
_MANY_PARTITIONS: Final = 4_000
_CONSUMERS: Final = 100
_CPU_BAR: Final = 0.5
"""Of aiokafka's processor time for idle partitions."""
_STALL_BAR_MS: Final = 50.0

Figures = dict[str, float]


# -- what runs in a process of its own -----------------------------------------------------------


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _resident_mb() -> float:
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


@contextlib.asynccontextmanager
async def _consuming(client: str, bootstrap: str, topic: str, group: str) -> AsyncGenerator[Any]:
    """A consumer that asks for records all the time, on this loop. There are none, and so nothing
    to commit: aiokafka commits all the same, and for ever where the topic is gone."""
    common: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "enable_auto_commit": False,
    }
    consumer: Any = (
        Consumer(topic, **common) if client == "kip848" else AIOKafkaConsumer(topic, **common)
    )
    await consumer.start()
    task = asyncio.create_task(_poll(consumer))
    try:
        yield consumer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await consumer.stop()


async def _poll(consumer: Any) -> None:
    while True:
        await consumer.getmany(timeout_ms=1_000)


def _confluent(bootstrap: str, topic: str, group: str) -> Any:
    consumer = ConfluentConsumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"}
    )
    consumer.subscribe([topic])
    return consumer


async def _until_assigned(assigned: Callable[[], int], partitions: int) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while assigned() < partitions:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{assigned()} of {partitions} partitions are assigned")
        await asyncio.sleep(0.05)


class _Stalls:
    """The longest time in which the loop did not run: processor time, because on a busy machine
    the loop is held up by others, too."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            self.longest_ms = max(self.longest_ms, (now - before) * 1000)
            before = now

    def taken(self) -> float:
        """The longest since the last call."""
        longest, self.longest_ms = self.longest_ms, 0.0
        return longest


async def _idle_partitions(client: str, bootstrap: str, topic: str, partitions: int) -> Figures:
    async with _consuming(client, bootstrap, topic, topic) as consumer:
        await _until_assigned(lambda: len(consumer.assignment()), partitions)
        await asyncio.sleep(_SETTLE_S)
        before = _cpu_s()
        await asyncio.sleep(_WATCHED_S)
        return {"cpu_percent": (_cpu_s() - before) / _WATCHED_S * 100}


async def _many_partitions(client: str, bootstrap: str, topic: str, partitions: int) -> Figures:
    stalls = _Stalls()
    await asyncio.sleep(0.1)
    stalls.taken()
    async with _consuming(client, bootstrap, topic, topic) as consumer:
        await _until_assigned(lambda: len(consumer.assignment()), partitions)
        await asyncio.sleep(_SETTLE_S)
        start_ms = stalls.taken()
        admin = AdminClient({"bootstrap.servers": bootstrap})
        await asyncio.to_thread(admin.delete_topics([topic])[topic].result)
        await asyncio.sleep(_SETTLE_S)
        return {"start_ms": start_ms, "refused_ms": stalls.taken()}


async def _many_consumers(client: str, bootstrap: str, topic: str, partitions: int) -> Figures:
    before_mb = _resident_mb()
    async with contextlib.AsyncExitStack() as stack:
        assigned = await (_librdkafka if client == "confluent-kafka" else _ours)(
            stack, client, bootstrap, topic
        )
        await _until_assigned(assigned, partitions)
        await asyncio.sleep(_SETTLE_S)
        figures = {
            "memory_mb": _resident_mb() - before_mb,
            "threads": float(_threads() - 1),
        }
        before = _cpu_s()
        await asyncio.sleep(_WATCHED_S)
        return {**figures, "cpu_percent": (_cpu_s() - before) / _WATCHED_S * 100}


async def _ours(
    stack: contextlib.AsyncExitStack, client: str, bootstrap: str, topic: str
) -> Callable[[], int]:
    consumers = [
        await stack.enter_async_context(_consuming(client, bootstrap, topic, topic))
        for _ in range(_CONSUMERS)
    ]
    return lambda: sum(len(each.assignment()) for each in consumers)


async def _librdkafka(
    stack: contextlib.AsyncExitStack, client: str, bootstrap: str, topic: str
) -> Callable[[], int]:
    """They are polled in turns by one thread, as a program would that has many."""
    del client
    consumers = [_confluent(bootstrap, topic, topic) for _ in range(_CONSUMERS)]
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(0.01):
            for each in consumers:
                each.poll(0)

    thread = threading.Thread(target=poll)
    thread.start()

    def end() -> None:
        ended.set()
        thread.join()
        for each in consumers:
            each.close()

    stack.callback(end)
    return lambda: sum(len(each.assignment()) for each in consumers)


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


_STORIES: Final = {
    "idle": _idle_partitions,
    "many": _many_partitions,
    "consumers": _many_consumers,
}


def _tell(arguments: list[str]) -> int:
    story, client, bootstrap, topic, partitions = arguments
    figures = asyncio.run(_STORIES[story](client, bootstrap, topic, int(partitions)))
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0


# -- what starts them ----------------------------------------------------------------------------


@contextlib.contextmanager
def _topic(bootstrap: str, partitions: int) -> Generator[str]:
    name = f"bench-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    time.sleep(1)  # for all partitions to have their leader
    try:
        yield name
    finally:
        with contextlib.suppress(Exception):  # a story may have deleted it
            admin.delete_topics([name])[name].result()


def _measure(story: str, client: str, bootstrap: str, partitions: int, runs: int) -> Figures:
    seen: list[Figures] = []
    for _ in range(runs):
        with _topic(bootstrap, partitions) as topic:
            command = [sys.executable, "-m", "benchmarks.bench_idle", "--story"]
            done = subprocess.run(
                [*command, story, client, bootstrap, topic, str(partitions)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        seen.append(json.loads(done.stdout))
    return {name: statistics.median(each[name] for each in seen) for name in seen[0]}


def _report(bootstrap: str, runs: int, stories: list[str], *, alone: bool) -> bool:
    """Print what was measured; returns whether the bar of stalls was met."""
    met = True
    others = {"idle": "aiokafka", "many": "aiokafka", "consumers": "confluent-kafka"}
    sizes = {"idle": _IDLE_PARTITIONS, "many": _MANY_PARTITIONS, "consumers": 10 * _CONSUMERS}
    for story in stories:
        clients = ("kip848",) if alone else ("kip848", others[story])
        figures = {
            client: _measure(story, client, bootstrap, sizes[story], runs) for client in clients
        }
        ours = figures["kip848"]
        rows = [[name, *(f"{each[name]:.1f}" for each in figures.values())] for name in ours]
        if not alone:
            rows = [[*row, _ratio(ours, figures[others[story]], row[0])] for row in rows]
        say(f"\n{story}: {sizes[story]:,} partitions")
        say(table(["", *figures, *(() if alone else ("ratio",))], rows))
        if story == "many":
            longest_ms = max(ours.values())
            met = longest_ms < _STALL_BAR_MS
            verdict = "met" if met else "MISSED"
            say(f"longest stall {longest_ms:.1f} ms (bar {_STALL_BAR_MS:.0f}): {verdict}")
    return met


def _ratio(ours: Figures, other: Figures, name: str) -> str:
    return f"{ours[name] / other[name]:.2f}" if other[name] else "-"


def main(arguments: list[str]) -> int:
    """Run it; 1 when the loop stood still for too long. The other bars are in the text, for a
    reader to compare: a busy machine moves them."""
    if arguments[:1] == ["--story"]:
        return _tell(arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks idle", description=__doc__)
    parser.add_argument("--kafka", default="4.4.0", help="a release of Kafka")
    parser.add_argument("--bundled", action="store_true", help="ours, on the bundled broker")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--stories", nargs="*", default=list(_STORIES), choices=list(_STORIES))
    chosen = parser.parse_args(arguments)
    say(machine())
    say(
        f"bars: idle cpu <= {_CPU_BAR} x aiokafka's; longest stall of the loop < "
        f"{_STALL_BAR_MS:.0f} ms"
    )
    broker = _bundled() if chosen.bundled else _real(chosen.kafka)
    with broker as bootstrap:
        met = _report(bootstrap, chosen.runs, chosen.stories, alone=chosen.bundled)
    return 0 if met else 1


@contextlib.contextmanager
def _real(release: str) -> Generator[str]:
    with RealKafka.start(release) as kafka:
        yield kafka.bootstrap


@contextlib.contextmanager
def _bundled() -> Generator[str]:
    command = [str(Path(sys.executable).with_name("kip848")), "mock"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            said = ""
            while (where := re.search(r"127\.0\.0\.1:\d+", said)) is None:
                said = broker.stdout.readline()
                assert said, "the broker has ended"
            yield where[0]
        finally:
            broker.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

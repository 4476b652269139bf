"""Records out of a topic: our four ways beside aiokafka's and confluent-kafka's, on a real broker.

Each measurement is a process of its own that is assigned all partitions and reads the topic from
its begin to its end; the clock runs from the first record (or list, or batch) to the last. The ways
take turns, so that what disturbs the machine disturbs all. Nothing is done with the records but to
count them.

``tuned`` is confluent-kafka with ``fetch.queue.backoff.ms=5`` and
``queued.min.messages=1000000``: by default librdkafka waits a second when its queue is full.
``listed`` is our package without its C extension.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from benchmarks.timing import cpu_s, machine, say, table
from benchmarks.topics import Data, Topic, fill

__all__ = ["main", "measured"]

_LIMIT_S: Final = 300.0
_BATCH: Final = 10_000
_RECORDS_MIN: Final = 200_000
_AIOKAFKA: Final[dict[str, Any]] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
_TUNED: Final = {"fetch.queue.backoff.ms": 5, "queued.min.messages": 1_000_000}
_NO_EXTENSION: Final = {"KIP848_NO_EXTENSIONS": "1"}


class Count:
    """Counts records; the clock starts with the first ones."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._first = 0
        self._read = 0
        self._started_s = 0.0
        self._cpu_s = 0.0

    def add(self, records: int) -> bool:
        """Whether there are more to come."""
        if not self._read:
            self._first, self._started_s, self._cpu_s = records, time.perf_counter(), cpu_s()
        self._read += records
        return self._read < self.total

    def result(self) -> dict[str, float]:
        """Records a second, and microseconds of processor time for each."""
        records = self._read - self._first
        if not records:
            raise SystemExit("the first list had all records; measure with more")
        elapsed_s = time.perf_counter() - self._started_s
        return {"rate": records / elapsed_s, "cpu_us": (cpu_s() - self._cpu_s) / records * 1e6}


# -- the ways ------------------------------------------------------------------------------------


async def _iterate(consumer: Any, count: Count) -> None:
    """``async for``, counting as cheaply as it goes."""
    left = count.total - 1
    async for _ in consumer:
        count.add(1)
        break
    async for _ in consumer:
        left -= 1
        if not left:
            break
    count.add(count.total - 1)


async def _get_many(consumer: Any, count: Count) -> None:
    while True:
        taken = await consumer.getmany(timeout_ms=1000)
        if taken and not count.add(sum(map(len, taken.values()))):
            return


async def _get_batches(consumer: Any, count: Count) -> None:
    while True:
        taken = await consumer.getbatches(timeout_ms=1000)
        if taken and not count.add(sum(map(len, taken.values()))):
            return


async def _to_arrow(consumer: Any, count: Count) -> None:
    importlib.import_module("pyarrow")
    while True:
        taken = await consumer.getbatches(timeout_ms=1000)
        batches = [view.to_arrow() for view in taken.values()]
        if batches and not count.add(sum(batch.num_rows for batch in batches)):
            return


async def _ours(read: Any, topic: Topic, count: Count) -> None:
    from kip848_client import Consumer

    settings: Any = {**_AIOKAFKA, "bootstrap_servers": topic.bootstrap}
    async with Consumer(**settings) as consumer:
        consumer.assign([(topic.name, number) for number in range(topic.partitions)])
        await read(consumer, count)


async def _aiokafka(read: Any, topic: Topic, count: Count) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=topic.bootstrap, **_AIOKAFKA)
    await consumer.start()
    consumer.assign([TopicPartition(topic.name, number) for number in range(topic.partitions)])
    await read(consumer, count)
    await consumer.stop()


def _confluent(topic: Topic, count: Count, settings: dict[str, Any], *, poll: bool = False) -> None:
    from confluent_kafka import Consumer, TopicPartition

    fixed = {"bootstrap.servers": topic.bootstrap, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer({**fixed, **settings})
    consumer.assign([TopicPartition(topic.name, number, 0) for number in range(topic.partitions)])
    while True:
        if poll:
            message = consumer.poll(1.0)
            got = 0 if message is None else 1
        else:
            got = len(consumer.consume(_BATCH, 1.0))
        if got and not count.add(got):
            break
    consumer.close()


class Way(NamedTuple):
    """One way to read a topic."""

    title: str
    run: Callable[[Topic, Count], None]
    environment: dict[str, str] = {}  # noqa: RUF012 - never changed


def _ours_by(read: Any) -> Callable[[Topic, Count], None]:
    return lambda topic, count: asyncio.run(_ours(read, topic, count))


def _aiokafka_by(read: Any) -> Callable[[Topic, Count], None]:
    return lambda topic, count: asyncio.run(_aiokafka(read, topic, count))


WAYS: Final = {
    "for": Way("async for", _ours_by(_iterate)),
    "getmany": Way("getmany", _ours_by(_get_many)),
    "batches": Way("getbatches", _ours_by(_get_batches)),
    "arrow": Way("getbatches, to_arrow", _ours_by(_to_arrow)),
    "for-listed": Way("async for, listed", _ours_by(_iterate), _NO_EXTENSION),
    "getmany-listed": Way("getmany, listed", _ours_by(_get_many), _NO_EXTENSION),
    "arrow-listed": Way("getbatches, to_arrow, listed", _ours_by(_to_arrow), _NO_EXTENSION),
    "aiokafka-for": Way("aiokafka async for", _aiokafka_by(_iterate)),
    "aiokafka-getmany": Way("aiokafka getmany", _aiokafka_by(_get_many)),
    "confluent": Way("confluent consume(10000)", lambda t, c: _confluent(t, c, {})),
    "confluent-poll": Way(
        "confluent poll, tuned", lambda t, c: _confluent(t, c, dict(_TUNED), poll=True)
    ),
    "confluent-tuned": Way("confluent consume, tuned", lambda t, c: _confluent(t, c, dict(_TUNED))),
}

BARS: Final = (
    ("for", "aiokafka-for", 2.0),
    ("getmany", "confluent-tuned", 1.0),
    ("arrow-listed", "confluent-tuned", 2.5),
    ("arrow", "confluent-tuned", 4.0),
)
"""Of the first data: a way, another one, and how much faster it shall be."""


# -- measuring -------------------------------------------------------------------------------------


def measured(name: str, topic: Topic) -> dict[str, float]:
    """What one way comes to, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks", "consume", "--child", name, json.dumps(topic)]
    found = subprocess.run(
        command,
        env={**os.environ, **WAYS[name].environment},
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    if found.returncode:
        raise RuntimeError(f"{name} failed:\n{found.stderr[-3000:]}")
    result: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return result


def _in_turns(names: Sequence[str], topic: Topic, runs: int) -> dict[str, tuple[float, float]]:
    """For each way the medians of its rate and its processor time."""
    measured(names[0], topic)  # the broker's caches are warm afterwards
    results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(runs):
        for name in names:
            results[name].append(measured(name, topic))
    return {
        name: (
            statistics.median(each["rate"] for each in found),
            statistics.median(each["cpu_us"] for each in found),
        )
        for name, found in results.items()
    }


# -- telling -------------------------------------------------------------------------------------


def _ratio(medians: dict[str, tuple[float, float]], name: str, other: str) -> str:
    return f"{medians[name][0] / medians[other][0]:.2f}x" if other in medians else ""


def _tell(data: Data, topic: Topic, medians: dict[str, tuple[float, float]]) -> None:
    rows = [
        [
            WAYS[name].title,
            f"{rate / 1e6:.3f}",
            f"{cpu_us:.2f}",
            _ratio(medians, name, "aiokafka-for"),
            _ratio(medians, name, "aiokafka-getmany"),
            _ratio(medians, name, "confluent-tuned"),
        ]
        for name, (rate, cpu_us) in medians.items()
    ]
    say(f"\n{data}, {topic.records:,} records")
    headings = ["way", "M records/s", "CPU us a record", "aiokafka for", "getmany", "confluent"]
    say(table(headings, rows))


def _bars(medians: dict[str, tuple[float, float]]) -> bool:
    met = True
    for name, other, bar in BARS:
        if name in medians and other in medians:
            ratio = medians[name][0] / medians[other][0]
            met = met and ratio >= bar
            said = "met" if ratio >= bar else "MISSED"
            titles = f"{WAYS[name].title} {ratio:.2f} x {WAYS[other].title}"
            say(f"bar: {titles} (at least {bar}): {said}")
    return met


def _chosen(options: argparse.Namespace) -> list[Data]:
    return [
        Data(size, compression, partitions)
        for partitions in options.partitions
        for compression in options.compression
        for size in options.sizes
    ]


def _child(name: str, told: str) -> int:
    topic = Topic(*json.loads(told))
    count = Count(topic.records)
    WAYS[name].run(topic, count)
    say(json.dumps(count.result()))
    return 0


def main(argv: list[str] | None = None) -> int:
    """Print a table for each kind of data; exit code 1 when a bar is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks consume",
        description="A quick run: --sizes 100 --compression none --partitions 4 --records 300000",
    )
    parser.add_argument("--kafka", default="4.4.0", help="the release to measure on")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--records", type=int, default=1_000_000, help="of 100 bytes; in bytes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--compression", nargs="+", default=["none", "zstd"])
    parser.add_argument("--partitions", type=int, nargs="+", default=[4, 400])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        return _child(*options.child)
    from tests.support.real_kafka import RealKafka

    say(f"medians of {options.runs} runs on Kafka {options.kafka} ({machine()})")
    met = True
    with RealKafka.start(options.kafka) as kafka:
        for number, data in enumerate(_chosen(options)):
            kafka.create_topic(data.topic, data.partitions)
            records = max(_RECORDS_MIN, options.records * 100 // data.value_bytes)
            topic = fill(kafka.bootstrap, data, records)
            medians = _in_turns(options.ways, topic, options.runs)
            _tell(data, topic, medians)
            met = _bars(medians) and met if number == 0 else met
    return 0 if met else 1

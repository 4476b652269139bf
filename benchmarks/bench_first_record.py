"""From nothing to the first record, and from one member to the next, beside confluent-kafka.

``first record``: a fresh consumer of a fresh group, created, started, until a record that was
there before is in the application's hands. ``hand-over``: two members share two partitions, one
closes, and a record produced then to its partition reaches the other. Both clients run in this
process, in turns, against the same broker: our coordinator, also in this process, and a real
broker when ``--kafka`` names a release.

The heartbeat interval, which decides most of a hand-over, is 500 ms on both brokers here; Kafka's
default is 5 s. Assignment batching (KIP-1263) is off on both, so that what is measured is the
clients.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final

from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer

from benchmarks.timing import machine, say, table
from kip848_client import Consumer
from mock_coordinator import MockBroker

__all__ = ["main"]

_CONFIG: Final = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
}
_LIMIT_S: Final = 30.0
_FIRST_RECORD_BAR_MS: Final = 50.0
_READY_BAR_MS: Final = 10.0

Measure = Callable[[str, str], Awaitable[float]]
"""Given the bootstrap and a topic, milliseconds."""


def _group() -> str:
    return f"bench-{uuid.uuid4().hex[:12]}"


async def _ours_first(bootstrap: str, topic: str) -> float:
    started = time.perf_counter()
    consumer = Consumer(
        topic, bootstrap_servers=bootstrap, group_id=_group(), auto_offset_reset="earliest"
    )
    await consumer.start()
    await asyncio.wait_for(consumer.getone(), _LIMIT_S)
    elapsed = time.perf_counter() - started
    await consumer.stop()
    return elapsed * 1000


def _confluent(bootstrap: str, topic: str, group: str) -> Any:
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    return consumer


def _poll(consumer: Any) -> None:
    deadline = time.perf_counter() + _LIMIT_S
    while time.perf_counter() < deadline:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            return
    raise TimeoutError("confluent-kafka saw no record")


async def _confluent_first(bootstrap: str, topic: str) -> float:
    def measure() -> float:
        started = time.perf_counter()
        consumer = _confluent(bootstrap, topic, _group())
        _poll(consumer)
        elapsed = time.perf_counter() - started
        consumer.close()
        return elapsed * 1000

    return await asyncio.to_thread(measure)


async def _produce(bootstrap: str, topic: str, partition: int) -> None:
    def send() -> None:
        producer = ConfluentProducer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        producer.produce(topic, b"x", partition=partition)
        producer.flush(_LIMIT_S)

    await asyncio.to_thread(send)


async def _ours_hand_over(bootstrap: str, topic: str) -> float:
    group = _group()

    def member() -> Consumer[Any, Any]:
        return Consumer(topic, bootstrap_servers=bootstrap, group_id=group)

    leaver, stayer = member(), member()
    await leaver.start()
    await stayer.start()
    polls = [asyncio.ensure_future(each.getmany(timeout_ms=60_000)) for each in (leaver, stayer)]
    deadline = time.perf_counter() + _LIMIT_S
    while not (len(leaver.assignment()) == len(stayer.assignment()) == 1):
        if time.perf_counter() > deadline:
            raise TimeoutError("two members did not share two partitions")
        await asyncio.sleep(0.02)
    moving = next(iter(leaver.assignment())).partition
    # what it leaves to the other one is its position; without one "latest" would skip the record
    await leaver.position((topic, moving))
    polls[0].cancel()
    started = time.perf_counter()
    closing = asyncio.ensure_future(leaver.stop())
    await _produce(bootstrap, topic, moving)
    await asyncio.wait_for(polls[1], _LIMIT_S)
    elapsed = time.perf_counter() - started
    await closing
    await stayer.stop()
    return elapsed * 1000


async def _confluent_hand_over(bootstrap: str, topic: str) -> float:
    def measure() -> float:
        group = _group()
        leaver, stayer = (_confluent(bootstrap, topic, group) for _ in range(2))
        deadline = time.perf_counter() + _LIMIT_S
        while not (len(leaver.assignment()) == len(stayer.assignment()) == 1):
            if time.perf_counter() > deadline:
                raise TimeoutError("two members did not share two partitions")
            leaver.poll(0.02)
            stayer.poll(0.02)
        moving = leaver.assignment()[0].partition
        started = time.perf_counter()
        leaver.close()
        asyncio.run(_produce(bootstrap, topic, moving))
        _poll(stayer)
        elapsed = time.perf_counter() - started
        stayer.close()
        return elapsed * 1000

    return await asyncio.to_thread(measure)


async def _in_turns(
    bootstrap: str, runs: int, topics: list[str], pair: tuple[Measure, Measure]
) -> list[float]:
    """Medians of ours and theirs, measured alternately after one run each to warm up."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(runs + 1):
        for own, measure in zip(times, pair, strict=True):
            elapsed = await measure(bootstrap, topics[turn % len(topics)])
            if turn:
                own.append(elapsed)
    return [statistics.median(each) for each in times]


async def _rows(where: str, bootstrap: str, topics: dict[str, str], runs: int) -> list[list[str]]:
    rows = []
    for what, count, pair in (
        ("first record", runs, (_ours_first, _confluent_first)),
        ("hand-over", max(3, runs // 4), (_ours_hand_over, _confluent_hand_over)),
    ):
        ours, theirs = await _in_turns(bootstrap, count, [topics[what]], pair)
        rows.append([f"{what}, {where}", f"{ours:.1f}", f"{theirs:.1f}", f"{theirs / ours:.1f}x"])
    return rows


async def _on_mock(runs: int) -> tuple[list[list[str]], float]:
    ready = []
    for _ in range(20):
        started = time.perf_counter()
        async with MockBroker():
            ready.append((time.perf_counter() - started) * 1000)
    async with MockBroker({"first": 1, "pair": 2}, config=_CONFIG) as broker:
        await _produce(broker.bootstrap, "first", 0)
        topics = {"first record": "first", "hand-over": "pair"}
        rows = await _rows("our coordinator", broker.bootstrap, topics, runs)
    return rows, statistics.median(ready)


def _on_kafka(version: str, runs: int) -> list[list[str]]:
    from tests.support.real_kafka import RealKafka

    with RealKafka.start(version, configs=_CONFIG) as kafka:
        kafka.create_topic("first", 1)
        kafka.create_topic("pair", 2)

        async def measure() -> list[list[str]]:
            await _produce(kafka.bootstrap, "first", 0)
            topics = {"first record": "first", "hand-over": "pair"}
            return await _rows(f"Kafka {version}", kafka.bootstrap, topics, runs)

        return asyncio.run(measure())


def main(argv: list[str] | None = None) -> int:
    """Print the table; exit code 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks first_record")
    parser.add_argument("--kafka", default="4.4.0", help="release to measure on, or 'none'")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args(argv)
    rows, ready_ms = asyncio.run(_on_mock(options.runs))
    in_process_ms = float(rows[0][1])
    not_slower = True
    if options.kafka != "none":
        real = _on_kafka(options.kafka, options.runs)
        not_slower = float(real[0][1]) <= float(real[0][2])
        rows += real
    say(f"medians in milliseconds ({machine()}, {options.runs} runs)")
    say(table(["what", "kip848", "confluent-kafka", "ratio"], rows))
    bars = {
        f"mock ready in < {_READY_BAR_MS:.0f} ms: {ready_ms:.1f} ms": ready_ms < _READY_BAR_MS,
        f"first record in process < {_FIRST_RECORD_BAR_MS:.0f} ms: {in_process_ms:.1f} ms": (
            in_process_ms < _FIRST_RECORD_BAR_MS
        ),
        "first record on real Kafka not slower than confluent-kafka": not_slower,
    }
    for bar, met in bars.items():
        say(f"bar: {bar}: {'met' if met else 'MISSED'}")
    return 0 if all(bars.values()) else 1

"""Records into a topic, and the exactly-once loop: ours beside aiokafka and confluent-kafka.

Each measurement is a process of its own that writes to a topic of its own, one record after the
other as fast as it may, and ends when the broker has acknowledged all of them. ``send`` is the
producer with its defaults, ``idempotent`` with idempotence (which our defaults have), and
``transactional`` commits a transaction after each 1,000 records. The ``loop`` reads a topic and
writes each record to another one, with the offsets in the same transactions of up to 1,000 records:
ours by ``ExactlyOnceProcessor``; the ``hand loop`` is what others have to write by hand.

The clock runs from the second transaction (or record) on. The ways take turns, so that what
disturbs the machine disturbs all. Clients other than ours have their defaults, too; but
confluent-kafka's consumer in the loop does not wait a second when its queue is full.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.timing import cpu_s, machine, say, table
from benchmarks.topics import Data, Topic, fill, values

__all__ = ["main"]

_LIMIT_S: Final = 300.0
_TRANSACTION: Final = 1_000
_RECORDS_MIN: Final = 50_000
_DISTINCT_KEYS: Final = 20_000
_TUNED: Final = {"fetch.queue.backoff.ms": 5, "queued.min.messages": 1_000_000}
_CONFIGS: Final = {"log.segment.delete.delay.ms": "1000"}
"""Of the broker: what was measured makes room for what comes."""

_Record = tuple[bytes | None, bytes | None]
"""Key and value."""


class Task(NamedTuple):
    """What a measuring process has to do."""

    bootstrap: str
    source: str
    """What the loop reads; it has at least as many records."""
    topic: str
    records: int
    value_bytes: int
    compression: str
    keyed: bool

    def all(self) -> Iterator[_Record]:
        """The records."""
        texts: Iterable[bytes] = itertools.cycle(values(self.value_bytes))
        keys: Iterable[bytes | None] = itertools.repeat(None)
        if self.keyed:
            keys = itertools.cycle([b"key-%05d" % number for number in range(_DISTINCT_KEYS)])
        return itertools.islice(zip(keys, texts, strict=False), self.records)

    def name(self) -> str:
        """For a group or a transactional id that nobody else has."""
        return f"{self.topic}-{os.getpid()}"


class Timer:
    """The clock starts when it warmed up, and stops at the end of the process."""

    def __init__(self) -> None:
        self._started_s = self._cpu_s = 0.0
        self.transactions = 0

    def start(self) -> None:
        """Now."""
        self._started_s, self._cpu_s = time.perf_counter(), cpu_s()

    def result(self, records: int) -> dict[str, float]:
        """Records a second, microseconds of processor time for each, megabytes at most."""
        elapsed_s, used_s = time.perf_counter() - self._started_s, cpu_s() - self._cpu_s
        return {
            "rate": records / elapsed_s,
            "cpu_us": used_s / records * 1e6,
            "mb": _peak_mb(),
            "size": records / self.transactions if self.transactions else 0,
        }


def _peak_mb() -> float:
    """The most memory that this process had; ``ru_maxrss`` tells that of who started it, too."""
    said = Path("/proc/self/status").read_text()
    return int(said.partition("VmHWM:")[2].split()[0]) / 1024


# -- ours ----------------------------------------------------------------------------------------


def _producer(task: Task, **settings: Any) -> Any:
    from kip848_client import Producer

    told: Any = {"bootstrap_servers": task.bootstrap, "compression_type": task.compression}
    return Producer(**told, **settings)


async def _send(task: Task, timer: Timer, **settings: Any) -> dict[str, float]:
    async with _producer(task, **settings) as producer:
        send, topic = producer.send, task.topic
        await producer.send_and_wait(topic, b"first")
        timer.start()
        for key, value in task.all():
            await send(topic, value, key)
        await producer.flush()
        return timer.result(task.records)


async def _transactional(task: Task, timer: Timer) -> dict[str, float]:
    records, topic = task.all(), task.topic
    async with _producer(task, transactional_id=task.name()) as producer:
        async with producer.transaction() as txn:
            await txn.send(topic, b"first")
        timer.start()
        while part := list(itertools.islice(records, _TRANSACTION)):
            timer.transactions += 1
            async with producer.transaction() as txn:
                for key, value in part:
                    await txn.send(topic, value, key)
        return timer.result(task.records)


def _consumer(task: Task) -> Any:
    from kip848_client import Consumer

    return Consumer(
        bootstrap_servers=task.bootstrap,
        group_id=task.name(),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )


async def _loop(task: Task, timer: Timer) -> dict[str, float]:
    """By the processor. The clock stops when it has as many records in hand as when it started."""
    from kip848_client import ExactlyOnceProcessor, ProducerRecord

    count = itertools.count(1)
    found: asyncio.Future[dict[str, float]] = asyncio.get_running_loop().create_future()

    def same(record: Any) -> ProducerRecord:
        number = next(count)
        if number == _TRANSACTION + 1:
            timer.start()
        elif number == _TRANSACTION + 1 + task.records:
            found.set_result(timer.result(task.records))
        return ProducerRecord(task.topic, record.value, record.key)

    processor = ExactlyOnceProcessor(
        task.source,
        same,
        consumer=_consumer(task),
        producer=_producer(task, transactional_id=task.name()),
        max_records=_TRANSACTION,
    )
    async with processor:
        running = asyncio.create_task(processor.run())
        ends: list[asyncio.Future[Any]] = [running, found]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        result = found.result()
        await processor.stop()
        await running
        return result


async def _loop_by_hand(task: Task, timer: Timer) -> dict[str, float]:
    consumer = _consumer(task)
    consumer.subscribe([task.source])
    async with consumer, _producer(task, transactional_id=task.name()) as producer:
        left = 0
        while not timer.transactions or left > 0:
            taken = await consumer.getmany(timeout_ms=1000, max_records=_TRANSACTION)
            if not taken:
                continue
            async with producer.transaction() as txn:
                for record in itertools.chain.from_iterable(taken.values()):
                    await txn.send(task.topic, record.value, record.key)
                await txn.send_offsets(consumer)
            count = sum(map(len, taken.values()))
            left = _counted(timer, task, left, count)
        return timer.result(task.records - left)


def _counted(timer: Timer, task: Task, left: int, count: int) -> int:
    """How many are left after a transaction of the loop. The first one is not counted."""
    timer.transactions += 1
    if timer.transactions > 1:
        return left - count
    timer.start()
    return task.records


# -- aiokafka ------------------------------------------------------------------------------------


def _aiokafka_producer(task: Task, **settings: Any) -> Any:
    from aiokafka import AIOKafkaProducer

    compression = None if task.compression == "none" else task.compression
    return AIOKafkaProducer(
        bootstrap_servers=task.bootstrap, compression_type=compression, **settings
    )


async def _aiokafka_send(task: Task, timer: Timer, **settings: Any) -> dict[str, float]:
    async with _aiokafka_producer(task, **settings) as producer:
        send, topic = producer.send, task.topic
        await producer.send_and_wait(topic, b"first")
        timer.start()
        for key, value in task.all():
            await send(topic, value, key)
        await producer.flush()
        return timer.result(task.records)


async def _aiokafka_transactional(task: Task, timer: Timer) -> dict[str, float]:
    records, topic = task.all(), task.topic
    async with _aiokafka_producer(task, transactional_id=task.name()) as producer:
        async with producer.transaction():
            await producer.send(topic, b"first")
        timer.start()
        while part := list(itertools.islice(records, _TRANSACTION)):
            timer.transactions += 1
            async with producer.transaction():
                for key, value in part:
                    await producer.send(topic, value, key)
        return timer.result(task.records)


async def _aiokafka_loop(task: Task, timer: Timer) -> dict[str, float]:
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(
        task.source,
        bootstrap_servers=task.bootstrap,
        group_id=task.name(),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = _aiokafka_producer(task, transactional_id=task.name())
    async with consumer, producer:
        left = 0
        while not timer.transactions or left > 0:
            taken = await consumer.getmany(timeout_ms=1000, max_records=_TRANSACTION)
            if not taken:
                continue
            async with producer.transaction():
                for record in itertools.chain.from_iterable(taken.values()):
                    await producer.send(task.topic, record.value, record.key)
                offsets = {tp: records[-1].offset + 1 for tp, records in taken.items()}
                await producer.send_offsets_to_transaction(offsets, task.name())
            count = sum(map(len, taken.values()))
            left = _counted(timer, task, left, count)
        return timer.result(task.records - left)


# -- confluent-kafka -----------------------------------------------------------------------------


def _confluent_producer(task: Task, **settings: Any) -> Any:
    from confluent_kafka import Producer

    told = {"bootstrap.servers": task.bootstrap, "compression.type": task.compression}
    return Producer({**told, **{key.replace("_", "."): each for key, each in settings.items()}})


def _put(producer: Any, topic: str, records: Iterable[_Record]) -> None:
    for key, value in records:
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:  # its queue is full
                producer.poll(0.01)


def _flush(producer: Any) -> None:
    left = producer.flush(_LIMIT_S)
    if left:
        raise TimeoutError(f"{left} records were not stored")


def _confluent_send(task: Task, timer: Timer, **settings: Any) -> dict[str, float]:
    producer = _confluent_producer(task, **settings)
    _put(producer, task.topic, [(None, b"first")])
    _flush(producer)
    timer.start()
    _put(producer, task.topic, task.all())
    _flush(producer)
    return timer.result(task.records)


def _confluent_transactional(task: Task, timer: Timer) -> dict[str, float]:
    records = task.all()
    producer = _confluent_producer(task, transactional_id=task.name())
    producer.init_transactions()
    producer.begin_transaction()
    _put(producer, task.topic, [(None, b"first")])
    producer.commit_transaction()
    timer.start()
    while part := list(itertools.islice(records, _TRANSACTION)):
        timer.transactions += 1
        producer.begin_transaction()
        _put(producer, task.topic, part)
        producer.commit_transaction()
    return timer.result(task.records)


def _confluent_loop(task: Task, timer: Timer) -> dict[str, float]:
    from confluent_kafka import Consumer

    settings = {
        "bootstrap.servers": task.bootstrap,
        "group.id": task.name(),
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    consumer = Consumer({**settings, **_TUNED})
    producer = _confluent_producer(task, transactional_id=task.name())
    producer.init_transactions()
    consumer.subscribe([task.source])
    left = 0
    while not timer.transactions or left > 0:
        taken = consumer.consume(_TRANSACTION, 1.0)
        if not taken:
            continue
        producer.begin_transaction()
        _put(producer, task.topic, ((each.key(), each.value()) for each in taken))
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        producer.commit_transaction()
        left = _counted(timer, task, left, len(taken))
    result = timer.result(task.records - left)
    consumer.close()
    return result


# -- the ways ------------------------------------------------------------------------------------

Run = Callable[[Task, Timer], dict[str, float]]


def _by(function: Any, **settings: Any) -> Run:
    return lambda task, timer: asyncio.run(function(task, timer, **settings))


WAYS: Final[dict[str, Run]] = {
    "send": _by(_send),
    "idempotent": _by(_send, enable_idempotence=True),
    "transactional": _by(_transactional),
    "loop": _by(_loop),
    "hand-loop": _by(_loop_by_hand),
    "aiokafka-send": _by(_aiokafka_send),
    "aiokafka-idempotent": _by(_aiokafka_send, enable_idempotence=True),
    "aiokafka-transactional": _by(_aiokafka_transactional),
    "aiokafka-loop": _by(_aiokafka_loop),
    "confluent-send": _confluent_send,
    "confluent-idempotent": lambda task, timer: _confluent_send(
        task, timer, enable_idempotence=True
    ),
    "confluent-transactional": _confluent_transactional,
    "confluent-loop": _confluent_loop,
}
"""What is measured: ours by its kind alone, others with the client before it."""

BARS: Final = (
    ("send", "aiokafka-send", 1.5),
    ("idempotent", "aiokafka-idempotent", 1.5),
    ("transactional", "aiokafka-transactional", 1.5),
    ("loop", "confluent-loop", 1.0),
)
"""Of the first data: a way, another one, and how much faster it shall be."""


# -- measuring -----------------------------------------------------------------------------------


def _measured(kafka: Any, name: str, task: Task, data: Data) -> dict[str, float]:
    kafka.create_topic(task.topic, data.partitions)
    command = [sys.executable, "-m", "benchmarks", "produce", "--child", name, json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-3000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    stored = _stored(task, data.partitions)
    if stored < task.records:
        raise RuntimeError(f"{name}: the topic has {stored} records of {task.records}")
    kafka.delete_topic(task.topic)
    return result


def _stored(task: Task, partitions: int) -> int:
    """How many records the topic has, with those that end transactions."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": task.bootstrap, "group.id": "bench"})
    ends = (
        consumer.get_watermark_offsets(TopicPartition(task.topic, number), timeout=30)
        for number in range(partitions)
    )
    count: int = sum(high for _, high in ends)
    consumer.close()
    return count


_Medians = dict[str, dict[str, float]]


def _in_turns(
    kafka: Any, options: argparse.Namespace, data: Data, source: Topic, records: int
) -> _Medians:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in options.ways}
    for run in range(options.runs + 1):  # the first one warms the broker
        for name in options.ways if run else options.ways[:1]:
            task = Task(
                kafka.bootstrap,
                source.name,
                f"{name}-{data.topic}-{run}",
                records,
                data.value_bytes,
                data.compression,
                options.keyed,
            )
            result = _measured(kafka, name, task, data)
            if run:
                found[name].append(result)
    return {
        name: {
            what: statistics.median(each[what] for each in results)
            for what in ("rate", "cpu_us", "mb", "size")
        }
        for name, results in found.items()
    }


# -- telling -------------------------------------------------------------------------------------


def _ratio(medians: _Medians, name: str, client: str) -> str:
    other = f"{client}-{name}"
    if other not in medians:
        return ""
    return f"{medians[name]['rate'] / medians[other]['rate']:.2f}x"


def _tell(data: Data, records: int, medians: _Medians, *, keyed: bool) -> None:
    rows = [
        [
            name.replace("-", " "),
            f"{each['rate'] / 1e3:.1f}",
            f"{each['cpu_us']:.2f}",
            f"{each['mb']:.0f}",
            f"{each['size']:.0f}" if each["size"] else "",
            _ratio(medians, name, "aiokafka"),
            _ratio(medians, name, "confluent"),
        ]
        for name, each in medians.items()
    ]
    say(f"\n{data}, {records:,} records {'with' if keyed else 'without'} keys")
    headings = ["way", "1,000 records/s", "CPU us a record", "MB", "a transaction"]
    say(table([*headings, "aiokafka", "confluent"], rows))


def _bars(medians: _Medians) -> bool:
    met = True
    for name, other, bar in BARS:
        if name in medians and other in medians:
            ratio = medians[name]["rate"] / medians[other]["rate"]
            met = met and ratio >= bar
            said = "met" if ratio >= bar else "MISSED"
            say(f"bar: {name} {ratio:.2f} x {other} (at least {bar}): {said}")
    return met


def _chosen(options: argparse.Namespace) -> Sequence[Data]:
    return [
        Data(size, compression, partitions)
        for partitions in options.partitions
        for compression in options.compression
        for size in options.sizes
    ]


def _child(name: str, told: str) -> int:
    say(json.dumps(WAYS[name](Task(*json.loads(told)), Timer())))
    return 0


def main(argv: list[str] | None = None) -> int:
    """Print a table for each kind of data; exit code 1 when a bar is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks produce",
        description="A quick run: --sizes 100 --compression none --partitions 4 --records 100000",
    )
    parser.add_argument("--kafka", default="4.4.0", help="the release to measure on")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--records", type=int, default=500_000, help="of 100 bytes; in bytes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--compression", nargs="+", default=["none", "zstd"])
    parser.add_argument("--partitions", type=int, nargs="+", default=[4, 400])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    parser.add_argument("--keyed", action="store_true", help="records have keys")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        return _child(*options.child)
    from tests.support.real_kafka import RealKafka

    say(f"medians of {options.runs} runs on Kafka {options.kafka} ({machine()})")
    met = True
    with RealKafka.start(options.kafka, _CONFIGS) as kafka:
        for number, data in enumerate(_chosen(options)):
            kafka.create_topic(data.topic, data.partitions)
            records = max(_RECORDS_MIN, options.records * 100 // data.value_bytes)
            source = fill(kafka.bootstrap, data, records + 2 * _TRANSACTION)
            medians = _in_turns(kafka, options, data, source, records)
            kafka.delete_topic(data.topic)
            _tell(data, records, medians, keyed=options.keyed)
            met = _bars(medians) and met if number == 0 else met
    return 0 if met else 1

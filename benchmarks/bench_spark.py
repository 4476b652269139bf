"""Spark's ways out of a topic: format ``kip848`` beside Spark's own source, and without Spark.

One broker, one session (``local[2]``), everything in turns, medians. ``read`` counts the rows of a
batch query into no sink; ``Parquet`` is a stream with ``availableNow``, from ``start()`` to its
end. Clients without Spark are measured as ``python -m benchmarks consume`` does, in processes of
their own. The floor is what a micro-batch takes that has next to nothing to read.

Each streaming query begins with a Python process of its own, which is part of its time. It finds
bytecode, as that of an installed package does, whatever the environment says.

``--curve`` shows rows a second by tasks and partitions instead, and what a micro-batch takes by
its size.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.bench_consume import measured
from benchmarks.timing import machine, say, table
from benchmarks.topics import Data, Topic, fill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["main"]

_FLOOR_BATCHES: Final = 20
_FLOOR_LIMIT_MS: Final = 300.0
_OTHERS: Final = ("aiokafka-getmany", "confluent")
_BATCH_SIZES: Final = (1_000, 10_000, 100_000)
_BATCHES: Final = 8
_BARS: Final = (("read", 1.3), ("Parquet", 1.0))
"""Ours to Spark's own, at least."""


def _session(bytecode: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(bytecode)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("kip848 benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def _options(topic: Topic, more: dict[str, str]) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": topic.bootstrap,
        "subscribe": topic.name,
        "startingOffsets": "earliest",
        **more,
    }


def _read(spark: SparkSession, form: str, topic: Topic, more: dict[str, str]) -> float:
    """Rows a second of a batch query."""
    began = time.perf_counter()
    frame = spark.read.format(form).options(**_options(topic, more)).load()
    frame.write.format("noop").mode("overwrite").save()
    return topic.records / (time.perf_counter() - began)


def _to_parquet(spark: SparkSession, form: str, topic: Topic, more: dict[str, str]) -> float:
    """Rows a second of a stream that writes all into files."""
    folder = Path(tempfile.mkdtemp())
    try:
        frame = spark.readStream.format(form).options(**_options(topic, more)).load()
        began = time.perf_counter()
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(folder / "out"))
        )
        query.awaitTermination()
        took_s = time.perf_counter() - began
        rows = spark.read.parquet(str(folder / "out")).count()
        if rows != topic.records:
            raise SystemExit(f"{form}: {rows} rows of {topic.records}")
        return topic.records / took_s
    finally:
        shutil.rmtree(folder, ignore_errors=True)


Way = Callable[["SparkSession", str, Topic, dict[str, str]], float]
_WAYS: Final[dict[str, Way]] = {"read": _read, "Parquet": _to_parquet}


def _in_turns(spark: SparkSession, topic: Topic, runs: int) -> dict[tuple[str, str], float]:
    rates: dict[tuple[str, str], list[float]] = {}
    for turn in range(runs + 1):  # the first warms Java up
        for name, way in _WAYS.items():
            for form in ("kip848", "kafka"):
                rate = way(spark, form, topic, {})
                if turn:
                    rates.setdefault((name, form), []).append(rate)
        for other in _OTHERS if turn else ():
            rates.setdefault(("read", other), []).append(measured(other, topic)["rate"])
    return {key: statistics.median(found) for key, found in rates.items()}


def _floor_ms(spark: SparkSession, form: str, topic: Topic) -> float:
    """The median of what a micro-batch of a few records takes, in milliseconds."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": topic.bootstrap, "linger.ms": 0})
    is_over = threading.Event()

    def drip() -> None:
        while not is_over.wait(0.02):
            producer.produce(topic.name, b"x", partition=0)
            producer.poll(0)

    folder = tempfile.mkdtemp()
    options = {**_options(topic, {}), "startingOffsets": "latest"}
    frame = spark.readStream.format(form).options(**options).load()
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(processingTime="0 seconds")
        .start(f"{folder}/out")
    )
    thread = threading.Thread(target=drip)
    thread.start()
    found: dict[int, float] = {}
    try:
        while len(found) < _FLOOR_BATCHES + 3:
            time.sleep(0.2)
            for each in query.recentProgress:
                if each.numInputRows:
                    found[each.batchId] = float(each.durationMs["triggerExecution"])
    finally:
        is_over.set()
        thread.join()
        producer.flush(10)
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return statistics.median(sorted(found.items())[n][1] for n in range(3, len(found)))


def _compare(spark: SparkSession, topic: Topic, runs: int) -> bool:
    medians = _in_turns(spark, topic, runs)
    rows = [
        [f"{name}, {form}", f"{rate / 1e6:.3f}", f"{rate / medians[name, 'kafka']:.2f}x"]
        for (name, form), rate in sorted(medians.items())
    ]
    say(table(["way", "M rows/s", "Spark's own"], rows))
    met = True
    for name, bar in _BARS:
        ratio = medians[name, "kip848"] / medians[name, "kafka"]
        met = met and ratio >= bar
        said = "met" if ratio >= bar else "MISSED"
        say(f"bar: {name} {ratio:.2f} x Spark's own source (at least {bar}): {said}")
    floor_ms, theirs_ms = (_floor_ms(spark, form, topic) for form in ("kip848", "kafka"))
    is_low = floor_ms <= _FLOOR_LIMIT_MS
    said = "met" if is_low else "MISSED"
    say(f"a micro-batch into Parquet: {floor_ms:.0f} ms, Spark's own source {theirs_ms:.0f} ms")
    say(f"bar: a micro-batch takes at most {_FLOOR_LIMIT_MS:.0f} ms: {said}")
    return met and is_low


def _batch_ms(spark: SparkSession, topic: Topic, size: int) -> float:
    """The median of what a micro-batch of so many rows takes into Parquet, in milliseconds."""
    folder = tempfile.mkdtemp()
    options = _options(topic, {"maxOffsetsPerTrigger": str(size)})
    frame = spark.readStream.format("kip848").options(**options).load()
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(processingTime="0 seconds")
        .start(f"{folder}/out")
    )
    found: dict[int, float] = {}
    wanted = min(_BATCHES, topic.records // size)
    try:
        while len(found) < wanted:
            time.sleep(0.1)
            for each in query.recentProgress:
                if each.numInputRows:
                    found[each.batchId] = float(each.durationMs["triggerExecution"])
    finally:
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return statistics.median(sorted(found.items())[n][1] for n in range(wanted // 3, wanted))


_TASKS: Final = (1, 2, 4)
_SPREAD: Final = (statistics.median, min, max)


def _curve(spark: SparkSession, topics: Sequence[Topic], runs: int) -> None:
    """In rounds through all cells, so that what a machine does besides falls on each alike."""
    cells = [(topic, tasks) for topic in topics for tasks in _TASKS]
    rates: dict[tuple[int, int], list[float]] = {}
    for number in range(runs + 1):
        for topic, tasks in cells:
            rate = _read(spark, "kip848", topic, {"tasks": str(tasks)})
            if number:  # in the first round Java warms up
                rates.setdefault((topic.partitions, tasks), []).append(rate)
    rows = [
        [str(partitions), str(tasks), *(f"{each(found) / 1e6:.3f}" for each in _SPREAD)]
        for (partitions, tasks), found in rates.items()
    ]
    say(table(["partitions", "tasks", "M rows/s", "least", "most"], rows))
    rows = []
    for size in _BATCH_SIZES:
        took_ms = _batch_ms(spark, topics[0], size)
        rows.append([f"{size:,}", f"{took_ms:.0f}", f"{size / took_ms / 1e3:.3f}"])
    say(table(["rows a batch, into Parquet", "ms", "M rows/s"], rows))


def main(argv: list[str] | None = None) -> int:
    """Print the tables; exit code 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks spark", description=__doc__)
    parser.add_argument("--kafka", default="4.4.0", help="the release to measure on")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--records", type=int, default=1_000_000, help="of 100 bytes each")
    parser.add_argument("--curve", action="store_true", help="by tasks and partitions")
    options = parser.parse_args(argv)
    from tests.support.real_kafka import RealKafka
    from tests.support.spark_jars import add_kafka_source

    say(f"medians of {options.runs} runs on Kafka {options.kafka} ({machine()})")
    with tempfile.TemporaryDirectory() as folder, RealKafka.start(options.kafka) as kafka:

        def filled(partitions: int) -> Topic:
            data = Data(100, "none", partitions)
            kafka.create_topic(data.topic, partitions)
            return fill(kafka.bootstrap, data, options.records)

        spark: Any = _session(Path(folder))
        try:
            if options.curve:
                _curve(spark, [filled(partitions) for partitions in (4, 40, 400)], options.runs)
                return 0
            add_kafka_source(spark)
            return 0 if _compare(spark, filled(4), options.runs) else 1
        finally:
            spark.stop()

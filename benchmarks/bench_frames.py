"""A topic into a data frame on one machine: Polars and DuckDB from ``getbatches``, beside Spark.

One broker, everything in turns in one process, medians. Each way reads the whole topic, decodes the
values from JSON and counts records and sums ``user`` by ``level``; all results must agree. Spark's
session is started before, and its start is shown on its own: a job of minutes pays it once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa

from benchmarks.timing import machine, say, table
from benchmarks.topics import Data, Topic, fill
from kip848_client import Consumer, TopicPartition

__all__ = ["main"]

Result = list[tuple[str, int, int]]
"""Level, records, and the sum of the users."""

_COLUMNS: Final = "id bigint, user bigint, level string, message string"


async def _arrow(topic: Topic) -> pa.Table:
    batches: list[Any] = []
    async with Consumer(
        bootstrap_servers=topic.bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TopicPartition(topic.name, each) for each in range(topic.partitions)])
        found = 0
        while found < topic.records:
            views = await consumer.getbatches(timeout_ms=1000, max_records=100_000)
            for view in views.values():
                batches.append(view.to_arrow().select(["value"]))
                found += len(view)
    return pa.Table.from_batches(batches)


def _by_polars(topic: Topic) -> Result:
    frame: Any = pl.from_arrow(asyncio.run(_arrow(topic)))
    fields = pl.Struct({"id": pl.Int64, "user": pl.Int64, "level": pl.String, "message": pl.String})
    decoded = frame.select(pl.col("value").cast(pl.String).str.json_decode(fields)).unnest("value")
    counted = decoded.group_by("level").agg(pl.len(), pl.col("user").sum()).sort("level")
    return [(level, count, total) for level, count, total in counted.iter_rows()]


def _by_duckdb(topic: Topic) -> Result:
    records = asyncio.run(_arrow(topic))
    with duckdb.connect() as database:
        database.register("records", records)
        rows = database.execute(
            "select v->>'level' as level, count(*), sum((v->>'user')::bigint) "
            "from (select decode(value)::json v from records) group by 1 order by 1"
        ).fetchall()
    return [(str(level), int(count), int(total)) for level, count, total in rows]


def _by_spark(spark: Any, topic: Topic) -> Result:
    from pyspark.sql import functions as F  # noqa: N812 - everybody's name

    frame = (
        spark.read.format("kip848")
        .option("kafka.bootstrap.servers", topic.bootstrap)
        .option("subscribe", topic.name)
        .load()
    )
    decoded = frame.select(F.from_json(F.col("value").cast("string"), _COLUMNS).alias("v"))
    counted = decoded.groupBy("v.level").agg(F.count("*"), F.sum("v.user")).orderBy("level")
    return [(str(level), int(count), int(total)) for level, count, total in counted.collect()]


def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder: Any = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def main(argv: list[str] | None = None) -> int:
    """Print the table; exit code 1 when results differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks frames", description=__doc__)
    parser.add_argument("--kafka", default="4.4.0", help="the release to measure on")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--records", type=int, default=300_000, help="of 1,000 bytes each")
    options = parser.parse_args(argv)
    from tests.support.real_kafka import RealKafka

    with RealKafka.start(options.kafka) as kafka:
        data = Data(1000, "none", 4)
        kafka.create_topic(data.topic, data.partitions)
        topic = fill(kafka.bootstrap, data, options.records)
        began = time.perf_counter()
        spark = _session()
        start_s = time.perf_counter() - began
        ways: dict[str, Callable[[], Result]] = {
            "getbatches + Polars": lambda: _by_polars(topic),
            "getbatches + DuckDB": lambda: _by_duckdb(topic),
            "Spark, format kip848": lambda: _by_spark(spark, topic),
        }
        first: dict[str, float] = {}
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        results: list[Result] = []
        for turn in range(options.runs + 1):
            for name, way in ways.items():
                began = time.perf_counter()
                results.append(way())
                took = time.perf_counter() - began
                if turn:
                    seconds[name].append(took)
                else:
                    first[name] = took
        spark.stop()
    say(f"{options.records:,} records of 1,000 bytes, Kafka {options.kafka} ({machine()})")
    rows = [
        [
            name,
            f"{first[name]:.1f}",
            f"{statistics.median(each):.1f}",
            f"{options.records / statistics.median(each):,.0f}",
        ]
        for name, each in seconds.items()
    ]
    say(table(["", "first, s", "later, s", "records/s"], rows))
    say(f"Spark's start before that: {start_s:.1f} s")
    same = all(each == results[0] for each in results)
    say("all results agree" if same else f"results differ: {results}")
    return 0 if same else 1

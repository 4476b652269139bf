"""Spark's own Kafka source with a group that knows how far it is, and as Kafka's tool shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kip848_client import Producer
from kip848_client.spark import GroupOffsets
from tests.support.kafka_tools import CONSUMER_GROUPS, run_tool
from tests.support.pytest_kafka import skip_without_kafka
from tests.support.spark_jars import add_kafka_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.real_kafka import RealKafka

pytestmark = [
    pytest.mark.real_kafka,
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

RECORDS = 300


async def _fill(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(RECORDS):
            await producer.send(topic, b"%d" % number, partition=number % 3)


def _lag(bootstrap: str, group: str) -> list[tuple[str, str, str]]:
    """What Kafka's tool shows: partition, committed, lag."""
    shown = run_tool(
        CONSUMER_GROUPS, "--bootstrap-server", bootstrap, "--describe", "--group", group
    )
    rows = [line.split() for line in shown.splitlines() if line.startswith(group)]
    return sorted((row[2], row[3], row[5]) for row in rows)


@pytest.mark.parametrize("form", ["kafka", "kip848"])
@pytest.mark.parametrize("release", ["4.4.0"])
def test_kafkas_tool_shows_no_lag_when_all_is_done(
    real_kafka_pool: Callable[[str], RealKafka],
    release: str,
    unique: Callable[[str], str],
    spark: SparkSession,
    tmp_path: Path,
    form: str,
) -> None:
    topic, group = unique("seen"), unique("seen-by")
    with skip_without_kafka():
        kafka = real_kafka_pool(release)
        add_kafka_source(spark)
    kafka.create_topic(topic, 3)
    asyncio.run(_fill(kafka.bootstrap, topic))
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "kafka.group.id": group,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "200",
    }
    query = (
        spark.readStream.format(form)
        .options(**options)
        .load()
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    if form == "kafka":
        with GroupOffsets(spark, query, options) as offsets:
            query.awaitTermination(120)
        assert set(offsets.lag().values()) == {0}
    else:
        query.awaitTermination(120)
    assert spark.read.parquet(str(tmp_path / "out")).count() == RECORDS
    assert _lag(kafka.bootstrap, group) == [(str(n), "100", "0") for n in range(3)]

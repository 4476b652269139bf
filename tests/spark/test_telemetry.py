"""The tables of histories by Spark's SQL are those of the pass in Python."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kip848_client import Producer
from kip848_client.history.core import TABLES, HistoryEvent, Tables, line_of, tables_of
from kip848_client.history.recording import HistoryTopic, read_files
from mock_coordinator.threaded import BrokerThread
from tests.support.histories import any_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

_SLA_MS = 5
_HEAD = b'{"schema":1,"writer":"w","seq":1,"host":"h","group_id":"g0","member_id":"m0",'
_NOISE = (
    _HEAD + b'"role":"con',  # cut short
    b"",
    b"\x00\xff\xfe",
    b"[1, 2]",
    b'{"schema":2,"writer":"w"}',
    _HEAD + b'"role":"king","time_ms":1,"kind":"epoch","member_epoch":1}',
    _HEAD + b'"role":"consumer","time_ms":"soon","kind":"epoch","member_epoch":1}',
    _HEAD + b'"role":"consumer","time_ms":-4,"kind":"epoch","member_epoch":1}',
    _HEAD + b'"role":"consumer","time_ms":4,"kind":"assigned","partitions":[{"topic":"a"}]}',
)


def _rows(table: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in table.collect()), key=repr)


def _same(found: dict[str, DataFrame], expected: Tables) -> None:
    for name, columns in TABLES.items():
        assert found[name].columns == [column.name for column in columns]
        rows = sorted((tuple(row) for row in getattr(expected, name)), key=repr)
        assert _rows(found[name]) == rows, name


def test_spark_and_python_agree(spark: SparkSession, tmp_path: Path) -> None:
    """On sixty groups at once: a query costs seconds, however little there is to compute."""
    from kip848_client.spark import history as telemetry

    random = Random(848)
    events: list[HistoryEvent] = []
    for number in range(60):
        events += any_history(random, f"g{number}", random.randint(0, 40))
    lines = [*map(line_of, events), *(each + b"\n" for each in _NOISE)]
    random.shuffle(lines)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(lines))
    expected = tables_of(read_files([path]).events, _SLA_MS)
    assert all(getattr(expected, name) for name in TABLES), "there is something of each"
    parquet = str(tmp_path / "parquet")
    telemetry.events_of(spark, str(path)).write.parquet(parquet)
    _same(telemetry.tables_of(spark, spark.read.parquet(parquet), sla_ms=_SLA_MS), expected)


@pytest.mark.mock_broker(topics={"history": 2})
def test_events_of_a_topic(spark: SparkSession, mock_broker: BrokerThread) -> None:
    from kip848_client.spark import history as telemetry

    events = any_history(Random(1), "g", 40)

    async def write() -> None:
        async with Producer(bootstrap_servers=mock_broker.bootstrap) as producer:
            topic = HistoryTopic(producer, "history")
            for each in events:
                await topic.write(each)
            await topic.close()

    asyncio.run(write())
    said = {"kafka.bootstrap.servers": mock_broker.bootstrap, "subscribe": "history"}
    frame = telemetry.events_in(spark.read.format("kip848").options(**said).load())
    assert frame.columns == [field.name for field in dataclasses.fields(HistoryEvent)]
    read = {tuple(row) for row in frame.select("writer", "seq", "kind", "time_ms").collect()}
    assert read == {(each.writer, each.seq, each.kind, each.time_ms) for each in events}

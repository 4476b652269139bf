"""The data source on real Spark and the bundled broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kip848_client import Admin, Producer
from mock_coordinator import MockBroker
from mock_coordinator.threaded import BrokerThread
from tests.spark.streams import numbers_in, source, to_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.mock_broker(topics={"a": 3}),
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def _produce(broker: BrokerThread, numbers: range) -> None:
    async def send() -> None:
        async with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in numbers:
                await producer.send("a", b"%d" % number, key=b"k", partition=number % 3)
            await producer.flush()

    asyncio.run(send())


def _lag(broker: BrokerThread, group: str) -> int:
    async def ask() -> int:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            done = await admin.list_group_offsets(group)
        return sum(
            len(broker.records("a", tp.partition)) - each.offset for tp, each in done.items()
        )

    return asyncio.run(ask())


def _nobody_in(group: str) -> Callable[[MockBroker], bool]:
    """Whether a group has no members: for ``wait_for``."""

    def ask(broker: MockBroker) -> bool:
        found = broker.snapshot(group)
        return found is None or not found.members

    return ask


def _has_committed(times: int) -> Callable[[MockBroker], bool]:
    """Whether a query is so far: for ``wait_for``."""
    return lambda broker: len(broker.requests("OffsetCommit")) >= times


@pytest.mark.foreign
@pytest.mark.parametrize("ownership", ["shared", "exclusive"])
def test_a_query_reads_all_and_its_group_has_no_lag(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path, ownership: str
) -> None:
    _produce(mock_broker, range(1_000))
    frame = source(
        spark,
        mock_broker.bootstrap,
        kafka_group_id="g",
        ownership=ownership,
        maxOffsetsPerTrigger="600",
    )
    query = to_parquet(frame, tmp_path, availableNow=True)
    assert query.awaitTermination(120)
    assert numbers_in(spark, tmp_path) == list(range(1_000))
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [600, 400]
    assert _lag(mock_broker, "g") == 0
    mock_broker.wait_for(_nobody_in("g"))


@pytest.mark.foreign
def test_columns_are_those_of_sparks_own_source(
    spark: SparkSession, mock_broker: BrokerThread
) -> None:
    _produce(mock_broker, range(2))
    said = {"kafka.bootstrap.servers": mock_broker.bootstrap, "subscribe": "a"}
    frame = spark.read.format("kip848").options(**said).load()
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )
    first = frame.where("value = '0'").collect()[0]
    assert (bytes(first.key), bytes(first.value), first.topic) == (b"k", b"0", "a")
    assert (first.partition, first.offset, first.timestampType) == (0, 0, 0)
    assert abs(first.timestamp.timestamp() - time.time()) < 86_400
    with_headers = spark.read.format("kip848").options(**said, includeHeaders="true").load()
    assert with_headers.schema["headers"].dataType.simpleString() == (
        "array<struct<key:string,value:binary>>"
    )
    assert with_headers.count() == 2


@pytest.mark.foreign
def test_what_is_wrong_is_told_in_the_driver(
    spark: SparkSession, mock_broker: BrokerThread
) -> None:
    said = {"kafka.bootstrap.servers": mock_broker.bootstrap, "subscribe": "a"}
    for options, told in (
        ({"subscrib": "b"}, "did you mean subscribe"),
        ({"kafka.auto.offset.reset": "latest"}, "use startingOffsets"),
        ({"subscribe": "missing"}, "missing"),
        (
            {"kafka.bootstrap.servers": "127.0.0.1:1", "kafkaConsumer.pollTimeoutMs": "2000"},
            "127.0",
        ),
        ({"startingOffsets": '{"a": {"0": 5, "1": 0, "2": 0}}'}, "offset 5 is outside of a-0"),
    ):
        with pytest.raises(Exception, match=told):
            spark.read.format("kip848").options(**said | options).load().count()
    with pytest.raises(Exception, match="format kip848 has a fixed schema"):
        spark.read.format("kip848").options(**said).schema("value string").load().count()


@pytest.mark.foreign
def test_a_query_that_is_stopped_amid_a_batch_leaves_its_group_and_repeats_the_batch(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    member = {"kafka_group_id": "g", "ownership": "shared"}
    frame = source(spark, mock_broker.bootstrap, **member, maxOffsetsPerTrigger="50", tasks="1")
    _produce(mock_broker, range(500))
    query = to_parquet(frame, tmp_path, processingTime="0 seconds")
    mock_broker.wait_for(_has_committed(5), timeout_s=120)
    query.stop()
    mock_broker.wait_for(_nobody_in("g"))
    again = to_parquet(frame, tmp_path, availableNow=True)
    assert again.awaitTermination(120)
    assert numbers_in(spark, tmp_path) == list(range(500))
    assert _lag(mock_broker, "g") == 0


@pytest.mark.foreign
def test_the_control_channel_frees_partitions_at_once_and_drains(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    from kip848_client import Consumer
    from kip848_client.spark import QueryControl

    _produce(mock_broker, range(300))
    path = str(tmp_path / "control")
    member = {"kafka_group_id": "g", "ownership": "shared"}
    frame = source(spark, mock_broker.bootstrap, **member, control=path)
    query = to_parquet(frame, tmp_path, processingTime="1 hour")
    control = QueryControl(spark, query, path)
    mock_broker.wait_for(_has_committed(2), timeout_s=120)  # where it begins, and the batch

    async def join() -> int:
        async with Consumer("a", bootstrap_servers=mock_broker.bootstrap, group_id="g") as consumer:
            return len(await consumer.wait_assigned(timeout_ms=60_000))

    assert asyncio.run(join()) in (1, 2)
    assert control.status()["batch"] is None
    control.stop()
    assert not query.isActive
    mock_broker.wait_for(_nobody_in("g"))
    assert numbers_in(spark, tmp_path) == list(range(300))
    assert _lag(mock_broker, "g") == 0

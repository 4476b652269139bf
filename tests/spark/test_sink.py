"""The sink on real Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mock_coordinator.threaded import BrokerThread
from tests.spark.books import until
from tests.spark.sink_kills import play
from tests.spark.streams import source
from tests.unit.spark.sink._committed import committed_values
from tests.unit.spark.sink._writing import open_transactions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.mock_broker(topics={"a": 3, "b": 2}),
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

PAUSE_S = 0.05


def test_a_stream_that_repeats_a_batch_writes_each_row_once(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    to = {"kafka.bootstrap.servers": mock_broker.bootstrap}
    rows = spark.range(0, 3_000, 1, 2).selectExpr("cast(id as string) value", "'k' key")
    once = {**to, "kafka.transactional.id": "batch", "topic": "a"}
    rows.write.format("kip848").options(**once).mode("append").save()
    wanted = sorted(b"%d" % number for number in range(3_000))
    assert committed_values(mock_broker.bootstrap, "a", 3) == wanted
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        frame = (
            spark.readStream.format("kip848")
            .options(**to, subscribe="a", startingOffsets="earliest")
            .option("maxOffsetsPerTrigger", "2000")
            .option("kafka.isolation.level", "read_committed")
            .load()
        )
        query = (
            frame.selectExpr("value", "'b' topic")
            .writeStream.format("kip848")
            .options(**{**to, "kafka.transactional.id": "stream"})
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    run()
    last = max(int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):  # as if Spark had died after the commit of the sink
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    run()
    assert last >= 1
    assert (checkpoint / "commits" / f"{last}").exists(), "the batch was not repeated"
    assert committed_values(mock_broker.bootstrap, "b", 2) == wanted


def test_a_second_driver_with_the_same_transactional_id_takes_over(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know it by

    to = {"kafka.bootstrap.servers": mock_broker.bootstrap}
    once = {**to, "kafka.transactional.id": "one"}
    held = tmp_path / "held"

    def hold(partition: int) -> int:
        while held.exists() and partition == 1:
            time.sleep(PAUSE_S)
        return partition

    def begin(**trigger: bool | str) -> StreamingQuery:
        frame = source(spark, mock_broker.bootstrap, tasks="2")
        by = F.udf(hold, "int", useArrow=False)("partition").alias("by")
        writer = frame.select("value", F.lit("b").alias("topic"), by).writeStream
        writer = writer.format("kip848").options(**once)
        chosen: Any = trigger  # its overloads take one of them each
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(**chosen).start()

    for number in range(2):
        mock_broker.produce("a", b"%d" % number, partition=number)
    held.touch()
    first = begin(processingTime="0 seconds")
    until(lambda: open_transactions(mock_broker.bootstrap))  # one task has written
    rows = spark.range(2, 4, 1, 1).selectExpr("cast(id as string) value", "'b' topic")
    rows.write.format("kip848").options(**once).mode("append").save()
    held.unlink()
    with pytest.raises(Exception, match=r"another query has the same kafka\.tra"):
        first.awaitTermination(120)
    assert committed_values(mock_broker.bootstrap, "b", 2) == [b"2", b"3"]
    assert begin(availableNow=True).awaitTermination(120)
    assert committed_values(mock_broker.bootstrap, "b", 2) == [b"0", b"1", b"2", b"3"]


def test_what_cannot_be_written_is_told_and_nothing_of_it_is_there(
    spark: SparkSession, mock_broker: BrokerThread
) -> None:
    to = {"kafka.bootstrap.servers": mock_broker.bootstrap, "kafka.transactional.id": "x"}
    rows = spark.range(0, 100, 1, 2).selectExpr("cast(id as string) value", "'a' topic")
    poisoned = rows.selectExpr("value", "if(value = '99', null, topic) topic")
    for frame, options, told in (
        (rows, {"topc": "a"}, "did you mean topic"),
        (rows.select("value"), {}, "set the option topic, or add a column topic"),
        (rows.selectExpr("1 value", "topic"), {}, "column value must be string or binary, got int"),
        (poisoned, {}, "column topic of a row is null"),
    ):
        with pytest.raises(Exception, match=told):
            frame.write.format("kip848").options(**to, **options).mode("append").save()
    assert committed_values(mock_broker.bootstrap, "a", 3) == []


def test_whoever_is_killed_at_any_moment_each_row_is_there_once(
    spark: SparkSession, mock_broker: BrokerThread
) -> None:
    """``python -m tests.spark.sink_kills --kills 20`` does it more often."""
    told = play(spark, mock_broker.bootstrap, kills=1, seed=5)
    assert "1 kills, 6000 rows, each once" in told

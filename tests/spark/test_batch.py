"""Batch queries on real Spark: nothing to read, and codecs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from mock_coordinator.threaded import BrokerThread
from tests.support.stored_codecs import CODECS, stored_codecs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


_LIBRARIES: Final = ("snappy", "lz4", "zstd")
"""The codecs that Python's own library lacks; all of them: tests/unit/spark/sink/test_codecs.py."""


@pytest.mark.mock_broker(topics={"empty": 2, "full": 1})
def test_a_query_with_nothing_to_read_has_no_rows(
    spark: SparkSession, mock_broker: BrokerThread
) -> None:
    mock_broker.produce("full", *(b"%d" % number for number in range(10)))
    brokers = {"kafka.bootstrap.servers": mock_broker.bootstrap}

    def read(**said: str) -> DataFrame:
        return spark.read.format("kip848").options(**brokers, **said).load()

    assert read(subscribePattern="nothing.*").count() == 0
    read(subscribe="full", startingTimestamp="1", endingTimestamp="2").createTempView("none")
    assert spark.sql("select max(offset) top from none").collect()[0].top is None
    read(subscribe="empty").write.format("noop").mode("append").save()


@pytest.mark.mock_broker(topics=dict.fromkeys(_LIBRARIES, 2))
def test_codecs_are_written_and_read_row_by_row(
    spark: SparkSession, mock_broker: BrokerThread
) -> None:
    """By Spark's executors; librdkafka writes and reads on the other side."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    theirs = {number: b"theirs %d" % number for number in range(200)}
    for codec in _LIBRARIES:
        settings = {"bootstrap.servers": mock_broker.bootstrap, "linger.ms": 20}
        producer = confluent_kafka.Producer({**settings, "compression.type": codec})
        for number, value in theirs.items():
            producer.produce(codec, value, key=b"%d" % number, partition=number % 2)
        assert producer.flush(30) == 0
    rows = spark.range(1_000, 1_200, 1, 2).selectExpr(
        "cast(id as string) key", "concat('ours ', id) value", "cast(id % 2 as int) partition"
    )
    ours = {number: b"ours %d" % number for number in range(1_000, 1_200)}
    brokers = {"kafka.bootstrap.servers": mock_broker.bootstrap}
    for codec in _LIBRARIES:
        sink = {**brokers, "topic": codec, "kafka.compression.type": codec}
        rows.write.format("kip848").options(**sink).mode("append").save()
        assert stored_codecs(mock_broker.bootstrap, codec, 2) == {CODECS[codec]}
    topics = ",".join(_LIBRARIES)
    found = spark.read.format("kip848").options(**brokers, subscribe=topics, tasks="2").load()
    read = found.select("topic", "key", "partition", "value").collect()
    wanted = [(number, number % 2, value) for number, value in (theirs | ours).items()]
    for codec in _LIBRARIES:
        mine = [(int(e.key), e.partition, bytes(e.value)) for e in read if e.topic == codec]
        assert sorted(mine) == wanted, codec
        assert sorted(_by_librdkafka(mock_broker.bootstrap, codec, len(wanted))) == wanted, codec


def _by_librdkafka(bootstrap: str, topic: str, count: int) -> list[tuple[int, int, bytes]]:
    """What librdkafka reads of a topic: keys, partitions and values."""
    import confluent_kafka

    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "verify", "auto.offset.reset": "earliest"}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in range(2)])
    try:
        found: list[Any] = []
        while len(found) < count and (batch := consumer.consume(count, timeout=10)):
            found += batch
    finally:
        consumer.close()
    return [(int(each.key()), each.partition(), each.value()) for each in found]

"""Batch queries without Spark: readers that are called as Spark calls them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source._batch import BatchReader
from kip848_client.spark.source._stream import StreamReader
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._options import source_options
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.source._by_hand import options_of

pytestmark = pytest.mark.mock_broker(topics={"a": 2, "b": 1})


def _rows(reader: BatchReader | StreamReader, planned: Any) -> int:
    """How many rows the tasks of a plan read. Spark makes up a partition for an empty plan
    (``plan_data_source_read.py``), and executors get copies."""
    partitions = list(planned) or [InputPartition(None)]
    reader, partitions = pickle.loads(pickle.dumps((reader, partitions)))
    return sum(batch.num_rows for each in partitions for batch in reader.read(each))


def _batch(broker: BrokerThread, **said: str) -> BatchReader:
    options = {"kafka.bootstrap.servers": broker.bootstrap}
    names = {name.replace("_", "."): text for name, text in said.items()}
    return BatchReader(source_options(options | names, is_stream=False))


@pytest.mark.parametrize(
    "said",
    [
        {"subscribe": "b"},
        {"assign": '{"b": [0]}'},
        {"subscribePattern": "nothing.*"},
        {"subscribe": "a", "startingOffsets": '{"a": {"0": 2, "1": -1}}'},
        {"subscribe": "a", "endingOffsets": '{"a": {"0": 0, "1": 0}}'},
        {"subscribe": "a", "startingTimestamp": "1", "endingTimestamp": "2"},
        {"subscribe": "b", "kafka_group_id": "g"},
        {"subscribe": "b", "kafka_group_id": "g", "ownership": "exclusive"},
        {"subscribe": "b", "includeHeaders": "true"},
        {"subscribe": "b", "tasks": "4"},
        {"subscribe": "b,missing", "failOnDataLoss": "false"},
    ],
)
def test_a_batch_query_with_nothing_to_read_has_no_rows(
    mock_broker: BrokerThread, said: dict[str, str]
) -> None:
    for number in range(4):
        mock_broker.produce("a", b"%d" % number, partition=number % 2)
    reader = _batch(mock_broker, **said)
    assert reader.partitions() == []
    assert _rows(reader, reader.partitions()) == 0


def test_a_batch_query_reads_what_is_there(mock_broker: BrokerThread) -> None:
    for number in range(4):
        mock_broker.produce("a", b"%d" % number, partition=number % 2)
    reader = _batch(mock_broker, subscribe="a,b")
    assert _rows(reader, reader.partitions()) == 4


def test_a_batch_of_a_stream_with_nothing_to_read_has_no_rows(mock_broker: BrokerThread) -> None:
    reader = StreamReader(options_of(mock_broker.bootstrap))
    tp = TopicPartition("a", 0)
    try:
        planned = reader.partitions({}, Manifest(1, {tp: (0, 0)}).to_json())
        assert _rows(reader, planned) == 0
    finally:
        reader.stop()

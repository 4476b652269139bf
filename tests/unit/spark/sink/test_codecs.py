"""Every codec, as the tasks of a query write and read it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from kip848_client.core.types import TopicPartition
from kip848_client.spark._data_source import Kip848DataSource
from kip848_client.spark.sink._write_task import _kept, writing_loop
from mock_coordinator.threaded import BrokerThread
from tests.support.stored_codecs import CODECS, stored_codecs
from tests.unit.spark.source._by_hand import options_of, rows_of

_SCHEMA = StructType().add("value", BinaryType()).add("partition", "integer")


@pytest.mark.mock_broker(topics={"a": 2})
@pytest.mark.parametrize("codec", CODECS)
def test_what_a_task_writes_another_reads(mock_broker: BrokerThread, codec: str) -> None:
    said = {"kafka.bootstrap.servers": mock_broker.bootstrap, "kafka.compression.type": codec}
    writer = Kip848DataSource({**said, "topic": "a"}).writer(_SCHEMA, overwrite=False)
    values = [b"%d" % number * 100 for number in range(300)]
    partitions = pa.array([number % 2 for number in range(300)], pa.int32())
    batch = pa.record_batch({"value": pa.array(values, pa.binary()), "partition": partitions})
    try:
        writer.write(iter([batch]))
    finally:
        for each in _kept.values():
            writing_loop().call(each.stop(), 10_000)
        _kept.clear()
    assert stored_codecs(mock_broker.bootstrap, "a", 2) == {CODECS[codec]}
    spans = {TopicPartition("a", partition): (0, 150) for partition in range(2)}
    wanted = sorted((number % 2, number // 2, value) for number, value in enumerate(values))
    assert rows_of(options_of(mock_broker.bootstrap), spans) == wanted

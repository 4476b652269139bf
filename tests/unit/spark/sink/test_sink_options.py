"""The options of the sink, and the columns that it takes."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructType

from kip848_client.errors import ConfigError
from kip848_client.spark.sink._options import sink_options
from kip848_client.spark.sink._rows import Row, RowRefused, check_columns, rows_of

_BASE = {"kafka.bootstrap.servers": "localhost:1"}


def test_properties_of_kafkas_producer_become_settings_of_ours() -> None:
    found = sink_options(
        _BASE
        | {
            "Topic": "a",
            "kafka.acks": "all",
            "kafka.compression.type": "gzip",
            "kafka.linger.ms": "7",
            "kafka.batch.size": "100",
            "kafka.enable.idempotence": "true",
            "kafka.client.id": "me",
            "checkpointLocation": "/c",
            "queryName": "q",
        }
    )
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.topic == "a"
    assert found.client_settings() == {
        "bootstrap_servers": "localhost:1",
        "acks": "all",
        "compression_type": "gzip",
        "linger_ms": 7,
        "max_batch_size": 100,
        "enable_idempotence": True,
        "client_id": "me",
    }


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"topc": "a"}, "did you mean topic"),
        ({"kafka.linger": "1"}, "did you mean kafka.linger.ms"),
        ({"kafka.linger.ms": "x"}, "linger.ms='x' is not a number"),
        ({"kafka.acks": "2"}, "acks"),
        ({"kafka.value.serializer": "x"}, "DataFrame functions"),
        ({"kafka.partitioner.ignore.keys": "true"}, "set the column partition instead"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"topic": " "}, "topic is empty"),
        ({"subscribe": "a"}, "no option 'subscribe'"),
    ],
)
def test_what_is_wrong_is_told_with_its_name(said: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        sink_options(_BASE | said)


def _schema(text: str) -> StructType:
    types = {
        "string": StringType(),
        "long": LongType(),
    }
    found = StructType()
    for each in text.split():
        name, kind = each.split(":")
        found = found.add(name, types[kind])
    return found


@pytest.mark.parametrize(
    ("columns", "topic", "told"),
    [
        ("key:string topic:string", None, "column value is missing, got key, topic"),
        ("value:string", None, "set the option topic, or add a column topic"),
        ("value:long", "a", "column value must be string or binary, got bigint"),
        ("value:string key:long", "a", "column key must be string or binary, got bigint"),
        ("value:string topic:long", "a", "column topic must be string, got bigint"),
        ("value:string partition:long", "a", "column partition must be int, got bigint"),
        ("value:string headers:string", "a", "must be array<struct<key:string,value:binary>>"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(
    columns: str, topic: str | None, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        check_columns(_schema(columns), topic)


def test_columns_that_are_none_of_a_record_are_left_out() -> None:
    check_columns(_schema("value:string offset:long"), "a")


_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_rows_of_an_arrow_batch() -> None:
    batch = pa.record_batch(
        {
            "offset": pa.array([7, 8]),
            "headers": pa.array([[{"key": "h", "value": b"1"}], None], _HEADERS),
            "value": pa.array(["ä", None]),
            "key": pa.array([b"k", None]),
            "partition": pa.array([1, None], pa.int32()),
            "topic": pa.array(["t", "u"]),
        }
    )
    assert list(rows_of(batch, None)) == [
        Row("t", "ä".encode(), b"k", 1, [("h", b"1")]),
        Row("u", None, None, None, None),
    ]
    assert [row.topic for row in rows_of(batch, "all")] == ["all", "all"]


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ({"topic": pa.array([None], pa.string())}, "column topic of a row is null"),
        ({"topic": ["t"], "partition": pa.array([-1], pa.int32())}, "has partition -1"),
        ({"topic": ["t"], "headers": pa.array([[None]], _HEADERS)}, "a header of a row has no key"),
    ],
)
def test_a_row_that_cannot_become_a_record_is_refused(column: dict[str, object], told: str) -> None:
    batch = pa.record_batch({"value": pa.array(["v"]), **column})
    with pytest.raises(RowRefused, match=told):
        list(rows_of(batch, None))


def test_properties_without_effect_are_accepted_and_named() -> None:
    found = sink_options(_BASE | {"kafka.retries": "3", "kafka.compression.zstd.level": "7"})
    assert set(found.without_effect) == {"retries", "compression.zstd.level"}
    assert set(found.properties) == {"bootstrap.servers"}

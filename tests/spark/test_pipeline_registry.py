"""Pipelines whose values have schemas in a registry, on real Spark and the bundled broker. Their
types, their versions and what is bad of them: ``tests/unit/spark/pipeline/registry``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kip848_client.errors import ConfigError
from kip848_client.records._arrow import pyarrow
from mock_coordinator.threaded import BrokerThread
from tests.integration.test_schema_registry import AS_JSON, ORDER, ORDER_2, message_class
from tests.support.fake_registry import FakeRegistry
from tests.support.registry_thread import registry_thread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.mock_broker(topics={"orders": 2}),
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

# pyright sees no parameters of their constructors
_AvroSerializer: Any = AvroSerializer
_JSONSerializer: Any = JSONSerializer
_ProtobufSerializer: Any = ProtobufSerializer
_HERE: Final = SerializationContext("orders", MessageField.VALUE)


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with registry_thread() as found:
        yield found


@pytest.fixture
def client(registry: FakeRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as found:
        yield found


def _settings(
    broker: BrokerThread, registry: FakeRegistry, folder: Path, **decode: Any
) -> dict[str, Any]:
    return {
        "source": {
            "bootstrap_servers": broker.bootstrap,
            "topics": ["orders"],
            "max_records_per_batch": 20,
        },
        "decode": {
            "registry": registry.url,
            "registry_options": {"max.retries": 1, "retries.wait.ms": 1},
            **decode,
        },
        "transform": {"sql": "select value.*, partition, offset from records"},
        "sink": {"path": str(folder / "out")},
        "run": {"checkpoint": str(folder / "checkpoint"), "trigger": "available-now"},
    }


def _rows(folder: Path) -> list[dict[str, Any]]:
    """As a reader sees them that is not Spark."""
    pyarrow()
    import pyarrow.dataset as ds

    found: list[dict[str, Any]] = ds.dataset(str(folder)).to_table().to_pylist()
    return sorted(found, key=lambda row: (row["partition"], row["offset"]))


def _run(spark: SparkSession, settings: dict[str, Any]) -> Any:
    from kip848_client.spark import Pipeline

    running = Pipeline(settings, spark=spark).start()
    assert running.wait(120)
    return running.status()


def test_avro_of_several_versions_becomes_columns_and_bad_records_are_dead_letters(
    spark: SparkSession,
    mock_broker: BrokerThread,
    registry: FakeRegistry,
    client: SchemaRegistryClient,
    tmp_path: Path,
) -> None:
    from kip848_client.spark.pipeline import PipelineFailed

    old, new = _AvroSerializer(client, ORDER), _AvroSerializer(client, ORDER_2)
    for number in range(30):
        serializer, more = (new, {"gift": True}) if number % 3 == 2 else (old, {})
        value = serializer({"number": number, "item": f"i{number}", **more}, _HERE)
        mock_broker.produce("orders", value, partition=number % 2)
    bad = (b"{}", b"\0\0\0\0\x63\2", b"\0\0\0\0\1\2")
    mock_broker.produce("orders", *bad, partition=1)
    settings = _settings(
        mock_broker,
        registry,
        tmp_path,
        format="avro",
        on_error="dead-letter",
        dead_letter=str(tmp_path / "dead"),
    )
    status = _run(spark, settings)
    assert (status.rows, status.bad) == (30, 3)
    rows = _rows(tmp_path / "out")
    assert [(row["number"], row["item"], row["gift"]) for row in rows] == [
        (number, f"i{number}", number % 3 == 2) for number in [*range(0, 30, 2), *range(1, 30, 2)]
    ]
    assert [row["value"] for row in _rows(tmp_path / "dead")] == list(bad)
    mock_broker.produce("orders", new({"number": 30, "item": "", "gift": True}, _HERE))
    settings["decode"] |= {"version": 1}
    registry.spoiled = 500, b'{"error_code": 50001, "message": "out of order"}'
    with pytest.raises(ConfigError, match=r"gave no schema: .*out of order"):
        _run(spark, settings)
    registry.spoiled = None
    _run(spark, settings)
    assert [row["number"] for row in _rows(tmp_path / "out")][15] == 30

    def breaks(frame: Any) -> Any:
        registry.spoiled = 500, b'{"error_code": 50001, "message": "out of order"}'
        return frame

    newest = json.dumps(json.loads(ORDER_2) | {"doc": "no executor has this one"})
    mock_broker.produce(
        "orders", _AvroSerializer(client, newest)({"number": 31, "item": ""}, _HERE)
    )
    from kip848_client.spark import Pipeline

    settings["transform"] = {}
    with pytest.raises(
        PipelineFailed, match=r"SchemaUnavailable: the schema registry .*gave no sch"
    ):
        Pipeline(settings, transform=breaks, spark=spark).start().wait(120)
    registry.spoiled = None
    status = _run(spark, settings)
    assert (status.rows, status.bad) == (1, 0), "a registry that is down makes no dead letter"


@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_json_and_protobuf(
    spark: SparkSession,
    mock_broker: BrokerThread,
    registry: FakeRegistry,
    client: SchemaRegistryClient,
    tmp_path: Path,
    form: str,
) -> None:
    if form == "json":
        serializer = _JSONSerializer(AS_JSON, client)
        values: list[Any] = [{"number": number} for number in range(10)]
    else:
        order = message_class()
        serializer = _ProtobufSerializer(order, client, {"use.deprecated.format": False})
        values = [order(number=number) for number in range(10)]
    mock_broker.produce("orders", *(serializer(each, _HERE) for each in values), b"bad", None)
    settings = _settings(mock_broker, registry, tmp_path, format=form, on_error="drop")
    status = _run(spark, settings)
    assert (status.rows, status.bad) == (11, 1)
    assert [row["number"] for row in _rows(tmp_path / "out")] == [*range(10), None]

"""Output by the time of records, on real Spark and the bundled broker."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from kip848_client.errors import ConfigError
from kip848_client.records._arrow import pyarrow
from mock_coordinator import NewRecord
from mock_coordinator.threaded import BrokerThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.mock_broker(topics={"orders": 2}),
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

_HOUR: Final = 3_600_000
_BEGIN: Final = 1_795_715_400_000
"""2026-11-26T17:50:00Z"""
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


def _produce(broker: BrokerThread, numbers: range) -> None:
    """One record in five minutes in each partition."""
    for number in numbers:
        time_ms = _BEGIN + number // 2 * _HOUR // 12
        record = NewRecord(json.dumps({"id": number}).encode(), timestamp_ms=time_ms)
        broker.produce("orders", record, partition=number % 2)


def _settings(broker: BrokerThread, folder: Path, **parts: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, dict[str, Any]] = {
        "source": {
            "bootstrap_servers": broker.bootstrap,
            "topics": ["orders"],
            "max_records_per_batch": 14,
        },
        "decode": {"format": "json", "columns": "id bigint"},
        "transform": {"sql": "select value.id, topic, partition, offset, timestamp from records"},
        "sink": {"path": str(folder / "out"), "partition_by_time": "hour"},
        "run": {"checkpoint": str(folder / "checkpoint"), "trigger": "available-now"},
    }
    return {name: each | parts.get(name, {}) for name, each in given.items()}


def _run(spark: SparkSession, settings: dict[str, Any]) -> None:
    from kip848_client.spark import Pipeline

    assert Pipeline(settings, spark=spark).start().wait(120)


def _ids(folder: Path) -> list[int]:
    """As a reader sees them that is not Spark."""
    pyarrow()
    import pyarrow.dataset as ds

    table = ds.dataset(str(folder), partitioning="hive").to_table()
    return sorted(int(each) for each in table["id"].to_pylist())


def _files(folder: Path) -> list[str]:
    return sorted(
        str(each.relative_to(folder))
        for each in folder.rglob("*.parquet")
        if each.relative_to(folder).parts[0][0] not in "_."
    )


def test_a_record_is_there_once_whatever_becomes_of_batches_and_checkpoints(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    _produce(mock_broker, range(40))
    settings = _settings(mock_broker, tmp_path)
    _run(spark, settings)
    first = _files(tmp_path / "out")
    assert _ids(tmp_path / "out") == list(range(40))
    assert first[0] == "date=2026-11-26/hour=17/orders+0+00000000000000000000.parquet"
    assert {Path(each).parent.name for each in first} == {"hour=17", "hour=18", "hour=19"}
    shutil.rmtree(tmp_path / "checkpoint")  # it is lost: everything is read again
    _produce(mock_broker, range(40, 50))
    settings["source"]["max_records_per_batch"] = 9
    _run(spark, settings)
    assert _ids(tmp_path / "out") == list(range(50))
    assert set(first) < set(_files(tmp_path / "out"))
    in_spark = spark.read.parquet(str(tmp_path / "out"))
    assert [row.hour for row in in_spark.where("id < 4").select("hour").distinct().collect()] == [
        17
    ]
    shutil.rmtree(tmp_path / "checkpoint" / "commits")  # the last batches are repeated
    _run(spark, settings)
    assert _ids(tmp_path / "out") == list(range(50))
    with pytest.raises(ConfigError, match="has directories by hour, not by day"):
        _run(spark, _settings(mock_broker, tmp_path, sink={"partition_by_time": "day"}))
    with pytest.raises(ConfigError, match="has directories by hour, not by batches"):
        _run(spark, _settings(mock_broker, tmp_path, sink={"partition_by_time": None}))


@pytest.mark.mock_broker(
    topics={"orders": 2}, config={"log.message.timestamp.after.max.ms": str(2**63 - 1)}
)
def test_records_with_odd_times_and_bad_values_hide_no_others(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    _produce(mock_broker, range(10))
    odd = (-1, 0, 253_402_300_799_999, 253_402_300_800_000, 9_000_000_000_000_000, 2**63 - 1)
    for number, time_ms in enumerate(odd, 10):
        value = json.dumps({"id": number}).encode()
        mock_broker.produce("orders", NewRecord(value, timestamp_ms=time_ms))
    mock_broker.produce("orders", NewRecord(b"{", timestamp_ms=_BEGIN), partition=1)
    dead = {"on_error": "dead-letter", "dead_letter": str(tmp_path / "dead")}
    settings = _settings(mock_broker, tmp_path, decode=dead)
    for _ in range(2):
        _run(spark, settings)
        assert _ids(tmp_path / "out") == list(range(16))
        [letter] = _files(tmp_path / "dead")
        assert letter.startswith("date=2026-11-26/hour=17/orders+1+0")
        shutil.rmtree(tmp_path / "checkpoint")
    folders = Counter(str(Path(each).parent) for each in _files(tmp_path / "out"))
    assert f"date={_NULL}/hour={_NULL}" in folders
    assert {"date=1970-01-01/hour=00", "date=9999-12-31/hour=23"} < set(folders)
    assert not any("date=1969" in each or "date=+" in each for each in folders)


def test_days_and_columns_below_them_and_what_a_transform_must_keep(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    from kip848_client.spark.pipeline import PipelineFailed

    _produce(mock_broker, range(12))
    columns = "value.id, value.id % 2 as odd, topic, partition, offset, timestamp"
    by_day = _settings(
        mock_broker,
        tmp_path,
        transform={"sql": f"select {columns} from records"},
        sink={"partition_by_time": "day", "partition_by": ["odd"]},
    )
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        _run(spark, by_day)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert _ids(tmp_path / "out") == list(range(12))
    assert {str(Path(each).parent) for each in _files(tmp_path / "out")} == {
        "date=2026-11-26/odd=0",
        "date=2026-11-26/odd=1",
    }
    for sql, reason in (
        ("select value.id, topic, partition, offset from records", "but timestamp is missing"),
        (f"select {columns}, 1 as Hour from records", "the rows have a column 'Hour'"),
        (
            "select topic, partition, offset, cast(timestamp as string) timestamp from records",
            "but timestamp has the type string",
        ),
    ):
        settings = _settings(mock_broker, tmp_path / "no", transform={"sql": sql})
        with pytest.raises(ConfigError, match=reason):
            _run(spark, settings)
    moved = "select value.id, topic, partition, offset + 1000 as offset, timestamp from records"
    settings = _settings(mock_broker, tmp_path / "moved", transform={"sql": moved})
    with pytest.raises(PipelineFailed, match=r"row outside of its batch: orders [01] 10"):
        _run(spark, settings)
    assert _files(tmp_path / "moved" / "out") == []

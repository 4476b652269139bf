"""Pipelines on real Spark and the bundled broker."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from kip848_client import Admin
from kip848_client.cli import main
from kip848_client.errors import ConfigError
from kip848_client.records._arrow import pyarrow
from mock_coordinator import NewRecord
from mock_coordinator.threaded import BrokerThread
from tests.pages._snippets import PAGES, name_of, snippets
from tests.spark import kills
from tests.support.pytest_kafka import skip_without_kafka
from tests.support.spark_jars import add_avro, add_kafka_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kip848_client.spark.pipeline import Running

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.mock_broker(topics={"orders": 3, "invoices": 1}),
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def _produce(broker: BrokerThread, numbers: range) -> None:
    for number in numbers:
        value = json.dumps({"id": number, "name": f"n{number}"}).encode()
        broker.produce("orders", value, partition=number % 3)


def _settings(broker: BrokerThread, folder: Path, **parts: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, dict[str, Any]] = {
        "source": {
            "bootstrap_servers": broker.bootstrap,
            "topics": ["orders"],
            "group": "g",
            "max_records_per_batch": 60,
        },
        "decode": {"format": "json", "columns": "id bigint, name string"},
        "transform": {"sql": "select value.*, partition, offset from records"},
        "sink": {"path": str(folder / "out")},
        "run": {"checkpoint": str(folder / "checkpoint"), "trigger": "available-now"},
    }
    return {name: each | parts.get(name, {}) for name, each in said.items()}


def _rows(folder: Path) -> list[dict[str, Any]]:
    """As a reader sees them that is not Spark."""
    pyarrow()
    import pyarrow.dataset as ds

    found: list[dict[str, Any]] = ds.dataset(str(folder)).to_table().to_pylist()
    return found


def _committed(broker: BrokerThread) -> int:
    async def ask() -> int:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            done = await admin.list_group_offsets("g")
        return sum(each.offset for each in done.values())

    return asyncio.run(ask())


def test_records_become_rows_and_what_cannot_be_decoded_is_buried(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    from kip848_client.spark import Pipeline

    _produce(mock_broker, range(90))
    for value in (b"{", b'{"id": "x"}', b"[1]", b"5", b"\xff", b""):
        mock_broker.produce("orders", value, partition=0)
    mock_broker.produce("orders", None, partition=1)
    dead = {"on_error": "dead-letter", "dead_letter": str(tmp_path / "dead")}
    settings = _settings(mock_broker, tmp_path, decode=dead)
    running = Pipeline(settings, spark=spark).start()
    with pytest.raises(ConfigError, match="another driver"):
        Pipeline(settings, spark=spark).start()
    assert running.wait(120)
    rows = _rows(tmp_path / "out")
    assert sorted(row["id"] for row in rows if row["id"] is not None) == list(range(90))
    assert [row for row in rows if row["id"] is None] == [
        {"id": None, "name": None, "partition": 1, "offset": 30}
    ]
    buried = {row["offset"]: row["value"] for row in _rows(tmp_path / "dead")}
    assert buried == {
        30: b"{",
        31: b'{"id": "x"}',
        32: b"[1]",
        33: b"5",
        34: b"\xff",
        35: b"",
    }
    assert _committed(mock_broker) == 97
    status = running.status()
    assert (status.state, status.rows, status.bad) == ("stopped", 91, 6)
    other = _settings(mock_broker, tmp_path, run={"checkpoint": str(tmp_path / "other")})
    with pytest.raises(ConfigError, match=r"the checkpoint .*other is new: .*sink.path"):
        Pipeline(other, spark=spark).start()


def test_a_pipeline_may_begin_before_there_are_records(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    """Spark has a batch then that has nothing, and the source's numbers are others than Spark's."""
    from kip848_client.spark import Pipeline

    settings = _settings(mock_broker, tmp_path, run={"trigger": "0 seconds"})
    with Pipeline(settings, spark=spark).start() as running:
        while not running.status().batches:
            assert not running.wait(timeout_s=0.1)
        _produce(mock_broker, range(30))
        while running.status().rows != 30:
            assert not running.wait(timeout_s=0.1)
    _produce(mock_broker, range(30, 40))
    settings = _settings(mock_broker, tmp_path)
    assert Pipeline(settings, spark=spark).start().wait(120)
    assert sorted(row["id"] for row in _rows(tmp_path / "out")) == list(range(40))
    assert _committed(mock_broker) == 40


def _gives_a_number(_frame: object) -> Any:
    return 7


def test_what_fails_is_told_and_nothing_is_committed_of_its_batch(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    from kip848_client.spark import Pipeline
    from kip848_client.spark.pipeline import PipelineFailed

    _produce(mock_broker, range(60))
    mock_broker.produce("orders", b"poison", partition=1)
    settings = _settings(mock_broker, tmp_path, source={"max_records_per_batch": 30})
    with pytest.raises(PipelineFailed, match="topic orders, partition 1, offset 20 cannot be dec"):
        Pipeline(settings, spark=spark).start().wait(120)
    rows = len(_rows(tmp_path / "out"))
    assert _committed(mock_broker) == rows == 30
    assert not list((tmp_path / "out" / "_staging").iterdir())

    def raises_in_the_second_batch(frame: DataFrame) -> DataFrame:
        if not frame.isEmpty():
            raise ZeroDivisionError("mine")
        return frame

    calm = _settings(mock_broker, tmp_path, decode={"on_error": "drop"}, transform={"sql": None})
    _produce(mock_broker, range(60, 70))
    with pytest.raises(PipelineFailed, match="the transform raised ZeroDivisionError: mine"):
        Pipeline(calm, spark=spark, transform=raises_in_the_second_batch).start().wait(120)
    assert _committed(mock_broker) == 30
    with pytest.raises(PipelineFailed, match="the transform returned a int, not a DataFrame"):
        Pipeline(calm, spark=spark, transform=_gives_a_number).start()
    for part, told in (
        ({"transform": {"sql": "select nothing from records"}}, "nothing"),
        ({"decode": {"columns": "id what"}}, "decode.columns"),
        ({"sink": {"partition_by": ["day"]}}, "sink.partition_by has 'day'"),
        ({"transform": {"sql": "select 1 a, 2 A"}}, "two columns 'a'"),
    ):
        with pytest.raises((ConfigError, PipelineFailed), match=told):
            Pipeline(_settings(mock_broker, tmp_path, **part), spark=spark).start()
    ended = Pipeline(_settings(mock_broker, tmp_path, decode={"on_error": "drop"}), spark=spark)
    assert ended.start().wait(120)
    assert sorted(row["id"] for row in _rows(tmp_path / "out")) == list(range(70))
    assert _committed(mock_broker) == 71


def _wait_for_rows(running: Running) -> None:
    for _ in range(200):
        if running.wait(timeout_s=0.3) or running.status().rows:
            return


def test_the_page_does_what_it_says(
    spark: SparkSession,
    mock_broker: BrokerThread,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert spark.version
    [page] = [each for each in PAGES if name_of(each) == "pipeline"]
    settings, *_ = re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    replaced = {"localhost:9092": mock_broker.bootstrap, "/data": str(tmp_path)}
    for old, new in replaced.items():
        settings = settings.replace(old, new)
    (tmp_path / "pipeline.toml").write_text(settings)
    for number in range(30):
        value = json.dumps({"id": number, "customer": "c", "amount": 1.5}).encode()
        mock_broker.produce("orders", value, partition=number % 3)
    printed: list[Any] = []
    monkeypatch.setattr("builtins.print", printed.append)
    monkeypatch.chdir(tmp_path)
    for source in snippets(page):
        waiting = source.replace("running.wait(timeout_s=30)", "wait_for_rows(running)")
        exec(waiting, {"wait_for_rows": _wait_for_rows})  # it is what it tests
    assert printed[0].state == "starting"
    assert {row["amount"] for row in _rows(tmp_path / "orders")} == {1.5}
    assert len(_rows(tmp_path / "orders")) == 30


def test_sparks_own_source_is_another_engine(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    from kip848_client.spark import Pipeline

    _produce(mock_broker, range(90))
    settings = _settings(mock_broker, tmp_path, source={"engine": "jvm"})
    with skip_without_kafka():
        add_kafka_source(spark)
    for number in (90, 120):
        running = Pipeline(settings, spark=spark).start()
        assert running.wait(120)
        assert sorted(row["id"] for row in _rows(tmp_path / "out")) == list(range(number))
        assert _committed(mock_broker) == number
        status = running.status()
        assert (status.state, status.ownership, status.lag) == ("stopped", "exclusive", 0)
        _produce(mock_broker, range(number, number + 30))
    endless = settings | {"run": settings["run"] | {"trigger": "0 seconds"}}
    with Pipeline(endless, spark=spark).start() as running:
        while running.status().partitions is None:  # until Spark has told of a batch
            assert not running.wait(timeout_s=0.2)
        assert (running.status().state, running.status().partitions) == ("running", 3)
    assert _committed(mock_broker) == 150
    with pytest.raises(ConfigError, match=r"source.engine changed from 'jvm' to 'python'"):
        Pipeline(_settings(mock_broker, tmp_path), spark=spark).start()


def test_rows_go_to_a_topic_and_to_what_else_spark_can_write(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    from kip848_client.spark import Pipeline

    _produce(mock_broker, range(30))
    settings = _settings(mock_broker, tmp_path)
    settings["transform"] = {"sql": "select cast(value.id as string) value from records"}
    settings["sink"] = {"format": "kip848", "topic": "invoices"}
    assert Pipeline(settings, spark=spark).start().wait(120)
    values = [int(record.value or b"") for record in mock_broker.records("invoices")]
    assert sorted(values) == list(range(30))
    assert _committed(mock_broker) == 30
    settings = _settings(mock_broker, tmp_path, source={"group": "h"})
    settings["run"]["checkpoint"] += "-2"
    settings["sink"] = {"format": "csv", "path": str(tmp_path / "csv")}
    assert Pipeline(settings, spark=spark).start().wait(120)
    assert spark.read.csv(str(tmp_path / "csv")).count() == 30
    settings["run"]["checkpoint"] += "-3"
    with pytest.raises(ConfigError, match=r"was written with checkpoint"):
        Pipeline(settings, spark=spark).start()
    (tmp_path / "descriptors").write_bytes(b"")
    schema = {"schema_file": str(tmp_path / "descriptors"), "message": "r"}
    settings["decode"] = {"format": "protobuf", **schema}
    settings["sink"] = {"path": str(tmp_path / "protobuf")}
    with pytest.raises(ConfigError, match=r"run.packages = \['org.apache.spark:spark-proto"):
        Pipeline(settings, spark=spark).start()


_AVRO: Final[dict[str, Any]] = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": ["null", "long"]},
        {"name": "name", "type": ["null", "string"]},
    ],
}


def _avro(row: dict[str, Any]) -> bytes:
    """Of small numbers and short texts: the index of the type first, all doubled (zigzag)."""
    if row["id"] is None:
        return b"\0\0"
    name: bytes = row["name"].encode()
    return bytes([2, 2 * row["id"], 2, 2 * len(name)]) + name


def test_avro_is_decoded_and_what_is_none_is_buried(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    """Spark itself makes a row of nulls of what is no Avro; one that was written is another."""
    from kip848_client.spark import Pipeline

    rows = [{"id": number, "name": f"n{number}"} for number in range(20)]
    rows += [{"id": None, "name": None}]
    for row in rows:
        mock_broker.produce("orders", b"\0\0\0\0\7" + _avro(row), partition=1)
    for value in (b"\0\0\0\0\7\x02", b"\0\0\0\0\7\x09", b"", None):
        mock_broker.produce("orders", value, partition=2)
    (tmp_path / "schema.avsc").write_text(json.dumps(_AVRO))
    settings = _settings(mock_broker, tmp_path)
    settings["decode"] = {
        "format": "avro",
        "schema_file": str(tmp_path / "schema.avsc"),
        "skip_bytes": 5,
        "on_error": "dead-letter",
        "dead_letter": str(tmp_path / "dead"),
    }
    with skip_without_kafka():
        add_avro(spark)
    assert Pipeline(settings, spark=spark).start().wait(120)
    found = [each for each in _rows(tmp_path / "out") if each["partition"] == 1]
    found.sort(key=lambda each: each["offset"])
    assert [{"id": each["id"], "name": each["name"]} for each in found] == rows
    assert [each["id"] for each in _rows(tmp_path / "out") if each["partition"] == 2] == [None]
    buried = {each["offset"]: each["value"] for each in _rows(tmp_path / "dead")}
    assert buried == {0: b"\0\0\0\0\7\x02", 1: b"\0\0\0\0\7\x09", 2: b""}
    assert _committed(mock_broker) == 25


def test_brokers_that_cannot_be_reached_end_it(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path
) -> None:
    from kip848_client.spark import Pipeline
    from kip848_client.spark.pipeline import PipelineFailed

    nowhere = {
        "bootstrap_servers": "127.0.0.1:1",
        "options": {"kafkaConsumer.pollTimeoutMs": "2000"},
    }
    settings = _settings(mock_broker, tmp_path, source=nowhere)
    with pytest.raises(PipelineFailed, match=r"127\.0\.0\.1"):
        Pipeline(settings, spark=spark).start().wait(120)
    assert _rows(tmp_path / "out") == []


@pytest.mark.mock_broker(topics=kills.TOPICS, config=kills.BROKER)
def test_a_pipeline_that_is_killed_begins_again_and_each_record_is_there_once(
    mock_broker: BrokerThread, tmp_path: Path
) -> None:
    """``python -m tests.spark.kills --kills 20`` does it more often."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, but there is no java")
    verdict, told, sums = asyncio.run(kills.run(mock_broker.bootstrap, tmp_path, 1, 0))
    assert verdict.is_good, verdict
    assert sums[0] == sums[1]
    [why] = told
    assert "the pipeline ended with code 1" in why
    assert "Spark's process (the JVM) has ended" in why


@pytest.mark.parametrize("ownership", ["shared", "exclusive"])
def test_a_bounded_run_ends_where_it_should_and_the_next_goes_on(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path, ownership: str
) -> None:
    from kip848_client.spark import Pipeline

    begin_ms = 1_795_716_000_000  # 2026-11-26T18:00:00Z
    for number in range(30):
        value = json.dumps({"id": number}).encode()
        record = NewRecord(value, timestamp_ms=begin_ms + number * 60_000)
        mock_broker.produce("orders", record, partition=number % 3)

    def ids_until(until: Any) -> list[int]:
        settings = _settings(mock_broker, tmp_path, source={"ownership": ownership})
        settings["run"] = {"checkpoint": settings["run"]["checkpoint"], "until": until}
        assert Pipeline(settings, spark=spark).start().wait(120)
        return sorted(row["id"] for row in _rows(tmp_path / "out"))

    assert ids_until("2026-11-26T18:09:30Z") == list(range(10))
    assert ids_until("2026-11-26T18:05:00Z") == list(range(10)), "it is there already"
    assert ids_until({"orders": {"0": 8, "1": 8, "2": 4}}) == sorted(
        [*range(0, 24, 3), *range(1, 24, 3), *range(2, 12, 3)]
    )
    assert ids_until("2100-01-01T00:00:00Z") == list(range(30))
    assert _committed(mock_broker) == 30


def test_the_demo_runs_with_nothing_but_java(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, but there is no java")
    with tempfile.TemporaryDirectory() as folder:  # shorter than pytest's: a socket is in there
        monkeypatch.setattr(tempfile, "tempdir", folder)
        assert main(["pipeline", "demo", "--seconds", "4"]) == 0
        assert list(Path(folder).iterdir()) == []  # also of the pipeline that was killed
    shown = capsys.readouterr().out
    assert re.search(r"lost 0  duplicated 0\nok: each record is there once\n$", shown), shown
    for event in ("another consumer joins", "the other consumer leaves", "is killed"):
        assert event in shown

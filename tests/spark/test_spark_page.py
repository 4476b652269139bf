"""The snippets of the page about Spark, as they stand there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mock_coordinator.threaded import BrokerThread
from tests.pages._snippets import PAGES, name_of, snippets
from tests.support.pytest_kafka import skip_without_kafka
from tests.support.spark_jars import add_kafka_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.mock_broker(topics={"orders": 3}),
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_the_snippets_run(
    spark: SparkSession,
    mock_broker: BrokerThread,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with skip_without_kafka():
        add_kafka_source(spark)
    for number in range(30):
        mock_broker.produce("orders", b"%d" % number, partition=number % 3)
    printed: list[Any] = []
    monkeypatch.setattr("builtins.print", printed.append)
    [page] = [each for each in PAGES if name_of(each) == "spark"]
    names: dict[str, Any] = {"spark": spark}
    for source in snippets(page):
        replaced = source.replace("localhost:9092", mock_broker.bootstrap)
        exec(replaced.replace("/data", str(tmp_path)), names)  # it is what it tests
    assert spark.read.parquet(str(tmp_path / "orders")).count() == 30
    assert printed[0]["ownership"] == "shared"
    assert spark.read.parquet(str(tmp_path / "by-kafka")).count() == 30
    assert printed[-1] == 0

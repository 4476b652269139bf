"""A pipeline's checkpoint and output after one batch of the records of ``data_folder``. Needs Java,
and Spark gives its query and its files new ids each time."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mock_coordinator.threaded import BrokerThread
from tests.support.stored import data_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CHECKPOINT", "FOLDER", "GROUP", "OUTPUT", "make", "make_in", "run"]

FOLDER: Final = "spark"
CHECKPOINT: Final = "checkpoint"
OUTPUT: Final = "out"
GROUP: Final = "pipeline"
_COLUMNS: Final = "cast(value as string) value, partition, offset"


def run(spark: SparkSession, data: Path, folder: Path, *more: bytes) -> None:
    """Begin the pipeline with these folders, or continue it, with more records in partition 1, and
    run until it has read all. The broker writes into ``data``."""
    from kip848_client.spark import Pipeline

    with BrokerThread({}, data_dir=data, config=data_folder.CONFIG, profile="4.3") as broker:
        if more:
            broker.produce(data_folder.TOPIC, *more, partition=1)
        settings: dict[str, dict[str, Any]] = {
            "source": {
                "bootstrap_servers": broker.bootstrap,
                "topics": [data_folder.TOPIC],
                "group": GROUP,
            },
            "transform": {
                "sql": "select cast(value as string) value, partition, offset from records"
            },
            "sink": {"path": str(folder / OUTPUT)},
            "run": {"checkpoint": str(folder / CHECKPOINT), "trigger": "available-now"},
        }
        assert Pipeline(settings, spark=spark).start().wait(120)


def make_in(spark: SparkSession, folder: Path) -> None:
    """Write the folders; the data folder must be there."""
    target = folder / FOLDER
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as copy:
        data = Path(copy) / data_folder.FOLDER
        shutil.copytree(folder / data_folder.FOLDER, data)
        run(spark, data, target)
    (target / CHECKPOINT / ".driver.lock").unlink()  # the number of a process
    (target / OUTPUT / "._driver.json.crc").unlink()
    driver = target / OUTPUT / "_driver.json"
    driver.write_text('{"host": "here", "pid": 1, "token": "0123456789abcdef"}\n', encoding="utf-8")


def make(folder: Path) -> None:
    """The same, with a Spark of its own."""
    from tests.spark.programs import session

    spark = session()
    try:
        make_in(spark, folder)
    finally:
        spark.stop()

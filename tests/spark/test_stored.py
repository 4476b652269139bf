"""A pipeline goes on with the folders that an earlier state of the repository has written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kip848_client.records._arrow import pyarrow
from tests.support.stored import FIXTURES, data_folder, spark_folders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def _rows(folder: Path) -> set[tuple[str, int, int]]:
    pyarrow()
    import pyarrow.dataset as ds

    rows = ds.dataset(str(folder)).to_table().to_pylist()
    assert len({(row["partition"], row["offset"]) for row in rows}) == len(rows)
    return {(row["value"], row["partition"], row["offset"]) for row in rows}


def test_a_pipeline_goes_on_with_its_folders(spark: SparkSession, tmp_path: Path) -> None:
    folder, data = tmp_path / "spark", tmp_path / "data"
    shutil.copytree(FIXTURES / spark_folders.FOLDER, folder)
    shutil.copytree(FIXTURES / data_folder.FOLDER, data)
    before = _rows(folder / spark_folders.OUTPUT)
    assert before == {
        (value.decode(), partition, offset)
        for partition, values in data_folder.PRODUCED.items()
        for offset, value in enumerate(values)
    }
    spark_folders.run(spark, data, folder, b"new", b"newer")
    after = _rows(folder / spark_folders.OUTPUT)
    assert after == before | {("new", 1, 1), ("newer", 1, 2)}
    assert (folder / spark_folders.OUTPUT / "batch_id=1").is_dir()

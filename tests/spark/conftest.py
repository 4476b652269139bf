"""A Spark session for the tests of a worker, and where it cannot be, the reason."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark import jvm
from tests.spark.books import Books
from tests.support.pytest_everything import is_everything
from tests.support.pytest_kafka import skip_without_kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.real_kafka import RealKafka


@pytest.fixture(scope="session", autouse=True)
def _short_lived_jvms(pytestconfig: pytest.Config) -> Iterator[None]:
    """Also of the programs that tests begin."""
    if shutil.which("java") is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, text in jvm.environment(may_make=is_everything(pytestconfig)).items():
            patch.setenv(name, text)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """``local[2]``. The format is found by itself: nobody registers it."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, but there is no java")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("kip848 tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def books(
    real_kafka_pool: Callable[[str], RealKafka],
    release: str,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> Books:
    """A topic of Kafka for one test."""
    with skip_without_kafka():
        kafka = real_kafka_pool(release)
    return Books(kafka, unique, tmp_path)

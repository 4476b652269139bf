"""How the JVMs of Spark are started in tests: for a life of seconds, not of days.

A JVM of a test does little more than begin. With the first of its two compilers alone and one
thread that collects what is left over, it gets as far with half of the processor's time; with the
archive of what it has to load (``tests.support.class_archive``), with a quarter of it.

``python -m tests.spark.jvm`` is the program whose JVM leaves that archive when it ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mock_coordinator.threaded import BrokerThread
from tests.spark.programs import session
from tests.spark.streams import numbers_in, source, to_parquet
from tests.support.class_archive import ClassArchive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SHORT_LIVED", "environment"]

SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_ALL: Final = ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS")
"""Drivers and Connect's server; masters and workers."""
_PATIENCE_S: Final = 150


def environment(*, may_make: bool) -> dict[str, str]:
    """What to set before anything of Spark begins; whether the archive may be made now, which takes
    most of a minute. Without one, or with one that does not fit, a JVM does without."""
    with tempfile.TemporaryDirectory() as folder:
        archive = _archive(Path(folder))
        if archive.is_missing and may_make:
            said = " ".join([*SHORT_LIVED, *archive.options()])
            with contextlib.suppress(subprocess.SubprocessError):  # it is worth no more patience
                subprocess.run(
                    [sys.executable, "-W", "ignore", "-m", "tests.spark.jvm"],
                    env={**os.environ, "SPARK_SUBMIT_OPTS": said},
                    cwd=Path(__file__).parents[2],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=_PATIENCE_S,
                    check=True,
                )
                archive.keep()
            archive = _archive(Path(folder))
    words = [*SHORT_LIVED, *([] if archive.is_missing else archive.options())]
    return dict.fromkeys(_ALL, " ".join(words)) | {"SPARK_LAUNCHER_OPTS": " ".join(SHORT_LIVED)}


def _archive(folder: Path) -> ClassArchive:
    import pyspark

    return ClassArchive(Path(pyspark.__file__).parent / "jars", folder)


def _main() -> None:
    """Do once what the tests do, so that its classes are loaded; and see the JVM end."""
    spark = session()
    with BrokerThread(topics={"a": 3}) as broker, tempfile.TemporaryDirectory() as folder:
        broker.produce("a", b"0", partition=0)
        frame = source(spark, broker.bootstrap, kafka_group_id="g", ownership="shared")
        to_parquet(frame, Path(folder), availableNow=True).awaitTermination()
        numbers_in(spark, Path(folder))
    _end(spark)


def _end(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway  # its JVM ends when its input does
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_PATIENCE_S)


if __name__ == "__main__":
    _main()

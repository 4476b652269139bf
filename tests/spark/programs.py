"""Programs with a Spark of their own, which tests kill: the program, its JVM, the workers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONUNBUFFERED": "1",
    "SPARK_LOCAL_IP": "127.0.0.1",
}

__all__ = ["kill", "session", "start", "wait_for"]


def session() -> SparkSession:
    """Spark, in the program."""
    from pyspark.sql import SparkSession

    os.environ |= _ENVIRONMENT
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def start(module: str, *arguments: str) -> subprocess.Popen[str]:
    """Begin a module as a program, in a session of processes of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, **_ENVIRONMENT},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    """The line of its output that begins so. Raises ``AssertionError`` when it ends before."""
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if line.startswith(text):
            return line
    raise AssertionError(f"the program ended by itself: {process.wait()}, {said}")


def kill(process: subprocess.Popen[str]) -> None:
    """As a machine does that loses its power."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for each in _of_session(process.pid):  # Spark's daemon has a group of its own
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:  # else the collector closes it amid another test, with a warning
        process.stdout.close()


def _of_session(number: int) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == number:
                    found.append(int(entry.name))
    return found

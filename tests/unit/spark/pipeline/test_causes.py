"""Why a query ended, in a sentence."""

from __future__ import annotations

import re

import pytest

from kip848_client.spark.pipeline.core._causes import cause_of
from kip848_client.spark.pipeline.core._status import Progress

_FULL = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure
org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/x.
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""
_OURS = """\
org.apache.spark.SparkException: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when
  File "/x/kip848_client/spark/_loop.py", line 44, in call
    raise
kip848_client.errors.BootstrapFailed: no broker of 127.0.0.1:1 answered

The above exception was the direct cause of the following exception:

kip848_client.spark.source.core._planning.DataLost: a-0 was deleted: set failOnDataLoss=false
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (_FULL, "a disk is full: .* Spark's error: Caused by: java.io.IOException: No space"),
        (_OURS, "^DataLost: a-0 was deleted: set failOnDataLoss=false$"),
        ("x\n(Read-only file system)\ny", "read-only file system"),
        ("java.io.FileNotFoundException: /a (Permission denied)", "must not write"),
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update", "another driver runs"),
        ("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta", "run.packages"),
        (
            "x [USER_RAISED_EXCEPTION] kip848: poison record: topic a, partition 1, offset 7 SQL",
            r"^the record at topic a, partition 1, offset 7 cannot be decoded .*dead-letter",
        ),
        ("Traceback\n  x\nValueError: no such thing\n", "^ValueError: no such thing$"),
        ("\n [SOMETHING] is wrong\n at x", r"^\[SOMETHING\] is wrong$"),
        ("", "gives no reason"),
    ],
)
def test_the_cause_is_told(text: str, told: str) -> None:
    assert re.search(told, cause_of(text)), cause_of(text)


def test_rates_are_those_of_the_last_ten_seconds() -> None:
    progress = Progress()
    progress.ended(0, 1_000, 300, now_ms=1_000)
    progress.ended(1, 3_000, 200, now_ms=6_000)
    assert progress.rate(6_000) == 400
    assert progress.rate(11_000) == 300
    assert progress.rate(99_000) == 0
    assert (progress.batches, progress.records, progress.last_batch_ms) == (2, 4_000, 200)

"""Pipelines on more than one process: executors without this package, one of which is killed."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.spark.clusters import run

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17"),
]


@pytest.mark.parametrize("is_local", [True, False], ids=["local-cluster", "standalone"])
def test_an_executor_is_killed_and_each_record_is_there_once(
    tmp_path: Path, is_local: bool
) -> None:
    """``python -m tests.spark.clusters --kills 10`` does it more often."""
    verdict = asyncio.run(run(tmp_path, 1, 0, is_local=is_local))
    assert verdict.is_good, verdict

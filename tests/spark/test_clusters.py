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


def test_a_worker_is_killed_and_each_record_is_there_once(tmp_path: Path) -> None:
    """``python -m tests.spark.clusters --kills 10`` does it more often, and with ``--local`` to the
    executors of ``local-cluster``; ``python -m tests.long`` does both."""
    verdict = asyncio.run(run(tmp_path, 1, 0, is_local=False))
    assert verdict.is_good, verdict

"""An old confluent-kafka beside the newer one that is installed: as an application that was not
updated has it.

``old_librdkafka()`` gives a folder that comes first in ``PYTHONPATH`` of a process of its own. It
is filled once, with pip, and kept in the user's cache folder as the jars of Kafka are.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest

from tests.support.kafka_jars import cache_root

__all__ = ["OLD_CONFLUENT", "old_librdkafka"]

OLD_CONFLUENT: Final = "confluent-kafka==2.8.*"
"""With librdkafka 2.8, which has no usable KIP-848 yet."""

_REQUIRED: Final = "KIP848_REQUIRE_KAFKA"
_TIMEOUT_S: Final = 300


def old_librdkafka() -> Path:
    """The folder. Skips the test where the package cannot be had, and fails it where the
    environment requires foreign clients to be tested."""
    folder = cache_root() / f"confluent-kafka-2.8-py{sys.version_info[0]}.{sys.version_info[1]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _install(folder)
    return folder


def _install(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        target = Path(scratch) / "target"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--target", str(target), OLD_CONFLUENT]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
        if done.returncode == 0:
            target.rename(folder)
            return
    said = (done.stderr or done.stdout).strip().splitlines()
    reason = f"pip cannot install {OLD_CONFLUENT}: {said[-1] if said else done.returncode}"
    if os.environ.get(_REQUIRED):
        pytest.fail(f"{_REQUIRED} is set, and {reason}")
    pytest.skip(reason)

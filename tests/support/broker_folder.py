"""Where the brokers of tests and benchmarks keep their data: in memory, if the machine lets them.

A broker writes and maps files of its own for each partition. On a disk that takes longer, and how
much longer differs from machine to machine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Final

__all__ = ["broker_folder"]

_IN_MEMORY: Final = Path("/dev/shm")
_ROOM_BYTES: Final = 4 << 30


@contextlib.contextmanager
def broker_folder() -> Generator[Path]:
    """A folder that goes with the block. ``TMPDIR`` says where, if it is set."""
    with tempfile.TemporaryDirectory(prefix="kip848-kafka-", dir=_parent()) as folder:
        yield Path(folder)


def _parent() -> Path | None:
    if "TMPDIR" in os.environ or not os.access(_IN_MEMORY, os.W_OK | os.X_OK):
        return None
    return _IN_MEMORY if shutil.disk_usage(_IN_MEMORY).free >= _ROOM_BYTES else None

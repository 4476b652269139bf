"""What the processes of a torture have in common: names, times, and how one tells what it does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

__all__ = [
    "END",
    "FENCED_EXIT",
    "FREEZE_S",
    "GROUP",
    "IN",
    "MAX_POLL_MS",
    "OUT",
    "PARTITIONS",
    "READERS",
    "SESSION_MS",
    "TRANSACTION_MS",
    "UNREACHABLE_EXIT",
    "Diary",
    "diary_entries",
]

IN: Final = "in"
OUT: Final = "out"
GROUP: Final = "copiers"
READERS: Final = "readers"
"""The group of those that only read."""
PARTITIONS: Final = 3

SESSION_MS: Final = 3_000
"""A member that is silent for so long is removed from its group."""
TRANSACTION_MS: Final = 3_000
"""A transaction that is open for so long is aborted by its coordinator."""
MAX_POLL_MS: Final = 4_000
"""A reader that keeps records for so long without asking for more loses its partitions."""
FREEZE_S: Final = 6.0
"""How long a process is frozen: longer than both, and than the coordinator takes to look."""

END: Final = b"end"
"""What is written to ``out`` last of all."""
FENCED_EXIT: Final = 3
"""The exit code of a processor whose transactional id another one has."""
UNREACHABLE_EXIT: Final = 4
"""That of a process which reached no broker at its start: who runs it starts it again."""


class Diary:
    """A file that a process appends lines to: whatever kills it, all but the last one are whole."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def __call__(self, what: str, **more: Any) -> None:
        """Note something."""
        os.write(self._file, json.dumps({"what": what, **more}).encode() + b"\n")


def diary_entries(path: Path) -> list[dict[str, Any]]:
    """What was noted, a line that is not whole left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]

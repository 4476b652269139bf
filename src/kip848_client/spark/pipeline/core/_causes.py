"""Why a query ended, in one sentence: Spark's own error has about a hundred lines.

Pure: text in, text out.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["cause_of"]

_OURS: Final = re.compile(r"^(?:\w+\.)*?kip848_client\.[\w.]+?\.(\w+): (.+)$", re.MULTILINE)
_POISON: Final = re.compile(r"kip848: poison record: (topic \S+, partition \d+, offset \d+)")
_PYTHON: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception)): (.+)$", re.MULTILINE)
_KNOWN: Final = (
    (
        re.compile(r"No space left on device|Disk quota exceeded|File too large"),
        "a disk is full: free space for the output, the checkpoint or temporary files",
    ),
    (
        re.compile(r"Read-only file system"),
        "the output or the checkpoint is on a read-only file system: mount it writable",
    ),
    (
        re.compile(r"Permission denied|AccessControlException|AccessDeniedException"),
        "this user must not write the output or the checkpoint: grant the permission",
    ),
    (
        re.compile(r"CONCURRENT_STREAM_LOG_UPDATE"),
        "another driver runs with this checkpoint: run only one",
    ),
    (
        re.compile(r"DATA_SOURCE_NOT_FOUND|Failed to find (?:the )?data source"),
        "Spark does not have this format: add its package to run.packages",
    ),
)


def cause_of(text: str) -> str:
    """The cause and a remedy, as far as the text of Spark's error shows them."""
    poison = _POISON.search(text)
    if poison is not None:
        return (
            f"the record at {poison[1]} cannot be decoded (decode.format). Fix the schema, or skip "
            "such records: decode.on_error = 'drop' or 'dead-letter'"
        )
    for pattern, meaning in _KNOWN:
        found = pattern.search(text)
        if found is not None:
            return f"{meaning}. Spark's error: {_line_around(text, found.start())}"
    ours = _OURS.findall(text)
    if ours:
        name, message = ours[-1]
        return f"{name}: {message.strip()}"
    python = _PYTHON.findall(text)
    if python:
        name, message = python[-1]
        return f"{name}: {message.strip()}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "Spark gives no reason"


def _line_around(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start : len(text) if end < 0 else end].strip()[:500]

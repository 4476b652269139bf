"""Why a query ended, in a sentence: Spark's own account is some hundred lines of two languages.

Pure: texts in, a text out.
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
        "a disk is full: make room for the output, the checkpoint or what is temporary",
    ),
    (
        re.compile(r"Read-only file system"),
        "the output or the checkpoint is on a file system that is read-only: mount it for writing",
    ),
    (
        re.compile(r"Permission denied|AccessControlException|AccessDeniedException"),
        "the output or the checkpoint may not be written by this user: give it the right",
    ),
    (
        re.compile(r"CONCURRENT_STREAM_LOG_UPDATE"),
        "another driver runs with this checkpoint: let only one run",
    ),
    (
        re.compile(r"DATA_SOURCE_NOT_FOUND|Failed to find (?:the )?data source"),
        "Spark does not have this format: name its package by run.packages",
    ),
)


def cause_of(text: str) -> str:
    """What happened, who said so, the way out, as far as they can be told."""
    poison = _POISON.search(text)
    if poison is not None:
        return (
            f"the record at {poison[1]} cannot be decoded (decode.format). Repair the schema, or "
            "have such records left out: decode.on_error = 'drop' or 'dead-letter'"
        )
    for pattern, meaning in _KNOWN:
        found = pattern.search(text)
        if found is not None:
            return f"{meaning}. Spark says: {_line_around(text, found.start())}"
    ours = _OURS.findall(text)
    if ours:
        name, told = ours[-1]
        return f"{name}: {told.strip()}"
    python = _PYTHON.findall(text)
    if python:
        name, told = python[-1]
        return f"{name}: {told.strip()}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "Spark does not say why"


def _line_around(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[start : len(text) if end < 0 else end].strip()[:500]

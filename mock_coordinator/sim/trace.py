"""What happened, one aligned line an event, and a digest of it all.

The digest is what two runs of one seed are compared by, on one machine or two, under any
PYTHONHASHSEED. Only the last lines are kept; a sink may have them all.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from kip848_client.core.types import TopicIdPartition

__all__ = ["Trace", "shown_partitions"]

LAST_LINES: Final = 50


class Trace:
    """The trace of one run. Times are shown from the beginning of the run."""

    def __init__(self, start_ms: int, sink: Callable[[str], None] | None = None) -> None:
        self._start_ms = start_ms
        self._sink = sink
        self._hash = hashlib.sha256()
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self.lines = 0

    def add(self, now_ms: int, who: str, what: str, details: str = "") -> None:
        """One event: who it happened to, what it was in a word, and the details."""
        line = f"{(now_ms - self._start_ms) / 1000:>9.3f} {who:<8} {what:<12} {details}".rstrip()
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        self._last.append(line)
        self.lines += 1
        if self._sink is not None:
            self._sink(line)

    @property
    def last(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._last)

    @property
    def digest(self) -> str:
        """SHA-256 of all lines so far."""
        return self._hash.hexdigest()


def shown_partitions(partitions: Iterable[TopicIdPartition]) -> str:
    """Partitions in short, e.g. ``0a:0,1,2 1f:3``: the last byte of each topic id, in hex."""
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(partition)
    return " ".join(f"{t[-1:].hex()}:{','.join(map(str, ps))}" for t, ps in by_topic.items()) or "-"

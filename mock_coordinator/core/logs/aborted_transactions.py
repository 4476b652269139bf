"""Ranges of a partition's log that belong to aborted transactions, so that read_committed consumers
can leave out their records (KIP-98).

A real log keeps this list in a file beside each segment and selects the entries for a fetch with
its sparse offset index: a fetch gets every transaction that begins below the first index entry
after the bytes that it returns. ``OffsetIndex`` has the entries that a real index would have.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

__all__ = ["AbortedTransaction", "AbortedTransactions", "OffsetIndex"]

_INTERVAL_BYTES: Final = 4096
"""Kafka's default of ``index.interval.bytes``."""


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """From the first record to the marker. ``last_stable_offset`` is the log's when it ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedTransactions:
    """All aborted transactions of a partition, in order of their markers."""

    def __init__(self) -> None:
        self._all: list[AbortedTransaction] = []
        self._last_offsets: list[int] = []

    def add(self, aborted: AbortedTransaction) -> None:
        """One more; its marker is the newest."""
        self._all.append(aborted)
        self._last_offsets.append(aborted.last_offset)

    def forget_before(self, offset: int) -> None:
        """Those whose marker is below an offset are gone, with their records."""
        gone = bisect_left(self._last_offsets, offset)
        del self._all[:gone], self._last_offsets[:gone]

    def between(self, offset: int, end: int) -> tuple[AbortedTransaction, ...]:
        """Those that a reader of ``offset`` up to ``end`` (not included) can meet."""
        found: list[AbortedTransaction] = []
        for aborted in self._all[bisect_left(self._last_offsets, offset) :]:
            if aborted.first_offset < end:
                found.append(aborted)
            if aborted.last_stable_offset >= end:
                break
        return tuple(found)


class OffsetIndex:
    """Where in the log, counted in bytes, some of the offsets are."""

    def __init__(self) -> None:
        self._positions: list[int] = []
        self._offsets: list[int] = []
        self._since_entry = 0

    def appended(self, position: int, size: int, last_offset: int) -> None:
        """A batch of ``size`` bytes was appended at ``position``."""
        if self._since_entry > _INTERVAL_BYTES:
            self._positions.append(position)
            self._offsets.append(last_offset)
            self._since_entry = 0
        self._since_entry += size

    def offset_from(self, position: int) -> int | None:
        """The offset of the first entry at or behind a position; ``None`` when there is none."""
        index = bisect_left(self._positions, position)
        return self._offsets[index] if index < len(self._offsets) else None

"""Ranges of offsets: how much a micro-batch takes of each partition, and which task reads it.

Pure: numbers in, numbers out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kip848_client.core.types import TopicPartition

__all__ = ["OffsetRange", "limited", "packed"]

_SMALLEST_PIECE: Final = 0.1
"""Of a task's share: less than this of a range is not read by a task of its own."""


class OffsetRange(NamedTuple):
    """The offsets of one partition from ``start`` up to, but not with, ``end``."""

    tp: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets. Records may be fewer: compaction and transactions leave gaps."""
        return self.end - self.start


def limited(
    available: Mapping[TopicPartition, tuple[int, int]], limit: int | None
) -> tuple[OffsetRange, ...]:
    """What to take of what is available (from, to), sorted by partition: all of it, or ``limit``
    offsets, of each partition in proportion to what it has, as Spark's own Kafka source does.

    What rounding leaves goes to the partitions that have most left, so that ``limit`` offsets are
    taken whenever there are so many.
    """
    wanted = {
        tp: OffsetRange(tp, start, end)
        for tp, (start, end) in sorted(available.items())
        if end > start
    }
    total = sum(each.size for each in wanted.values())
    if limit is None or total <= limit:
        return tuple(wanted.values())
    taken = {tp: each.size * limit // total for tp, each in wanted.items()}
    missing = limit - sum(taken.values())
    for tp in sorted(wanted, key=lambda tp: (taken[tp] - wanted[tp].size, tp))[:missing]:
        taken[tp] += 1
    return tuple(
        OffsetRange(tp, each.start, each.start + taken[tp])
        for tp, each in wanted.items()
        if taken[tp]
    )


def packed(
    ranges: Sequence[OffsetRange], tasks: int, longest: int | None = None
) -> tuple[tuple[OffsetRange, ...], ...]:
    """The ranges by task: at most ``tasks`` of them, each with about the same number of offsets.

    A range is split where it does not fit: offsets are explicit, so that two tasks can read one
    partition. With ``longest`` there are as many tasks as it takes for none to have more offsets.
    No task has two ranges of one partition.
    """
    whole = [each for each in ranges if each.size > 0]
    total = sum(each.size for each in whole)
    if not total:
        return ()
    if longest is not None:
        tasks = max(tasks, -(-total // longest))
    tasks = min(tasks, total)
    smallest = 0 if longest is not None else int(-(-total // tasks) * _SMALLEST_PIECE)
    found: list[list[OffsetRange]] = [[]]
    done = 0
    for tp, start, end in whole:
        at = start
        while at < end:
            # Where this task should end. What one has too much or too little is the next one's:
            # else the last would have it all.
            room = -(-total * len(found) // tasks) - done
            if room <= smallest and len(found) < tasks:
                found.append([])
                continue
            is_last = len(found) == tasks
            upto = end if is_last or end - at - room <= smallest else at + room
            found[-1].append(OffsetRange(tp, at, upto))
            done += upto - at
            at = upto
    return tuple(map(tuple, found))

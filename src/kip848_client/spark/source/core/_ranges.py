"""Ranges of offsets: what a micro-batch reads from each partition, and in which task.

Pure: numbers in, numbers out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kip848_client.core.types import TopicPartition

__all__ = ["OffsetRange", "limited", "packed"]

_SMALLEST_PIECE: Final = 0.1
"""A fraction of a task's share: a smaller piece of a range does not get a task of its own."""


class OffsetRange(NamedTuple):
    """The offsets of one partition from ``start`` to ``end``, which is excluded."""

    tp: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets. Records may be fewer: compaction and transactions leave gaps."""
        return self.end - self.start


def limited(
    available: Mapping[TopicPartition, tuple[int, int]], limit: int | None
) -> tuple[OffsetRange, ...]:
    """The ranges to read of those available (from, to), sorted by partition: all, or ``limit``
    offsets, taken from the partitions in proportion to their size, as Spark's own source does.

    The remainder after rounding goes to the partitions that have the most left, so that exactly
    ``limit`` offsets are taken if that many are available.
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

    A range that does not fit is split: offsets are explicit, so two tasks can read one partition.
    With ``longest`` there are enough tasks for none to have more offsets than that. No task has two
    ranges of one partition.
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
            # The offsets left until this task is full. Rounding errors are passed on to the next
            # task: otherwise the last task would get them all.
            left = -(-total * len(found) // tasks) - done
            if left <= smallest and len(found) < tasks:
                found.append([])
                continue
            is_last = len(found) == tasks
            upto = end if is_last or end - at - left <= smallest else at + left
            found[-1].append(OffsetRange(tp, at, upto))
            done += upto - at
            at = upto
    return tuple(map(tuple, found))

"""The tasks of a batch, and the ranges of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kip848_client.spark.source.core._ranges import OffsetRange, packed

if TYPE_CHECKING:
    from kip848_client.spark.source.core._options import SourceOptions

__all__ = ["TaskRanges", "divided", "tasks_of"]

_SMALLEST_TASK: Final = 1_000
"""The least number of offsets for which a task is worth its cost."""


@dataclass(frozen=True, slots=True)
class TaskRanges:
    """The ranges and options of one task."""

    ranges: tuple[OffsetRange, ...]
    options: SourceOptions
    topic_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """The ids of the topics for which the ranges were planned, as far as they are known."""


def divided(
    ranges: Sequence[OffsetRange],
    options: SourceOptions,
    cores: int,
    topic_ids: Mapping[str, str] | None = None,
) -> list[TaskRanges]:
    """The tasks of a batch. ``topic_ids`` are the ids of the topics by name."""
    ids = topic_ids or {}
    found: list[TaskRanges] = []
    for each in packed(ranges, tasks_of(options, ranges, cores), options.longest_task):
        its = {tp.topic: ids[tp.topic] for tp, _, _ in each if tp.topic in ids}
        found.append(TaskRanges(each, options, its))
    return found


def tasks_of(options: SourceOptions, ranges: Sequence[OffsetRange], cores: int) -> int:
    """The number of tasks: the option ``tasks``, otherwise at least ``minPartitions`` (as in Spark,
    one per partition or more), otherwise the number of cores, because the source cannot ask Spark
    for its slots. A task costs about 40 ms, so more tasks than slots only cost
    time, and so does a second task for a small batch."""
    if options.tasks:
        return options.tasks
    if options.least_tasks:
        return max(options.least_tasks, sum(1 for each in ranges if each.size))
    total = sum(each.size for each in ranges)
    return max(1, min(len(ranges), cores, -(-total // _SMALLEST_TASK)))

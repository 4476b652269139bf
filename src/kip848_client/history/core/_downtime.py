"""The table ``partition_downtime``: how long partitions had no owner."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from kip848_client.history.core._ownership import Tenure

__all__ = ["Gap", "PartitionDowntime", "gaps_of", "partition_downtime"]


class PartitionDowntime(NamedTuple):
    """How long one partition had no owner: a row of the table ``partition_downtime``.

    Attributes:
        group_id: Name of the group.
        topic: Name of the topic; of workers the connector.
        partition: Number of the partition; of workers the task, -1 for the connector itself.
        first_owned_ms: When a member owned it first, in milliseconds since 1970.
        last_owned_ms: Until when a member owned it last, in milliseconds since 1970.
        owners: How many members owned it.
        downtime_ms: How long no member owned it between these two, in milliseconds.
        gaps: In how many pieces.
        longest_gap_ms: The longest of them, in milliseconds.
        overlap_ms: How long more than one member owned it, once for each extra member, in
            milliseconds.
    """

    group_id: str
    topic: str
    partition: int
    first_owned_ms: int
    last_owned_ms: int
    owners: int
    downtime_ms: int
    gaps: int
    longest_gap_ms: int
    overlap_ms: int


class Gap(NamedTuple):
    """A time in which a partition had no owner."""

    group_id: str
    topic: str
    partition: int
    start_ms: int
    end_ms: int
    before: str
    """The member that owned it before."""
    after: str
    """The member that owned it after."""
    how: str
    """How the tenure before it ended."""


def gaps_of(owned: Iterable[Tenure]) -> list[Gap]:
    """The times in which a partition had no owner, but had one before and after. ``owned`` is
    sorted."""
    found: list[Gap] = []
    last: Tenure | None = None
    for each in owned:
        if last is None or each[:3] != last[:3]:
            last = each
            continue
        if each.start_ms > last.end_ms:
            times = (last.end_ms, each.start_ms)
            found.append(Gap(*each[:3], *times, last.member_id, each.member_id, last.how))
        if each.end_ms >= last.end_ms:
            last = each
    return found


def partition_downtime(owned: Iterable[Tenure]) -> list[PartitionDowntime]:
    """Compute the table ``partition_downtime``. Raises nothing.

    Args:
        owned: Which member owned what when, sorted (``Tables.tenures``).

    Returns:
        One row per partition, sorted.
    """
    rows: list[PartitionDowntime] = []
    for _, group in groupby(owned, key=lambda each: each[:3]):
        mine = list(group)
        gaps = [gap.end_ms - gap.start_ms for gap in gaps_of(mine)]
        first, last = mine[0].start_ms, max(each.end_ms for each in mine)
        held = sum(each.end_ms - each.start_ms for each in mine)
        down = sum(gaps)
        rows.append(
            PartitionDowntime(
                group_id=mine[0].group_id,
                topic=mine[0].topic,
                partition=mine[0].partition,
                first_owned_ms=first,
                last_owned_ms=last,
                owners=len({each.member_id for each in mine}),
                downtime_ms=down,
                gaps=len(gaps),
                longest_gap_ms=max(gaps, default=0),
                overlap_ms=held - (last - first - down),
            )
        )
    return rows

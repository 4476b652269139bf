"""Rules for resetting committed offsets: pure, no I/O.

A reset is described by one of the values below. ``new_offsets`` computes offsets from it and from
the known offsets of the partitions; as in Kafka's own tool, an offset beyond the log becomes the
nearest one in it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kip848_client.core.short import short
from kip848_client.core.types import TopicPartition
from kip848_client.core.visible import visible
from kip848_client.errors import ConfigError

__all__ = [
    "ByDuration",
    "KnownOffsets",
    "OffsetReset",
    "ShiftBy",
    "ToCurrent",
    "ToEarliest",
    "ToLatest",
    "ToOffset",
    "ToPlan",
    "ToTime",
    "new_offsets",
    "parse_plan",
    "time_wanted_ms",
    "written_plan",
]

_NUMBER: Final = re.compile(r"[0-9]{1,19}")
_BARE_AT_MOST: Final = 24
_NOT_BARE: Final = re.compile(r"[\x00-,\\]")  # up to the comma, and the backslash
_OF_ONE_GROUP: Final = 3
_OF_GROUPS: Final = 4


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """To the first offset that the log has."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """To the end of the log."""


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """To the committed offset; without one, to the end of the log."""


@dataclass(frozen=True, slots=True)
class ToOffset:
    """To one offset, in each partition."""

    offset: int
    """Counts from 0."""


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """To the committed offset plus a number of records."""

    records: int
    """Negative to go back."""


@dataclass(frozen=True, slots=True)
class ToTime:
    """To the first record at or after a time; where there is none, to the end."""

    timestamp_ms: int
    """Milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class ByDuration:
    """As ``ToTime``, for a time before now."""

    duration_ms: int
    """How long before now, in milliseconds."""


@dataclass(frozen=True, slots=True)
class ToPlan:
    """To its own offset for each partition, as a file or a program gives it."""

    offsets: Mapping[TopicPartition, int]
    """The offset of the next record to read, by partition."""


OffsetReset = ToEarliest | ToLatest | ToCurrent | ToOffset | ShiftBy | ToTime | ByDuration | ToPlan


@dataclass(frozen=True, slots=True)
class KnownOffsets:
    """The known offsets of the partitions to reset."""

    committed: Mapping[TopicPartition, int]
    begin: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]
    by_time: Mapping[TopicPartition, int]
    """Results of a reset by time; -1 where no record is that recent."""


def time_wanted_ms(reset: OffsetReset, now_ms: int) -> int | None:
    """Return the time whose offsets must be looked up, if any."""
    if isinstance(reset, ToTime):
        return reset.timestamp_ms
    if isinstance(reset, ByDuration):
        return max(0, now_ms - reset.duration_ms)
    return None


def new_offsets(
    reset: OffsetReset, partitions: Iterable[TopicPartition], known: KnownOffsets
) -> dict[TopicPartition, int]:
    """Return the offset to commit for each partition, sorted.

    Raises ``ConfigError`` if the reset needs an offset that is unknown.
    """
    rule = _rule(reset, known)
    return {tp: rule(tp) for tp in sorted(set(partitions))}


def _rule(reset: OffsetReset, known: KnownOffsets) -> Callable[[TopicPartition], int]:
    def in_the_log(tp: TopicPartition, offset: int) -> int:
        return min(max(offset, known.begin[tp]), known.end[tp])

    def shifted(tp: TopicPartition, records: int) -> int:
        if tp not in known.committed:
            raise ConfigError(
                f"Cannot shift offset for partition {tp.topic}-{tp.partition} since there is no "
                "current committed offset"
            )
        return in_the_log(tp, known.committed[tp] + records)

    def by_time(tp: TopicPartition) -> int:
        found = known.by_time[tp]
        return known.end[tp] if found < 0 else found

    match reset:
        case ToEarliest():
            return lambda tp: known.begin[tp]
        case ToLatest():
            return lambda tp: known.end[tp]
        case ToCurrent():
            return lambda tp: known.committed.get(tp, known.end[tp])
        case ToOffset(offset):
            return lambda tp: in_the_log(tp, offset)
        case ShiftBy(records):
            return lambda tp: shifted(tp, records)
        case ToTime() | ByDuration():
            return by_time
        case ToPlan(offsets):
            return lambda tp: in_the_log(tp, offsets[tp])


def parse_plan(text: str, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """Read what ``written_plan`` writes.

    Args:
        text: Lines of ``topic,partition,offset``, or for several groups of
            ``group,topic,partition,offset``.
        groups: Names of the groups that the text may be about.

    Returns:
        Offsets by group and partition.

    Raises:
        ConfigError: A line has another shape, is about another group, or repeats a partition. The
            text names the line.
    """
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as err:
        raise ConfigError(f"these are not comma-separated values: {err}") from err
    by_shown = {visible(group): group for group in groups}  # names as the command line prints them
    found: dict[str, dict[TopicPartition, int]] = {}
    for number, fields in enumerate(rows, 1):
        if not fields:
            continue
        is_short = len(fields) == _OF_ONE_GROUP and len(groups) == 1
        row = [groups[0], *fields] if is_short else fields
        group, topic, partition, offset = row if len(row) == _OF_GROUPS else ("", "", "", "")
        if not (_NUMBER.fullmatch(partition) and _NUMBER.fullmatch(offset) and topic):
            raise ConfigError(
                f"line {number} is {short(','.join(fields))}: expected topic,partition,offset, or "
                "group,topic,partition,offset for several groups"
            )
        if group not in groups:
            group = by_shown.get(group, group)
        if group not in groups:
            raise ConfigError(f"line {number} is about group {group!r}, which is not asked for")
        of_group, tp = found.setdefault(group, {}), TopicPartition(topic, int(partition))
        if tp in of_group:
            raise ConfigError(
                f"line {number} gives {topic}-{tp.partition} another offset than a line before"
            )
        of_group[tp] = int(offset)
    return found


def written_plan(offsets: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """Write offsets as lines that ``parse_plan`` reads.

    For one group the lines do not have its name, as with Kafka's own tool. Raises nothing.

    Args:
        offsets: Offsets by group and partition.

    Returns:
        The lines, each with its end.
    """
    single = len(offsets) == 1
    lines: list[str] = []
    for group, of_group in offsets.items():
        whose = () if single else (_csv_text(group),)
        for tp, offset in of_group.items():
            lines.append(",".join([*whose, _csv_text(tp.topic), str(tp.partition), str(offset)]))
    return "".join(f"{line}\n" for line in lines)


def _csv_text(text: str) -> str:
    """Format a field as Kafka's tool does: quoted also if it is just long."""
    if len(text) <= _BARE_AT_MOST and not _NOT_BARE.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'

"""One group of a history, ready to be shown: its rows, readable names, its times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from kip848_client.history.core import (
    Gap,
    HeartbeatSla,
    HistoryEvent,
    PartitionDowntime,
    RebalanceDuration,
    Tables,
    Tenure,
    ZombieCommit,
    gaps_of,
)

__all__ = ["GroupView", "clock_text", "duration_text", "short", "views_of"]

_NAME_MAX: Final = 28
_REAL_MS: Final = 1_000_000_000_000
"""A time before 2001 is a simulation's."""

Row = TypeVar("Row", Tenure, PartitionDowntime, HeartbeatSla, RebalanceDuration, ZombieCommit)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group of a history, ready to be shown.

    Attributes:
        group_id: Name of the group.
        events: Its events, in order of time.
        tenures: Which member owned what when.
        gaps: Times in which no member owned a partition.
        partition_downtime: The rows of the group.
        heartbeat_sla: The rows of the group.
        rebalance_duration: The rows of the group.
        zombie_commits: The rows of the group.
        names: Readable names of members by id, in the order in which they came.
        sla_ms: How soon a heartbeat was to be answered, in milliseconds.
    """

    group_id: str
    events: tuple[HistoryEvent, ...]
    tenures: tuple[Tenure, ...]
    gaps: tuple[Gap, ...]
    partition_downtime: tuple[PartitionDowntime, ...]
    heartbeat_sla: tuple[HeartbeatSla, ...]
    rebalance_duration: tuple[RebalanceDuration, ...]
    zombie_commits: tuple[ZombieCommit, ...]
    names: Mapping[str, str]
    """Of members, by their ids, in the order in which they came."""
    sla_ms: int

    @property
    def start_ms(self) -> int:
        """The time of the first event."""
        return self.events[0].time_ms

    @property
    def end_ms(self) -> int:
        """The time of the last event."""
        return self.events[-1].time_ms

    @property
    def is_real(self) -> bool:
        """Whether its times are of a clock, not of a simulation."""
        return self.start_ms >= _REAL_MS

    def at(self, time_ms: int) -> str:
        """Write a time of the group for people. Raises nothing.

        Args:
            time_ms: The time, in milliseconds.

        Returns:
            The time of day in UTC; of a simulation the time since its start.
        """
        return clock_text(time_ms) if self.is_real else duration_text(time_ms - self.start_ms)


def views_of(tables: Tables) -> list[GroupView]:
    """Divide the tables by group. Raises nothing.

    Args:
        tables: What ``tables_of`` computed.

    Returns:
        The groups, by name.
    """
    events: dict[str, list[HistoryEvent]] = {}
    for event in tables.events:
        events.setdefault(event.group_id, []).append(event)
    return [_view(group_id, events[group_id], tables) for group_id in sorted(events)]


def _view(group_id: str, events: list[HistoryEvent], tables: Tables) -> GroupView:
    def mine(rows: Iterable[Row]) -> tuple[Row, ...]:
        return tuple(row for row in rows if row.group_id == group_id)

    owned = mine(tables.tenures)
    return GroupView(
        group_id=group_id,
        events=tuple(events),
        tenures=owned,
        gaps=tuple(gaps_of(owned)),
        partition_downtime=mine(tables.partition_downtime),
        heartbeat_sla=mine(tables.heartbeat_sla),
        rebalance_duration=mine(tables.rebalance_duration),
        zombie_commits=mine(tables.zombie_commits),
        names=_names(events),
        sla_ms=tables.sla_ms,
    )


def _names(events: Iterable[HistoryEvent]) -> dict[str, str]:
    """``client.id`` if a member has one, with a number if several have the same."""
    wished: dict[str, str] = {}
    for event in events:
        if event.member_id is not None:
            wish = event.instance_id or event.client_id
            if wish or event.member_id not in wished:
                wished[event.member_id] = wished.get(event.member_id) or wish or ""
    wished = {member: wish or member for member, wish in wished.items()}
    often = Counter(wished.values())
    seen: Counter[str] = Counter()
    names: dict[str, str] = {}
    for member, wish in wished.items():
        seen[wish] += 1
        number = f" ({seen[wish]})" if often[wish] > 1 else ""
        names[member] = short(wish, _NAME_MAX - len(number)) + number
    return names


def short(name: str, most: int = _NAME_MAX) -> str:
    """A shortened name on one line, cut in the middle: names differ at either end."""
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in name)
    if len(shown) <= most:
        return shown
    tail = most // 2
    return f"{shown[: most - tail - 1]}\N{HORIZONTAL ELLIPSIS}{shown[-tail:]}"


def clock_text(time_ms: int) -> str:
    """``12:09:34`` (UTC)."""
    try:
        return datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%H:%M:%S")
    except (OverflowError, ValueError, OSError):  # outside the calendar
        return f"{time_ms} ms"


def duration_text(duration_ms: float) -> str:
    """``35 ms``, ``1.8 s``, ``4 min 05 s``, ``3 h 20 min``, ``12 d 4 h``."""
    if duration_ms < 1_000:
        return f"{duration_ms:.0f} ms"
    seconds = duration_ms / 1_000
    if seconds < 59.95:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 100:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    return f"{hours // 24:,} d {hours % 24} h"

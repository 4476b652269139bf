"""Latency of heartbeats, and times without an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from kip848_client.history.core._event import HistoryEvent
from kip848_client.history.core._ownership import Member, with_own_events

__all__ = ["HeartbeatSla", "heartbeat_sla"]

_KINDS: Final = frozenset({"heartbeat", "heartbeat_lost", "heartbeat_refused"})


class HeartbeatSla(NamedTuple):
    """How soon one member's heartbeats were answered: a row of ``heartbeat_sla``.

    Attributes:
        group_id: Name of the group.
        member_id: The member.
        heartbeats: How many were answered without an error.
        refused: How many were answered with an error.
        lost: How many were not answered.
        in_time: How many of the answered ones took at most the promised time.
        p50_ms: Half of the answered ones took at most this many milliseconds.
        p99_ms: 99 % of the answered ones took at most this many milliseconds.
        max_ms: The longest one, in milliseconds.
        longest_silence_ms: The longest time between two answered ones, in milliseconds.
    """

    group_id: str
    member_id: str
    heartbeats: int
    refused: int
    lost: int
    in_time: int
    p50_ms: int | None
    p99_ms: int | None
    max_ms: int | None
    longest_silence_ms: int


class _Accumulator:
    """The heartbeats of one member so far."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.took: list[int] = []
        self.refused = self.lost = 0


def heartbeat_sla(events: Iterable[HistoryEvent], sla_ms: int) -> list[HeartbeatSla]:
    """Compute the table ``heartbeat_sla``. Raises nothing.

    A member without events of its own has what the coordinator answered, and no latency.

    Args:
        events: On one clock and sorted (``Tables.events``).
        sla_ms: How soon a heartbeat is to be answered, in milliseconds.

    Returns:
        One row per member, sorted.
    """
    events = list(events)
    own = with_own_events(events)
    members: dict[Member, _Accumulator] = {}
    for event in events:
        if event.member_id is None or event.kind not in _KINDS:
            continue
        member = (event.group_id, event.member_id)
        if event.is_members != (member in own):
            continue
        found = members.setdefault(member, _Accumulator())
        if event.kind == "heartbeat":
            found.times.append(event.time_ms)
            if event.duration_ms is not None:
                found.took.append(event.duration_ms)
        elif event.kind == "heartbeat_refused":
            found.refused += 1
        elif event.kind == "heartbeat_lost":
            found.lost += 1
    return [_row(member, members[member], sla_ms) for member in sorted(members)]


def _row(member: Member, found: _Accumulator, sla_ms: int) -> HeartbeatSla:
    took = sorted(found.took)
    return HeartbeatSla(
        group_id=member[0],
        member_id=member[1],
        heartbeats=len(found.times),
        refused=found.refused,
        lost=found.lost,
        in_time=sum(each <= sla_ms for each in took),
        p50_ms=_quantile(took, 50),
        p99_ms=_quantile(took, 99),
        max_ms=took[-1] if took else None,
        longest_silence_ms=max((b - a for a, b in pairwise(found.times)), default=0),
    )


def _quantile(ordered: Sequence[int], percent: int) -> int | None:
    """The percentile, by nearest rank: the least value that ``percent`` % do not exceed."""
    if not ordered:
        return None
    return ordered[-(-percent * len(ordered) // 100) - 1]

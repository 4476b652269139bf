"""Clocks of several hosts, brought together by what the coordinator saw.

A heartbeat is seen four times: the member sends it, the coordinator answers it, the member has the
answer. Where a member has as many answers with an epoch as the coordinator gave, the k-th of the
one is the k-th of the other: the coordinator's time lies between the member's two. All pairs of a
host together say how far its clock may be off. What is possible without any correction is not
corrected; else the smallest correction is taken that explains all pairs, and where none does, none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kip848_client.history.core._event import HistoryEvent

__all__ = ["offsets_of_clocks", "on_one_clock"]

_Key = tuple[str, str | None, int | None]


def offsets_of_clocks(events: Iterable[HistoryEvent]) -> dict[str, int]:
    """By host: what is to be added to the times of its members' events, in ms. Only those that
    are not 0, sorted."""
    asked: dict[_Key, list[HistoryEvent]] = {}
    answered: dict[_Key, list[HistoryEvent]] = {}
    for event in sorted(events, key=lambda each: each.order):
        if event.kind == "heartbeat":
            side = asked if event.is_members else answered
            side.setdefault((event.group_id, event.member_id, event.member_epoch), []).append(event)
    bounds: dict[str, tuple[int, int]] = {}
    for key, seen in asked.items():
        given = answered.get(key, [])
        if len(given) == len(seen):
            for member, coordinator in zip(seen, given, strict=True):
                late = coordinator.time_ms - member.time_ms
                early = late + (member.duration_ms or 0)
                low, high = bounds.get(member.host, (late, early))
                bounds[member.host] = max(low, late), min(high, early)
    offsets = {host: _smallest(*bounds[host]) for host in sorted(bounds)}
    return {host: offset for host, offset in offsets.items() if offset}


def _smallest(low: int, high: int) -> int:
    if low > high:
        return 0
    return low if low > 0 else min(high, 0)


def on_one_clock(events: Sequence[HistoryEvent], offsets: Mapping[str, int]) -> list[HistoryEvent]:
    """All events once, by the coordinator's clock, in order of time."""
    found: list[HistoryEvent] = []
    for event in dict.fromkeys(events):
        offset = offsets.get(event.host, 0) if event.is_members else 0
        found.append(replace(event, time_ms=event.time_ms + offset) if offset else event)
    return sorted(found, key=lambda each: each.order)

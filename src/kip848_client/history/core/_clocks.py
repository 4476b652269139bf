"""Corrects the clocks of several hosts by the coordinator's events.

A heartbeat has three times: the member sends it, the coordinator answers it, the member gets the
answer. If a member got as many answers with an epoch as the coordinator sent, the k-th events of
both belong together: the coordinator's time is between the member's two times. All pairs of a host
together limit the error of its clock. If they are possible without a correction, there is none.
Otherwise the smallest correction that explains all pairs is used, or none if none does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kip848_client.history.core._event import HistoryEvent

__all__ = ["offsets_of_clocks", "on_one_clock"]

_Key = tuple[str, str | None, int | None]


def offsets_of_clocks(events: Iterable[HistoryEvent]) -> dict[str, int]:
    """The corrections by host, in ms, to add to the times of its members' events. Sorted, without
    zeros."""
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
    """All events without duplicates, on the coordinator's clock, in order of time."""
    found: list[HistoryEvent] = []
    for event in dict.fromkeys(events):
        offset = offsets.get(event.host, 0) if event.is_members else 0
        found.append(replace(event, time_ms=event.time_ms + offset) if offset else event)
    return sorted(found, key=lambda each: each.order)

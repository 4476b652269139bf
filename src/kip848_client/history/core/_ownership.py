"""The owners of partitions over time.

A member owns a partition from ``assigned`` until ``revoked`` or ``lost``. The member's own events
count; if it has written none, those of the coordinator. A member that vanished owned its partitions
until its last sign of life: its last event, or the last heartbeat that the coordinator answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kip848_client.core.types import TopicPartition
from kip848_client.history.core._event import HistoryEvent

__all__ = ["Tenure", "tenures", "with_own_events"]

_CHANGES: Final = frozenset({"assigned", "revoked", "lost"})
Member = tuple[str, str]
"""Group and member id."""


class Tenure(NamedTuple):
    """A member owned a partition from ``start_ms`` to ``end_ms``."""

    group_id: str
    topic: str
    partition: int
    start_ms: int
    end_ms: int
    member_id: str
    how: str
    """How it ended: ``revoked``, ``lost``, ``assigned`` (again), or ``vanished``: the member has no
    later events, which is also so at the end of the record."""


def with_own_events(events: Iterable[HistoryEvent]) -> frozenset[Member]:
    """The members that have written events."""
    return frozenset(
        (event.group_id, event.member_id)
        for event in events
        if event.is_members and event.member_id is not None
    )


def tenures(events: Iterable[HistoryEvent], *, granted: bool = False) -> list[Tenure]:
    """All tenures, sorted by partition and time. ``events`` are on one clock and sorted. With
    ``granted``, only the coordinator's events count: a member that was fenced no longer owns the
    partitions that it still processes."""
    events = list(events)
    own = frozenset[Member]() if granted else with_own_events(events)
    alive: dict[Member, int] = {}
    open_since: dict[tuple[Member, TopicPartition], int] = {}
    found: list[Tenure] = []
    for event in events:
        if event.member_id is None:
            continue
        member = (event.group_id, event.member_id)
        if event.is_members or event.kind == "heartbeat":
            alive[member] = event.time_ms
        if event.kind not in _CHANGES or event.is_members != (member in own):
            continue
        for tp in event.partitions:
            since = open_since.pop((member, tp), None)
            if since is not None:
                found.append(_tenure(member, tp, since, event.time_ms, event.kind))
            if event.kind == "assigned":
                open_since[member, tp] = event.time_ms
    for (member, tp), since in open_since.items():
        found.append(_tenure(member, tp, since, max(alive.get(member, since), since), "vanished"))
    return sorted(found)


def _tenure(member: Member, tp: TopicPartition, start_ms: int, end_ms: int, how: str) -> Tenure:
    return Tenure(member[0], tp.topic, tp.partition, start_ms, end_ms, member[1], how)

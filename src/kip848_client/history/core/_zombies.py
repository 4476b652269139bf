"""The table ``zombie_commits``: commits of members that no longer owned the partition.

Refused: the coordinator did not store the offset, because the member's epoch was stale or it was no
longer in the group. Accepted: the offset was stored while the coordinator had assigned the
partition to another member, so that records may be skipped. Accepted commits need events of the
coordinator, because only it knows what it stored and assigned. Without such events of a group, the
members' events show the refusals.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from kip848_client.core.types import TopicPartition
from kip848_client.history.core._event import HistoryEvent
from kip848_client.history.core._ownership import Tenure, tenures

__all__ = ["ZombieCommit", "zombie_commits"]

_OUTCOMES: Final = {"commit_refused": "refused", "committed": "accepted"}


class ZombieCommit(NamedTuple):
    """A commit without owning the partition: a row of ``zombie_commits``.

    Attributes:
        group_id: Name of the group.
        member_id: The member.
        time_ms: When the commit was answered, in milliseconds since 1970.
        member_epoch: The epoch that the member had.
        topic: Name of the topic.
        partition: Number of the partition.
        outcome: ``refused``, or ``accepted``: stored over the owner's.
        cause: Why it was refused.
        owner: Which member had the partition then; the first by name of several.
    """

    group_id: str
    member_id: str
    time_ms: int
    member_epoch: int | None
    topic: str
    partition: int
    outcome: str
    cause: str | None
    owner: str | None


class _Owners:
    """The owners of partitions."""

    def __init__(self, owned: Iterable[Tenure]) -> None:
        self._of: dict[tuple[str, str, int], list[Tenure]] = {}
        for each in owned:
            self._of.setdefault((each.group_id, each.topic, each.partition), []).append(each)
        self._starts = {key: [each.start_ms for each in mine] for key, mine in self._of.items()}

    def at(self, group_id: str, tp: TopicPartition, time_ms: int) -> set[str]:
        """The members that owned it then. A tenure includes its start and excludes its end."""
        key = (group_id, tp.topic, tp.partition)
        mine = self._of.get(key, [])
        begun = bisect_right(self._starts.get(key, []), time_ms)
        return {each.member_id for each in mine[:begun] if time_ms < each.end_ms}


def zombie_commits(events: Iterable[HistoryEvent], owned: Iterable[Tenure]) -> list[ZombieCommit]:
    """Compute the table ``zombie_commits``. Raises nothing.

    Args:
        events: On one clock and sorted (``Tables.events``).
        owned: Which member owned what when, sorted (``Tables.tenures``).

    Returns:
        One row per commit and partition, sorted.
    """
    events = list(events)
    by_members, granted = _Owners(owned), _Owners(tenures(events, granted=True))
    watched = {event.group_id for event in events if not event.is_members}
    rows: list[ZombieCommit] = []
    for event in events:
        outcome = _OUTCOMES.get(event.kind)
        if outcome is None or event.member_id is None:
            continue
        if event.is_members and event.group_id in watched:
            continue  # the coordinator has an event for it, too
        for tp in event.partitions:
            at = (by_members if event.is_members else granted).at(event.group_id, tp, event.time_ms)
            others = sorted(at - {event.member_id})
            if outcome == "accepted" and (not others or event.member_id in at):
                continue
            rows.append(
                ZombieCommit(
                    event.group_id,
                    event.member_id,
                    event.time_ms,
                    event.member_epoch,
                    *tp,
                    outcome,
                    event.cause,
                    others[0] if others else None,
                )
            )
    return sorted(rows, key=_order)


def _order(row: ZombieCommit) -> tuple[object, ...]:
    """The sort key; missing values come first."""
    epoch = row.member_epoch
    return (*row[:3], epoch is not None, epoch or 0, *row[4:7], row.cause or "", row.owner or "")

"""How long groups took to get from one epoch to the next.

A rebalance to an epoch begins with the first event that knows of it: that the group has it, or that
a member does. It ends with the last step that a member took in it: it got the epoch, or partitions
while it had it. A member that gives partitions up has the epoch before, and gets the new one after.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kip848_client.core.types import TopicPartition
from kip848_client.history.core._event import HistoryEvent
from kip848_client.history.core._ownership import with_own_events

__all__ = ["RebalanceDuration", "rebalance_duration"]


class RebalanceDuration(NamedTuple):
    """A row of the table of this name; ``TABLES`` says what is in it."""

    group_id: str
    epoch: int
    began_ms: int
    ended_ms: int
    duration_ms: int
    members: int
    moved: int


class _Book:
    """Of one epoch of a group."""

    def __init__(self, began_ms: int) -> None:
        self.began_ms = self.ended_ms = began_ms
        self.members: set[str] = set()
        self.moved: set[TopicPartition] = set()


def rebalance_duration(events: Iterable[HistoryEvent]) -> list[RebalanceDuration]:
    """The table; ``events`` are on one clock and sorted. An epoch that no member came to has no
    row. Of a member without events of its own the coordinator's heartbeats tell the epoch."""
    events = list(events)
    own = with_own_events(events)
    books: dict[tuple[str, int], _Book] = {}
    reached: set[tuple[str, str, int]] = set()
    for event in events:
        if event.kind == "group_epoch":
            if (event.group_epoch or 0) > 0:
                books.setdefault((event.group_id, event.group_epoch or 0), _Book(event.time_ms))
            continue
        epoch = event.member_epoch or 0
        if epoch <= 0 or event.member_id is None:
            continue
        is_own = (event.group_id, event.member_id) in own
        if event.is_members != is_own:
            continue
        who = (event.group_id, event.member_id, epoch)
        arrives = event.kind == "epoch" or (event.kind == "heartbeat" and not is_own)
        if arrives and who in reached:
            continue
        if arrives or event.kind == "assigned":
            book = books.setdefault((event.group_id, epoch), _Book(event.time_ms))
            book.ended_ms = event.time_ms
            if arrives:
                reached.add(who)
                book.members.add(event.member_id)
            book.moved.update(event.partitions if event.kind == "assigned" else ())
    return [_row(*key, books[key]) for key in sorted(books) if books[key].members]


def _row(group_id: str, epoch: int, book: _Book) -> RebalanceDuration:
    return RebalanceDuration(
        group_id=group_id,
        epoch=epoch,
        began_ms=book.began_ms,
        ended_ms=book.ended_ms,
        duration_ms=book.ended_ms - book.began_ms,
        members=len(book.members),
        moved=len(book.moved),
    )

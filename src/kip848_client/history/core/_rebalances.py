"""How long groups took to get from one epoch to the next.

A rebalance to an epoch begins with the first event of that epoch, of the group or a member. It ends
with the last step of a member in it: the member got the epoch, or got partitions in it. A member
that gives up partitions still has the epoch before, and gets the new one afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kip848_client.core.types import TopicPartition
from kip848_client.history.core._event import HistoryEvent
from kip848_client.history.core._ownership import with_own_events

__all__ = ["RebalanceDuration", "rebalance_duration"]


class RebalanceDuration(NamedTuple):
    """How long a group took to reach an epoch: a row of ``rebalance_duration``.

    Attributes:
        group_id: Name of the group.
        epoch: The epoch that members moved to.
        began_ms: The first event with this epoch, in milliseconds since 1970.
        ended_ms: The last step that a member took in it, in milliseconds since 1970.
        duration_ms: From the one to the other, in milliseconds.
        members: How many members came to this epoch.
        moved: How many partitions got an owner in it.
    """

    group_id: str
    epoch: int
    began_ms: int
    ended_ms: int
    duration_ms: int
    members: int
    moved: int


class _Accumulator:
    """One epoch of a group so far."""

    def __init__(self, began_ms: int) -> None:
        self.began_ms = self.ended_ms = began_ms
        self.members: set[str] = set()
        self.moved: set[TopicPartition] = set()


def rebalance_duration(events: Iterable[HistoryEvent]) -> list[RebalanceDuration]:
    """Compute the table ``rebalance_duration``. Raises nothing.

    An epoch that no member came to has no row. For a member without events of its own, the
    coordinator's heartbeats show the epoch.

    Args:
        events: On one clock and sorted (``Tables.events``).

    Returns:
        One row per group and epoch, sorted.
    """
    events = list(events)
    own = with_own_events(events)
    epochs: dict[tuple[str, int], _Accumulator] = {}
    reached: set[tuple[str, str, int]] = set()
    for event in events:
        if event.kind == "group_epoch":
            if (event.group_epoch or 0) > 0:
                epochs.setdefault(
                    (event.group_id, event.group_epoch or 0), _Accumulator(event.time_ms)
                )
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
            found = epochs.setdefault((event.group_id, epoch), _Accumulator(event.time_ms))
            found.ended_ms = event.time_ms
            if arrives:
                reached.add(who)
                found.members.add(event.member_id)
            found.moved.update(event.partitions if event.kind == "assigned" else ())
    return [_row(*key, epochs[key]) for key in sorted(epochs) if epochs[key].members]


def _row(group_id: str, epoch: int, found: _Accumulator) -> RebalanceDuration:
    return RebalanceDuration(
        group_id=group_id,
        epoch=epoch,
        began_ms=found.began_ms,
        ended_ms=found.ended_ms,
        duration_ms=found.ended_ms - found.began_ms,
        members=len(found.members),
        moved=len(found.moved),
    )

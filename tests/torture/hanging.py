"""Transactions that nobody ends: open in a partition, unknown to their coordinator. Pure.

What ``kafka-transactions find-hanging`` looks for, without a limit of age: it is asked when
everything should have ended long ago.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Coordinated", "Open", "told_open"]

_OVER: Final = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")


@dataclass(frozen=True, slots=True)
class Open:
    """What the leader of a partition says of a producer that has a transaction there."""

    topic: str
    partition: int
    producer_id: int
    epoch: int
    begins_at: int
    """The offset of its first record, at which the last stable offset stands still."""


@dataclass(frozen=True, slots=True)
class Coordinated:
    """What a coordinator says of a transactional id."""

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    partitions: frozenset[tuple[str, int]]

    def knows_of(self, found: Open) -> bool:
        """Whether this transaction will be ended there by its coordinator."""
        is_there = (found.topic, found.partition) in self.partitions
        return is_there and self.state not in _OVER


def told_open(found: Iterable[Open], coordinated: Sequence[Coordinated]) -> list[str]:
    """A line for each transaction that is open in a partition."""
    return [_told(each, coordinated) for each in found]


def _told(found: Open, coordinated: Sequence[Coordinated]) -> str:
    where = f"{found.topic}-{found.partition}"
    what = f"producer {found.producer_id}, epoch {found.epoch}, from offset {found.begins_at} on"
    theirs = [each for each in coordinated if each.producer_id == found.producer_id]
    if any(each.knows_of(found) for each in theirs):
        return f"{where}: {what}: open, and its coordinator knows"
    says = [f"{each.transactional_id} is {each.state} in epoch {each.epoch}" for each in theirs]
    return f"{where}: {what}: HANGS, its coordinator says: {', '.join(says) or 'nothing'}"

"""Accounts for the demo's items: where each one ran, and from when to when.

Pure: times come in as arguments, in seconds of a clock that all workers share. The workers'
messages arrive in any order, so the verdict is reached at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Accounting", "ItemVerdict"]


@dataclass(slots=True)
class _Run:
    worker: str
    began_s: float
    ended_s: float | None = None


@dataclass(frozen=True, slots=True)
class ItemVerdict:
    """The outcome. ``rest_s``: the longest time that an item that had run was at no worker."""

    configured: int
    running_once: int
    ran_twice: tuple[str, ...]
    lost: tuple[str, ...]
    moves: int
    rest_s: float

    @property
    def good(self) -> bool:
        """Whether everything runs once, and nothing ever ran twice."""
        return self.running_once == self.configured and not self.ran_twice and not self.lost


class Accounting:
    """Where the items run."""

    def __init__(self, items: Iterable[str]) -> None:
        self._runs: dict[str, list[_Run]] = {item: [] for item in items}

    def started(self, worker: str, item: str, at_s: float) -> None:
        """A worker started an item."""
        self._runs.setdefault(item, []).append(_Run(worker, at_s))

    def stopped(self, worker: str, item: str, at_s: float) -> None:
        """A worker stopped an item."""
        for run in self._runs.get(item, ()):
            if run.worker == worker and run.ended_s is None:
                run.ended_s = at_s

    def gone(self, worker: str, at_s: float) -> None:
        """Record the end of a worker's process, and of all its items."""
        for item in self._runs:
            self.stopped(worker, item, at_s)

    def of(self, worker: str) -> tuple[str, ...]:
        """The items running at this worker."""
        return tuple(
            item
            for item, runs in self._runs.items()
            if any(run.worker == worker and run.ended_s is None for run in runs)
        )

    @property
    def nowhere(self) -> tuple[str, ...]:
        """The items running at no worker."""
        return tuple(
            item
            for item, runs in self._runs.items()
            if all(run.ended_s is not None for run in runs)
        )

    def verdict(self) -> ItemVerdict:
        """The outcome, once all workers have reported."""
        histories = {
            item: sorted(runs, key=lambda run: run.began_s) for item, runs in self._runs.items()
        }
        pairs = [
            (item, before, after)
            for item, runs in histories.items()
            for before, after in pairwise(runs)
        ]
        running = [sum(run.ended_s is None for run in runs) for runs in self._runs.values()]
        twice = [item for item, before, after in pairs if _overlap(before, after)]
        rests = [after.began_s - (before.ended_s or after.began_s) for _, before, after in pairs]
        return ItemVerdict(
            configured=len(self._runs),
            running_once=running.count(1),
            ran_twice=tuple(dict.fromkeys(twice)),
            lost=self.nowhere,
            moves=sum(before.worker != after.worker for _, before, after in pairs),
            rest_s=max(rests, default=0.0),
        )


def _overlap(before: _Run, after: _Run) -> bool:
    return before.ended_s is None or before.ended_s > after.began_s

"""Who has which partition since when, and when its records were handed out.

The members of a fleet write into one watch, from tasks or from threads. A partition counts as a
member's from its assigned callback until its revoked callback: what the application sees.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Flow", "GroupWatch"]

_BEFORE_S = 5.0
"""The time before a change to which the throughput during the change is compared."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What a change did to the records; ``None`` where there was nothing to see."""

    moved: int
    """How many partitions have another owner after it."""
    pause_ms: float | None
    """The longest time without a record from one of these."""
    dip: float | None
    """The fewest records in one step of time from the partitions that stayed, over the average
    before the change."""


class GroupWatch:
    """What is known of the group; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owned: defaultdict[str, set[int]] = defaultdict(set)
        self._delivered: defaultdict[int, list[float]] = defaultdict(list)
        self._changed_s = 0.0
        self.events: list[tuple[float, str, str, int]] = []
        """Time, member, what happened, how many partitions: for a look at single steps."""

    def assigned(self, member: str, partitions: Iterable[int]) -> None:
        """These were given to a member."""
        given = set(partitions)
        with self._lock:
            self._owned[member] |= given
            self._note(member, "assigned", len(given))

    def revoked(self, member: str, partitions: Iterable[int]) -> None:
        """These are being taken from a member."""
        taken = set(partitions)
        with self._lock:
            self._owned[member] -= taken
            self._note(member, "revoked", len(taken))

    def delivered(self, partition: int, records: int) -> None:
        """So many records were handed out just now."""
        self._delivered[partition] += [time.monotonic()] * records

    def owners(self) -> dict[int, str]:
        """Partition -> member."""
        with self._lock:
            return {number: member for member, all_ in self._owned.items() for number in all_}

    def is_balanced(self, members: Iterable[str], partitions: int) -> bool:
        """Whether each partition has one owner, and nobody has two more than another."""
        with self._lock:
            owned = [self._owned[member] for member in members]
            counts = [len(each) for each in owned]
            different = len(set[int]().union(*owned))
        return sum(counts) == different == partitions and max(counts) - min(counts) <= 1

    async def balanced(
        self, members: Iterable[str], partitions: int, since_s: float, limit_s: float
    ) -> float:
        """Seconds from ``since_s`` until these members were balanced. Raises ``TimeoutError``."""
        names = tuple(members)
        seen_s = -1.0
        while time.monotonic() < since_s + limit_s:
            if seen_s != self._changed_s:
                seen_s = self._changed_s
                if self.is_balanced(names, partitions):
                    return max(0.0, seen_s - since_s)
            await asyncio.sleep(0.01)
        sizes = {name: len(self._owned[name]) for name in names}
        raise TimeoutError(f"not balanced after {limit_s:.0f} s: {sizes}")

    def flow(self, before: dict[int, str], since_s: float, until_s: float, step_s: float) -> Flow:
        """What the records did between two times; ``before``: the owners at the first one;
        ``step_s``: in which steps their number is looked at."""
        after = self.owners()
        moved = [number for number, owner in before.items() if after.get(number) != owner]
        stayed = [number for number, owner in before.items() if after.get(number) == owner]
        pauses = [self._pause_s(number, since_s, until_s) for number in moved]
        return Flow(
            moved=len(moved),
            pause_ms=max(pauses) * 1000 if pauses else None,
            dip=self._dip(stayed, since_s, until_s, step_s),
        )

    def _note(self, member: str, what: str, count: int) -> None:
        self._changed_s = time.monotonic()
        self.events.append((self._changed_s, member, what, count))

    def _pause_s(self, partition: int, since_s: float, until_s: float) -> float:
        times = [each for each in self._delivered[partition] if since_s <= each <= until_s]
        steps = itertools.pairwise([since_s, *times, until_s])
        return max(after - before for before, after in steps)

    def _dip(
        self, partitions: list[int], since_s: float, until_s: float, step_s: float
    ) -> float | None:
        steps = int((until_s - since_s) / step_s)
        counts, before = [0] * steps, 0
        for partition in partitions:
            for each in self._delivered[partition]:
                if since_s - _BEFORE_S <= each < since_s:
                    before += 1
                elif since_s <= each < since_s + steps * step_s:
                    counts[int((each - since_s) / step_s)] += 1
        if not before or not counts:
            return None
        return min(counts) / (before * step_s / _BEFORE_S)

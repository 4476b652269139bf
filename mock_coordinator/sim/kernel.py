"""Virtual time: a heap of (time_ms, sequence), and random generators by name.

Everything that happens in a simulated world is an action in this heap. Two actions at the same
millisecond run in the order in which they were scheduled, so a run depends on nothing but its seed.
Each part of the world draws from a generator of its own name: a part that draws once more than
before does not shift what the others draw, and a trace stays comparable across small changes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Final

__all__ = ["Kernel", "Spinning", "Timer"]

EVENTS_PER_MS_MAX: Final = 20_000
"""More than this at one millisecond means that something feeds itself."""


class Spinning(Exception):
    """Virtual time stands still: some part of the world schedules itself again and again."""


class Timer:
    """One scheduled action; ``cancel`` makes it never happen (harmless when it has happened)."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    @property
    def pending(self) -> bool:
        """Whether it is still to happen."""
        return self.action is not None

    def cancel(self) -> None:
        """Take it back."""
        self.action = None


class Kernel:
    """The clock of one world. ``now_ms`` starts at a value that no default could be taken for."""

    def __init__(self, seed: int, start_ms: int = 1_000_000) -> None:
        self.seed: Final = seed
        self.now_ms = start_ms
        self.events = 0
        self._heap: list[tuple[int, int, Timer]] = []
        self._sequence = 0
        self._rngs: dict[str, Random] = {}

    def rng(self, name: str) -> Random:
        """The generator of this name, the same object each time."""
        rng = self._rngs.get(name)
        if rng is None:
            rng = self._rngs[name] = Random(f"{self.seed}/{name}")
        return rng

    def at(self, time_ms: int, action: Callable[[], None]) -> Timer:
        """Do ``action`` at ``time_ms`` (now, when that is past)."""
        timer = Timer(action)
        self._sequence += 1
        heapq.heappush(self._heap, (max(time_ms, self.now_ms), self._sequence, timer))
        return timer

    def after(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        """Do ``action`` in ``delay_ms``."""
        return self.at(self.now_ms + delay_ms, action)

    def run_for(self, duration_ms: int) -> None:
        """Let everything happen that is due by then."""
        self.run_until(self.now_ms + duration_ms)

    def run_until(self, time_ms: int, done: Callable[[], bool] | None = None) -> bool:
        """Let everything up to ``time_ms`` happen; returns early, true, when ``done()`` is.

        ``done`` is asked whenever the clock has moved. Without it the clock ends at ``time_ms``.
        """
        at_this_ms = 0
        while self._heap and self._heap[0][0] <= time_ms:
            due_ms, _, timer = heapq.heappop(self._heap)
            action, timer.action = timer.action, None
            if action is None:
                continue
            if due_ms > self.now_ms:
                self.now_ms = due_ms
                at_this_ms = 0
                if done is not None and done():
                    self.at(due_ms, action)
                    return True
            at_this_ms += 1
            self.events += 1
            if at_this_ms > EVENTS_PER_MS_MAX:
                raise Spinning(f"{at_this_ms} events at {self.now_ms} ms")
            action()
        self.now_ms = max(self.now_ms, time_ms)
        return done is not None and done()

"""What was done to processes, brokers and the network, and when."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Chronicle", "Event"]


@dataclass(slots=True)
class Event:
    """Something that was done, and how long it lasted; times are those of ``time.monotonic``."""

    what: str
    began: float
    ended: float = float("inf")
    """Infinite while it lasts."""


class Chronicle:
    """``done`` counts what was done, ``events`` say when."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.events: list[Event] = []
        self.troubles: list[str] = []
        """What processes should not have done when something was done to them."""

    def note(self, what: str, whom: str = "") -> None:
        """Something was done in a moment."""
        self.done[what] += 1
        now = time.monotonic()
        self.events.append(Event(f"{what} {whom}".strip(), now, now))

    @contextmanager
    def lasting(self, what: str, whom: str, times: int = 1) -> Generator[None]:
        """Something is done for the length of a block."""
        self.done[what] += times
        event = Event(f"{what} {whom}", time.monotonic())
        self.events.append(event)
        try:
            yield
        finally:
            event.ended = time.monotonic()

    def between(self, began: float, ended: float) -> list[Event]:
        """What was done, or lasted, in a span of time."""
        return [each for each in self.events if each.began <= ended and each.ended >= began]

    def told(self, start: float) -> str:
        """All of it in lines; times are told from ``start`` on."""
        return "".join(
            f"{each.began - start:.1f} to {each.ended - start:.1f} s: {each.what}\n"
            for each in self.events
        )

"""Clocks of brokers: milliseconds since 1970, never going backwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Final

__all__ = ["Alarm", "Clock", "VirtualClock", "wall_clock"]

Clock = Callable[[], int]
"""Returns the time in milliseconds since 1970. Record timestamps are compared with it."""


def wall_clock() -> Clock:
    """A clock that starts at the current real time and then follows the monotonic clock. Raises
    nothing.

    Returns:
        The clock.
    """
    offset_ms = time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000

    def now_ms() -> int:
        return offset_ms + time.monotonic_ns() // 1_000_000

    return now_ms


@dataclass(frozen=True, slots=True, eq=False)
class Alarm:
    """A call that a virtual clock makes once, at ``at_ms``, unless it is cancelled."""

    at_ms: int
    ring: Callable[[], None]
    _alarms: dict[Alarm, None]

    def cancel(self) -> None:
        """Cancel the call. Harmless if it was made or cancelled already."""
        self._alarms.pop(self, None)


class VirtualClock:
    """A clock that moves only when ``advance`` is called: ``MockBroker(clock=VirtualClock())``.

    While it moves, the brokers that use it do in order what becomes due: they close idle
    connections and answer failed authentications, among other things.

    Args:
        start_ms: The first time, in milliseconds since 1970. The default is in June 2025.
    """

    def __init__(self, start_ms: int = 1_750_000_000_000) -> None:
        self._now_ms = start_ms
        self._drivers: list[tuple[Callable[[], int | None], Callable[[], None]]] = []
        self._alarms: Final[dict[Alarm, None]] = {}
        """Alarms that will ring."""
        self._line: Final[list[tuple[int, int, Alarm]]] = []
        """A heap of alarms, the next one first; cancelled ones may be among them."""
        self._made = 0

    def __call__(self) -> int:
        return self._now_ms

    def attach(self, deadline_ms: Callable[[], int | None], fire: Callable[[], None]) -> None:
        """Have something called while the clock moves. Raises nothing.

        Args:
            deadline_ms: Returns when the next call is due, in milliseconds since 1970; ``None`` for
                never.
            fire: Called at that time.
        """
        self._drivers.append((deadline_ms, fire))

    def detach(self, fire: Callable[[], None]) -> None:
        """Undo ``attach``. Harmless if it is not attached. Raises nothing.

        Args:
            fire: As given to ``attach``.
        """
        self._drivers = [each for each in self._drivers if each[1] != fire]

    def call_later(self, after_ms: int, function: Callable[[], None]) -> Alarm:
        """Call a function once. Raises nothing.

        Args:
            after_ms: Milliseconds from now.
            function: Called without arguments while the clock moves.

        Returns:
            The pending call; ``cancel`` it if it is not needed any more.
        """
        alarm = Alarm(self._now_ms + max(after_ms, 0), function, self._alarms)
        self._alarms[alarm] = None
        self._made += 1
        heappush(self._line, (alarm.at_ms, self._made, alarm))
        return alarm

    def advance(self, by_ms: int) -> None:
        """Advance the clock, stopping at each deadline on the way.

        Args:
            by_ms: Milliseconds.

        Raises:
            ValueError: If ``by_ms`` is negative.
            RuntimeError: If a broker's deadline stays due after 1000 calls.
        """
        if by_ms < 0:
            raise ValueError(f"by_ms must not be negative, got {by_ms}")
        end_ms = self._now_ms + by_ms
        stuck = 0
        while True:
            when, fire = min(self._due(), key=lambda pair: pair[0], default=(end_ms + 1, _nothing))
            if when > end_ms:
                break
            stuck = stuck + 1 if when <= self._now_ms else 0
            if stuck > 1000:
                raise RuntimeError(f"the deadline at {when} ms is still due after 1000 calls")
            self._now_ms = max(self._now_ms, when)
            fire()
        self._now_ms = end_ms

    def _due(self) -> Iterator[tuple[int, Callable[[], None]]]:
        """The pending calls with their times."""
        for deadline, fire in self._drivers:
            when = deadline()
            if when is not None:
                yield when, fire
        line = self._line
        while line and line[0][2] not in self._alarms:
            heappop(line)
        if line:
            yield line[0][0], partial(self._ring, line[0][2])

    def _ring(self, alarm: Alarm) -> None:
        alarm.cancel()
        alarm.ring()


def _nothing() -> None:
    return

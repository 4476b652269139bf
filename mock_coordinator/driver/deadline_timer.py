"""Calls a broker at its deadlines, by a real clock or by a virtual one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
import anyio.lowlevel

from mock_coordinator.driver.clock import Clock, VirtualClock

__all__ = ["DeadlineTimer"]


class DeadlineTimer:
    """Calls ``fire`` when ``deadline_ms()`` has passed.

    A ``VirtualClock`` calls it between ``join`` and ``leave``, a real clock in the task ``run``.
    """

    def __init__(
        self, clock: Clock, deadline_ms: Callable[[], int | None], fire: Callable[[], None]
    ) -> None:
        self._clock: Final = clock
        self._deadline_ms: Final = deadline_ms
        self._fire: Final = fire
        self._last_ms = clock()
        self._changed = anyio.Event()
        self._waiting_until: int | None = None
        self.join()

    def now_ms(self) -> int:
        """The time. It never goes backwards, even if the clock does."""
        self._last_ms = max(self._last_ms, self._clock())
        return self._last_ms

    def join(self) -> None:
        """Attach to a virtual clock. Calling it twice is harmless."""
        self.leave()
        if isinstance(self._clock, VirtualClock):
            self._clock.attach(self._deadline_ms, self._fire)

    def leave(self) -> None:
        """Detach from a virtual clock. Calling it twice is harmless."""
        if isinstance(self._clock, VirtualClock):
            self._clock.detach(self._fire)

    def look_again(self) -> None:
        """Wake ``run`` if the deadline is now earlier than the one that it waits for."""
        deadline = self._deadline_ms()
        if deadline is not None and (self._waiting_until is None or deadline < self._waiting_until):
            self._changed.set()

    def reset(self) -> None:
        """Wake ``run``: the deadlines are those of another broker."""
        self._changed.set()

    async def run(self) -> None:
        """Call ``fire`` at each deadline, until cancelled; with a virtual clock, never."""
        while True:
            self._changed = anyio.Event()
            deadline = None if isinstance(self._clock, VirtualClock) else self._deadline_ms()
            self._waiting_until = deadline
            if deadline is None:
                await self._changed.wait()
                continue
            with anyio.move_on_after(max(deadline - self.now_ms(), 0) / 1000):
                await self._changed.wait()
            if self.now_ms() >= deadline:
                self._fire()
                await anyio.lowlevel.checkpoint()

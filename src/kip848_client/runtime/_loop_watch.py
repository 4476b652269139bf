"""Checks the clock about once a second, to detect a blocked event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kip848_client.core.ports import Clock

__all__ = ["LoopWatch"]

EVERY_MS: Final = 1_000


class LoopWatch:
    """Calls ``late`` with the delay of each check in ms.

    The membership's timers would not do: none is due while a heartbeat is in flight.
    """

    def __init__(self, clock: Clock, late: Callable[[int], None]) -> None:
        self._clock = clock
        self._late = late
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Check from now on, until ``stop``."""
        due_ms = self._clock.now_ms() + EVERY_MS
        self._alarm = self._loop.call_later(EVERY_MS / 1000, self._look, due_ms)

    def stop(self) -> None:
        """Stop checking."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _look(self, due_ms: int) -> None:
        late_ms = max(0, self._clock.now_ms() - due_ms)
        self.start()
        self._late(late_ms)

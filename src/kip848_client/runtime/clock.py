"""The event loop's clock, the only source of time, and its relation to the wall clock."""

from __future__ import annotations

import asyncio
import time

from kip848_client.core.ports import Clock

__all__ = ["LoopClock", "wall_clock_origin_ms"]


class LoopClock:
    """``Clock`` in whole milliseconds of the event loop's time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time

    def now_ms(self) -> int:
        """Milliseconds since some fixed moment."""
        return int(self._time() * 1000)

    def left_s(self, then_ms: int) -> float:
        """Seconds until ``then_ms``, with sub-millisecond precision; not below 0."""
        return max(0.0, then_ms / 1000 - self._time())


def wall_clock_origin_ms(clock: Clock) -> int:
    """Return what to add to a time of ``clock`` to get milliseconds since 1970."""
    return int(time.time() * 1000) - clock.now_ms()

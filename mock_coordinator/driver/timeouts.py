"""Timeouts of connections, by the broker's clock.

Theory of operation
===================

Idle time of a connection, and the delay of a failed authentication's response, are measured by the
broker's clock. For a real clock the event loop's own timers are used directly. A ``VirtualClock``
fires when it is advanced to that time, however long that takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

import anyio

from mock_coordinator.driver.clock import Clock, VirtualClock

__all__ = ["LoopTimers", "TimerHandle", "move_on_after"]


class TimerHandle(Protocol):
    """A pending call that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the call. Harmless if it was made or cancelled already."""


def move_on_after(clock: Clock, delay_s: float | None) -> AbstractContextManager[anyio.CancelScope]:
    """A cancel scope that ends after ``delay_s`` seconds of a clock; ``None`` for no limit."""
    if delay_s is None or not isinstance(clock, VirtualClock):
        return anyio.move_on_after(delay_s)
    return _virtual_scope(clock, delay_s)


@contextmanager
def _virtual_scope(clock: VirtualClock, delay_s: float) -> Generator[anyio.CancelScope]:
    with anyio.CancelScope() as scope:
        alarm = clock.call_later(_ms(delay_s), scope.cancel)
        try:
            yield scope
        finally:
            alarm.cancel()


class LoopTimers:
    """Timers of an asyncio event loop, or of a virtual clock in its place.

    A loop fires them after it has delivered the data that had arrived by then.
    """

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._clock: Final = clock if isinstance(clock, VirtualClock) else None

    def call_later(self, delay_ms: int, function: Callable[[], None]) -> TimerHandle:
        """Call a function in ``delay_ms`` milliseconds."""
        if self._clock is None:
            return self._loop.call_later(delay_ms / 1000, function)
        return self._clock.call_later(delay_ms, function)


def _ms(delay_s: float) -> int:
    return round(delay_s * 1000)

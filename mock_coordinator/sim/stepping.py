"""Drives one pure core in virtual time: events one by one, each with all that it leads to, and the
core's timer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from mock_coordinator.sim.kernel import Kernel, Timer

__all__ = ["Stepping"]

E = TypeVar("E")


class Stepping(Generic[E]):
    """``step`` takes one event and performs what follows. ``due_ms`` says when the core wants to
    hear of the time if nothing happens before: then ``fire`` is called, as soon as ``enter`` lets
    something happen in the process."""

    def __init__(
        self,
        kernel: Kernel,
        step: Callable[[E], None],
        due_ms: Callable[[], int | None],
        fire: Callable[[], None],
        enter: Callable[[Callable[[], None]], None],
    ) -> None:
        self._kernel = kernel
        self._step = step
        self._due_ms = due_ms
        self._fire = fire
        self._enter = enter
        self._inbox: deque[E] = deque()
        self._is_stopped = False
        self._alarm: Timer | None = None
        self.is_stepping = False
        """Whether an event is being taken: what is posted meanwhile is taken after it."""

    def post(self, event: E) -> None:
        """Give the core an event; it is taken now, or when the step of the moment is done."""
        self._inbox.append(event)
        if self.is_stepping:
            return
        self.is_stepping = True
        while self._inbox and not self._is_stopped:
            self._step(self._inbox.popleft())
        self.is_stepping = False
        self._set_alarm()

    def stop(self) -> None:
        """Take no event any more."""
        self._is_stopped = True
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        due_ms = None if self._is_stopped else self._due_ms()
        if due_ms is not None:
            self._alarm = self._kernel.at(due_ms, lambda: self._enter(self._fire))

"""Drives one pure core: events in, at once and in order; its timer; and the tasks that it starts.

``post`` gives the core an event and performs the commands of the step before it returns: nothing is
awaited in between, so whoever posts finds done what the event means. What takes time is a task of
the task group that lives inside ``run`` and nowhere else; its end is the next event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from kip848_client.core.ports import Clock

__all__ = ["Stepping"]

E = TypeVar("E")


class Stepping(Generic[E]):
    """``step`` takes one event and performs what follows; an error out of it is a bug of ours, and
    ends ``run``. ``due_ms`` says when the core wants ``timer`` if nothing happens before."""

    def __init__(
        self,
        step: Callable[[E], None],
        due_ms: Callable[[], int | None],
        timer: Callable[[], E],
        clock: Clock,
    ) -> None:
        self._step = step
        self._due_ms = due_ms
        self._timer = timer
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._group: TaskGroup | None = None
        self._inbox: deque[E] = deque()
        self._to_start: deque[tuple[Callable[..., Coroutine[Any, Any, None]], tuple[Any, ...]]]
        self._to_start = deque()
        self._is_stepping = False
        self._stepped = asyncio.Event()
        self._broken: Exception | None = None
        self._called = asyncio.Event()
        """``run`` has something to do."""
        self._begun = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms: int | None = None

    @property
    def running(self) -> bool:
        """Whether ``run`` runs: only then commands are performed."""
        return self._group is not None

    async def begun(self) -> None:
        """Return when ``run`` runs."""
        await self._begun.wait()

    async def stepped(self) -> None:
        """Return after the next step, or when ``run`` ends."""
        await self._stepped.wait()

    def stir(self) -> None:
        """Let those who wait for a step look again."""
        self._wake()

    async def run(self) -> None:
        """Drive the core until cancelled. Raises what shows a bug of ours."""
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                self._begun.set()
                self._called.set()
                while self._broken is None:
                    await self._called.wait()
                    self._called.clear()
                    self._drain()
                    self._set_alarm()
                    while self._to_start:
                        function, arguments = self._to_start.popleft()
                        group.start_soon(function, *arguments)
                raise self._broken
        finally:
            self._group = None
            self._clear_alarm()
            self._wake()

    def start(self, function: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Do what takes time in a task of its own. Tasks begin in the order of these calls."""
        assert self._group is not None, "commands are performed while run() runs"
        if asyncio.current_task() is not None and not self._to_start:
            self._group.start_soon(function, *arguments)
        else:  # a timer of the loop, or a signal: anyio starts tasks from tasks only
            self._to_start.append((function, arguments))
            self._called.set()

    def post(self, event: E) -> None:
        """Give the core an event; it is taken now, or when the step of the moment is done. A call
        from outside of the running loop leaves it to ``run``."""
        self._inbox.append(event)
        if self._group is None or self._is_stepping:
            return
        if _is_in_loop():
            self._drain()
        else:
            self._called.set()

    def post_soon(self, event: E) -> None:
        """Give the core an event that is taken in the next turn of the loop, or before the next one
        that is posted."""
        self._inbox.append(event)
        self._called.set()

    def _drain(self) -> None:
        if not self._inbox or self._is_stepping:
            return
        self._is_stepping = True
        try:
            while self._inbox and self._broken is None:
                self._step(self._inbox.popleft())
        except Exception as err:  # noqa: BLE001 - raised by run(), which everybody hears of
            self._broken = err
            self._called.set()
        except BaseException:  # Ctrl-C: what of the step is done, nobody knows
            self._broken = RuntimeError("a step was interrupted; what it began is left half done")
            self._called.set()
            raise
        finally:
            self._is_stepping = False
        self._wake()
        self._set_alarm()

    def _set_alarm(self) -> None:
        due_ms = self._due_ms() if self._broken is None and self._group is not None else None
        if due_ms == self._alarm_ms:
            return
        self._clear_alarm()
        if due_ms is not None:
            self._alarm_ms = due_ms
            self._alarm = self._loop.call_later(self._clock.left_s(due_ms), self._on_alarm)

    def _clear_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._alarm_ms = None

    def _on_alarm(self) -> None:
        self._alarm = self._alarm_ms = None
        self.post(self._timer())

    def _wake(self) -> None:
        self._stepped.set()
        self._stepped = asyncio.Event()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

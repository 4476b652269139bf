"""Drives one pure core: its events, at once and in order; its timer; and its tasks.

``post`` passes an event to the core and performs the commands of the step before it returns:
nothing is awaited in between, so the effects of the event are in place when it returns. Anything
that takes time is a task of the task group, which lives inside ``run`` and nowhere else; its end is
the next event.
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
    """``step`` processes one event and performs its commands; an error from it is a bug of this
    client, and ends ``run``. ``due_ms`` returns when the core wants ``timer`` if nothing happens
    before."""

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
        """Set when ``run`` has something to do."""
        self._begun = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms: int | None = None

    @property
    def running(self) -> bool:
        """Whether ``run`` runs: commands are performed only then."""
        return self._group is not None

    async def begun(self) -> None:
        """Return when ``run`` runs."""
        await self._begun.wait()

    async def stepped(self) -> None:
        """Return after the next step, or when ``run`` ends."""
        await self._stepped.wait()

    def wake_waiters(self) -> None:
        """Wake the callers that wait for a step."""
        self._wake()

    async def run(self) -> None:
        """Drive the core until cancelled. Raises only errors that show a bug of this client."""
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
        """Run a function in a task of its own. Tasks begin in the order of these calls."""
        assert self._group is not None, "commands are performed while run() runs"
        if asyncio.current_task() is not None and not self._to_start:
            self._group.start_soon(function, *arguments)
        else:  # called by a timer or signal: anyio starts tasks from tasks only
            self._to_start.append((function, arguments))
            self._called.set()

    def post(self, event: E) -> None:
        """Pass an event to the core; it is processed now, or after the current step. A call from
        outside the running loop leaves it to ``run``."""
        self._inbox.append(event)
        if self._group is None or self._is_stepping:
            return
        if _is_in_loop():
            self._drain()
        else:
            self._called.set()

    def post_soon(self, event: E) -> None:
        """Pass an event to the core that is processed in the next loop iteration, or before the
        next posted event."""
        self._inbox.append(event)
        self._called.set()

    def _drain(self) -> None:
        if not self._inbox or self._is_stepping:
            return
        self._is_stepping = True
        try:
            while self._inbox and self._broken is None:
                self._step(self._inbox.popleft())
        except Exception as err:  # noqa: BLE001 - raised by run(), which ends the client
            self._broken = err
            self._called.set()
        except BaseException:  # Ctrl-C: it is unknown how far the step got
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

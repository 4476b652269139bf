"""Lets the tasks of drivers begin later than their commands are given.

A command is given in one turn of the event loop, and its task first runs in the next one. What the
task reads of its driver then may have changed in between. ``LateTasks`` holds such tasks back, so
that a test can put anything in between; ``begin_late`` lets every task begin some turns later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kip848_client.runtime._stepping import Stepping
from tests.unit.waiting import some_rounds, until

__all__ = ["LateTasks", "begin_late"]

_Function = Callable[..., Coroutine[Any, Any, None]]


def begin_late(monkeypatch: pytest.MonkeyPatch, turns: int = 1) -> None:
    """Let every task that a driver starts begin this many turns of the event loop later."""
    start = Stepping.start

    async def late(function: _Function, *arguments: Any) -> None:
        await some_rounds(turns)
        await function(*arguments)

    def start_late(self: Stepping[Any], function: _Function, *arguments: Any) -> None:
        start(self, late, function, *arguments)

    monkeypatch.setattr(Stepping, "start", start_late)


class LateTasks:
    """Holds the tasks of one function of a driver back, named by ``hold``, until ``release``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._held: str | None = None
        self._released = asyncio.Event()
        self.count = 0
        """How many tasks are held back, or were."""
        start = Stepping.start

        async def held(function: _Function, *arguments: Any) -> None:
            self.count += 1
            await self._released.wait()
            await function(*arguments)

        def start_or_hold(steps: Stepping[Any], function: _Function, *arguments: Any) -> None:
            if function.__name__ == self._held:
                arguments = (function, *arguments)
                function = held
            start(steps, function, *arguments)

        monkeypatch.setattr(Stepping, "start", start_or_hold)

    def hold(self, name: str) -> None:
        """Hold back what begins from now on by calling the method of this name."""
        self._held = name

    async def one_is_held(self) -> None:
        """Return when a task is held back."""
        await until(lambda: self.count)

    def release(self) -> None:
        """Let them begin, and hold back no more."""
        self._held = None
        self._released.set()

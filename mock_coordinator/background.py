"""Tasks that run during a broker's ``async with`` block, which different tasks may enter and leave.

Theory of operation
===================

anyio's task groups must be left by the task that entered them. A test's fixture cannot promise
that: pytest-asyncio runs the code before and after its ``yield`` in two tasks. Under asyncio the
group therefore lives in a task of its own, which opens it, waits for the signal to stop, and closes
it. If something in it fails, the task that entered is cancelled, as by a task group, if it still
runs, and leaving raises the error.

Trio has no tasks without a group: there the group belongs to the entering task, which must also
leave it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final, Protocol

import anyio
import anyio.abc

__all__ = ["Background", "open_background"]

_log: Final = logging.getLogger("mock_coordinator")


class Background(Protocol):
    """Runs tasks until it is closed."""

    def start_soon(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a function until it ends or this is closed."""

    async def close(self) -> None:
        """Cancel all tasks. Raises their errors as an ``ExceptionGroup``."""


async def open_background() -> Background:
    """Open one in the running event loop. The caller must close it."""
    try:
        owner = asyncio.current_task()
    except RuntimeError:
        owner = None
    if owner is None:
        return await _OwnGroup.open()
    return await _HostTask.open(owner)


class _OwnGroup:
    """A task group of the task that opens it, which must also close it."""

    def __init__(self, group: anyio.abc.TaskGroup, stack: AsyncExitStack) -> None:
        self._group: Final = group
        self._stack: Final = stack

    @classmethod
    async def open(cls) -> _OwnGroup:
        stack = AsyncExitStack()
        group: anyio.abc.TaskGroup = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(group.cancel_scope.cancel)
        return cls(group, stack)

    def start_soon(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._group.start_soon(function)

    async def close(self) -> None:
        # an error of the body goes on as it is: handing it to the task group would wrap it
        await self._stack.aclose()


class _HostTask:
    """A task group in an asyncio task of its own."""

    def __init__(self, owner: asyncio.Task[object]) -> None:
        self._owner: Final = owner
        self._group: anyio.abc.TaskGroup | None = None
        self._opened: Final = asyncio.Event()
        self._stop: Final = asyncio.Event()
        self._cancelled_owner = False
        self._host: Final = asyncio.create_task(self._run(), name="mock broker")
        self._host.add_done_callback(self._ended)

    @classmethod
    async def open(cls, owner: asyncio.Task[object]) -> _HostTask:
        home = cls(owner)
        try:
            await home._opened.wait()
        except BaseException:
            home._stop.set()
            raise
        return home

    async def _run(self) -> None:
        async with anyio.create_task_group() as self._group:
            self._opened.set()
            await self._stop.wait()
            self._group.cancel_scope.cancel()

    def _ended(self, host: asyncio.Task[None]) -> None:
        if self._stop.is_set() or host.cancelled():
            return
        failure = host.exception()
        # a full disk is not a bug of the broker, and leaving the block raises it: log no traceback
        if not isinstance(failure, ExceptionGroup) or failure.split(OSError)[1] is not None:
            _log.error("the broker has failed", exc_info=failure)
        if not self._owner.done():
            self._cancelled_owner = True
            self._owner.cancel()

    def start_soon(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._group is None:
            raise RuntimeError("the broker has not been started")
        self._group.start_soon(function)

    async def close(self) -> None:
        self._stop.set()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({self._host})
        if self._cancelled_owner and asyncio.current_task() is self._owner:
            self._owner.uncancel()
        if not self._host.cancelled():
            self._host.result()

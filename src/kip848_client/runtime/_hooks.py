"""Calls a user's code, which may be a coroutine, for a limited time, and tells how it failed."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Final

import anyio

from kip848_client.core.shown import told
from kip848_client.errors import CallbackError

__all__ = ["call_hook"]

_log = logging.getLogger("kip848_client")

_REPEAT_CANCEL_S: Final = 1.0
"""Between two cancellations of a method that overran its time and does not end."""
_PATIENCE_S: Final = 0.5
"""What a method that was cancelled gets to end, when the client is being closed."""


def _ignore(_task: asyncio.Task[None]) -> None:
    """Nobody wants the task."""


async def call_hook(
    hook: Callable[[], Any],
    name: str,
    timeout_ms: int,
    *,
    began: Callable[[asyncio.Task[None]], None] = _ignore,
    leaves_alone: bool = False,
) -> CallbackError | None:
    """Call a user's code, which may be a coroutine; returns the failure instead of raising it.

    The method runs in a task of its own, which ``began`` gets. So a CancelledError that comes out
    of it is known from one that is meant for us: who cancels a worker and awaits it lets one out.
    When we are cancelled the method is cancelled too, and left to itself if it does not end soon:
    it must not hold up who waits for us. ``leaves_alone``: so is one that has overrun its time.
    """
    task = asyncio.get_running_loop().create_task(_called(hook), name=name)
    began(task)
    try:
        await asyncio.wait([task], timeout=timeout_ms / 1000)
        overran = not task.done()
        while not task.done():  # again and again, but with pauses: it may have swallowed one
            task.cancel()
            await asyncio.wait([task], timeout=_REPEAT_CANCEL_S)
            if leaves_alone:
                break
    except asyncio.CancelledError:
        await _end(task, name)
        raise
    return _failure(task, name, timeout_ms if overran else None)


async def _called(hook: Callable[[], Any]) -> None:
    result = hook()
    if inspect.isawaitable(result):
        await result


async def _end(task: asyncio.Task[None], name: str) -> None:
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait([task], timeout=_PATIENCE_S)
    if not task.done():
        _log.error("%s does not end although it was cancelled; it is not waited for", name)
        task.add_done_callback(_retrieve)
    else:
        _retrieve(task)


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # or asyncio complains that its result was never read


def _failure(task: asyncio.Task[None], name: str, overran_ms: int | None) -> CallbackError | None:
    cause: BaseException | None
    if not task.done():
        task.add_done_callback(_retrieve)
        return CallbackError(
            f"{name} did not return within {overran_ms} ms, and does not end although it was "
            "cancelled; it is left alone"
        )
    if task.cancelled():
        cause = asyncio.CancelledError()
        said = "let a CancelledError out (of a task that it awaits?)"
    else:
        cause = task.exception()
        said = "" if cause is None else f"raised {told(cause)}"
    if overran_ms is not None:
        cause = TimeoutError() if task.cancelled() else cause
        said = f"did not return within {overran_ms} ms and was cancelled"
    elif cause is None:
        return None
    failed = CallbackError(f"{name} {said}")
    failed.__cause__ = cause
    return failed

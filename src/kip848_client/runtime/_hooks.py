"""Calls a user's code, sync or async, with a timeout, and returns its failure."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, Final

import anyio

from kip848_client.core.short import error_text
from kip848_client.errors import CallbackError

__all__ = ["call_hook"]

_log = logging.getLogger("kip848_client")

_REPEAT_CANCEL_S: Final = 1.0
"""Time between two cancellations of a method that overran its timeout and does not end."""
_PATIENCE_S: Final = 0.5
"""Time for a cancelled method to end when the client is being closed."""


def _ignore(_task: asyncio.Task[None]) -> None:
    """Ignore the task."""


async def call_hook(
    hook: Callable[[], Any],
    name: str,
    timeout_ms: int,
    *,
    began: Callable[[asyncio.Task[None]], None] = _ignore,
    leaves_alone: bool = False,
) -> CallbackError | None:
    """Call a user's code, sync or async; returns the failure instead of raising it.

    The method runs in a task of its own, which is passed to ``began``. So a CancelledError raised
    by the method differs from one meant for us: code that cancels a worker task and awaits it
    raises one. When we are cancelled, the method is cancelled too, and abandoned if it does not end
    soon: it must not block our caller. ``leaves_alone``: also abandon a method that has overrun its
    timeout.
    """
    task = asyncio.get_running_loop().create_task(_called(hook), name=name)
    began(task)
    try:
        await asyncio.wait([task], timeout=timeout_ms / 1000)
        overran = not task.done()
        while not task.done():  # repeatedly, with pauses: it may have swallowed one
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
        task.exception()  # otherwise asyncio reports a result that was never read


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
        said = "" if cause is None else f"raised {error_text(cause)}"
    if overran_ms is not None:
        cause = TimeoutError() if task.cancelled() else cause
        said = f"did not return within {overran_ms} ms and was cancelled"
    elif cause is None:
        return None
    failed = CallbackError(f"{name} {said}")
    failed.__cause__ = cause
    return failed

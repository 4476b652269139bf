"""Runs a user's assignor: a coroutine in the event loop, a plain method in a thread.

The thread is a dedicated one, not from a pool: a thread cannot be ended, and one that never ends
must neither keep the next computation waiting nor the interpreter from exiting.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from kip848_client.core.client_assignors import AssignorFailed, AssignorMetadata
from kip848_client.core.short import error_text, short

__all__ = ["AssignorRun", "checked_metadata", "run_assignor"]

_log = logging.getLogger("kip848_client")

_INT8: Final = range(-128, 128)


class AssignorRun:
    """The current run, so that it can be abandoned."""

    def __init__(self) -> None:
        self._running: tuple[int, asyncio.Task[Any]] | None = None
        self._abandoned: int | None = None
        """A run that was abandoned before it began."""

    async def of(
        self,
        number: int,
        name: str,
        assign: Callable[..., object],
        arguments: tuple[Any, ...],
        timeout_ms: int,
        extra: dict[str, object],
    ) -> object:
        """Return the result of ``assign``. Raises ``AssignorFailed`` if it raises, is cancelled or
        takes too long; ``__cause__`` has what it raised."""
        if number == self._abandoned:
            raise AssignorFailed("assign() was not called: its result is no longer needed")
        run = run_assignor(assign, extra, *arguments)
        task = asyncio.get_running_loop().create_task(run, name=f"assignor {name}")
        self._running = number, task
        try:
            await asyncio.wait([task], timeout=timeout_ms / 1000)
        finally:
            if not task.done():
                task.cancel()
                task.add_done_callback(_retrieve)
        if not task.done():
            raise AssignorFailed(f"assign() did not return within {timeout_ms} ms")
        if task.cancelled():
            raise AssignorFailed("assign() was cancelled")
        cause = task.exception()
        if cause is not None:
            raise AssignorFailed(f"assign() raised {error_text(cause)}") from cause
        return task.result()

    def abandon(self, number: int) -> None:
        """Abandon this run. A thread runs on, to no effect."""
        if self._running is not None and self._running[0] == number:
            self._running[1].cancel()
        else:
            self._abandoned = number


async def run_assignor(
    assign: Callable[..., Any], extra: dict[str, object], *arguments: Any
) -> object:
    """Run an assignor; returns or raises what it does."""
    if inspect.iscoroutinefunction(assign):
        return await assign(*arguments)
    returned: object = await _in_thread(assign, extra, *arguments)
    return await returned if inspect.isawaitable(returned) else returned


async def _in_thread(
    function: Callable[..., object], extra: dict[str, object], *arguments: Any
) -> object:
    """Run ``function`` in a dedicated thread that may be left behind; returns or raises what it
    does."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def tell(result: object, failure: BaseException | None) -> None:
        if answer.done():
            return
        if failure is None:
            answer.set_result(result)
        else:
            answer.set_exception(failure)

    def work() -> None:
        result: object = None
        failure: BaseException | None = None
        try:
            result = context.run(function, *arguments)
        except BaseException as err:  # noqa: BLE001 - it must not end in the thread, unseen
            failure = err
            if not isinstance(err, Exception) or isinstance(err, StopIteration):
                # a future refuses StopIteration, and the others would end the event loop
                failure = RuntimeError(error_text(err))
                failure.__cause__ = err
        try:
            loop.call_soon_threadsafe(tell, result, failure)
        except RuntimeError:
            _log.debug("an assignor returned after its event loop was closed", extra=extra)

    threading.Thread(target=work, name="kip848-assignor", daemon=True).start()
    return await answer


def _retrieve(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # otherwise asyncio reports a result that was never read


def checked_metadata(said: object, low: int, high: int) -> AssignorMetadata:
    """Check that an assignor's metadata can be sent. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(said, AssignorMetadata):
        raise TypeError(f"it returned {short(said)}; expected AssignorMetadata")
    data: Any = said.data
    version: Any = said.version
    reason: Any = said.reason
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"data = {short(data)}: expected bytes")
    if not isinstance(version, int) or not low <= version <= high:
        raise ValueError(f"version = {short(version)}: expected one from {low} to {high}")
    if not isinstance(reason, int) or reason not in _INT8:
        raise ValueError(f"reason = {short(reason)}: expected a number from -128 to 127")
    return said

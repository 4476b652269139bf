"""Sends a request to several brokers and takes the first answer.

A broker that accepts requests and never answers costs the whole request timeout. So after a second
the next one is asked in parallel, and the first answer wins. The others are awaited in the
background: a connection without an answer must be detected, or it would be used again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from kip848_client.core.ports import NotSent
from kip848_client.errors import Kip848Error, TransportError
from kip848_client.runtime.net._links import Link

__all__ = ["FirstAnswer"]

_HEAD_START_S: Final = 1.0
_AT_ONCE_MAX: Final = 3
"""Maximum of parallel requests: a large answer takes time, too, and must not be requested from all
brokers."""


class FirstAnswer:
    """Sends requests to brokers. ``close`` ends those still open."""

    def __init__(self, head_start_s: float | None = None) -> None:
        self._head_start_s = _HEAD_START_S if head_start_s is None else head_start_s
        self._late: set[asyncio.Task[Any]] = set()

    async def of(
        self, links: Iterable[Link], ask: Callable[[Link], Coroutine[Any, Any, Any]]
    ) -> Any:
        """Return the first answer. After a failed link the next one is tried at once.

        Raises the last ``TransportError`` if all have failed, and at once any error that another
        broker would give, too.
        """
        waiting = deque(links)
        asking: set[asyncio.Task[Any]] = set()
        last: Kip848Error = NotSent("no broker is known")
        try:
            while waiting or asking:
                if waiting and len(asking) < _AT_ONCE_MAX:
                    link = waiting.popleft()
                    asking.add(asyncio.get_running_loop().create_task(ask(link)))
                may_ask_more = bool(waiting) and len(asking) < _AT_ONCE_MAX
                done, asking = await asyncio.wait(
                    asking,
                    timeout=self._head_start_s if may_ask_more else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                errors = [task.exception() for task in done]
                for task, error in zip(done, errors, strict=True):
                    if error is None:
                        self._leave(asking)
                        asking = set()
                        return task.result()
                for error in errors:
                    if not isinstance(error, TransportError):
                        assert error is not None, "an answer was returned"
                        raise error
                    last = error
        finally:
            await _end(asking)
        raise last

    async def close(self) -> None:
        """End all open requests."""
        await _end(tuple(self._late))

    def _leave(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        for task in tasks:
            self._late.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # its result is not needed


async def _end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

"""A thread that unpacks a large batch, while the event loop goes on.

One batch at a time: so memory grows by one unpacked batch, not by one for each partition. It is a
thread of its own, because the loop's pool may be full of the application's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

__all__ = ["UnpackingThread"]


class UnpackingThread:
    """Unpacks for one consumer. ``done`` is called in the event loop after each batch."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._is_busy = False

    def begin(self, work: Callable[[], None]) -> None:
        """Do ``work`` in a thread, unless another batch is being unpacked: ask again after
        ``done``."""
        if self._is_busy:
            return
        loop = asyncio.get_running_loop()
        thread = Thread(target=self._run, args=(work, loop), name="kip848-unpacking", daemon=True)
        thread.start()
        self._is_busy = True

    def _run(self, work: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        work()
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        self._is_busy = False
        self._done()

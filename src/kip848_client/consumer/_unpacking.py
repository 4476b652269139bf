"""Decompresses a large batch in a thread, while the event loop continues.

It handles one batch at a time, so memory grows by one decompressed batch and not by one per
partition. It uses a thread of its own, because the application may fill the loop's pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

__all__ = ["UnpackingThread"]


class UnpackingThread:
    """Decompresses for one consumer. ``done`` is called in the event loop after each batch."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._is_busy = False

    def begin(self, work: Callable[[], None]) -> None:
        """Run ``work`` in a thread, unless it is busy with another batch; then call again after
        ``done``."""
        if self._is_busy:
            return
        loop = asyncio.get_running_loop()
        thread = Thread(target=self._run, args=(work, loop), name="kip848-unpacking", daemon=True)
        thread.start()
        self._is_busy = True

    def _run(self, work: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        work()
        with suppress(RuntimeError):  # the loop was closed, so no task waits for this
            loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        self._is_busy = False
        self._done()

"""An event loop in a thread: Spark calls from its own thread and waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import closing
from typing import Any, TypeVar

from kip848_client.errors import RequestTimedOut

__all__ = ["LoopThread"]

T = TypeVar("T")


class LoopThread:
    """Runs coroutines in its own thread, which ends with the process or with ``close``."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with closing(self._loop):
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine, and return at once."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T], timeout_ms: int) -> T:
        """Run a coroutine to its end. Raises what it raises, and ``RequestTimedOut`` if it takes
        too long: Spark itself waits for a source without a timeout."""
        future = self.begin(work)
        try:
            return future.result(timeout_ms / 1000)
        except TimeoutError:
            if future.done():  # its own
                raise
            future.cancel()
            raise RequestTimedOut(f"no answer from the brokers within {timeout_ms} ms") from None

    @property
    def is_closed(self) -> bool:
        """Whether it can no longer run coroutines."""
        return self._loop.is_closed()

    def close(self) -> None:
        """Stop the loop, and cancel what runs in it."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)

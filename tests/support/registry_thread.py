"""A fake schema registry in a thread of its own, for code that is not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tests.support.fake_registry import FakeRegistry, fake_registry

__all__ = ["registry_thread"]

_START_S: Final = 10


@contextmanager
def registry_thread() -> Generator[FakeRegistry]:
    """One that listens on this machine inside the ``with`` block."""
    started = threading.Event()
    found: list[FakeRegistry] = []
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with fake_registry() as registry:
            found.append(registry)
            started.set()
            await over.wait()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run, name="fake registry")
    thread.start()
    try:
        assert started.wait(_START_S)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()

"""Checks the cluster's topics periodically, as aiokafka's clients do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from kip848_client.aiokafka._parents import errors

__all__ = ["TopicWatcher"]

_log = logging.getLogger("kip848_client")


class TopicWatcher:
    """Calls ``look`` every ``age_ms`` (``metadata_max_age_ms``), and soon after ``soon``. A
    ``KafkaError`` that it raises is logged."""

    def __init__(self, look: Callable[[], Awaitable[None]], age_ms: int) -> None:
        self._look = look
        self._age_s = age_ms / 1000
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def soon(self) -> None:
        """Check again soon, if ``begin`` was called."""
        self._changed.set()

    async def begin(self) -> None:
        """Check now, and then periodically. Raises what the first check raises."""
        self._changed.clear()
        await self._look()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="kip848-topics")

    async def end(self) -> None:
        """Stop checking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._age_s):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            try:
                await self._look()
            except errors.KafkaError as err:
                _log.warning("looking up the topics to read failed: %s", err)

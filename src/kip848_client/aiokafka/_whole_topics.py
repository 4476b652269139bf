"""Topics without a group: every partition of them, also those that are added later."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any, Final

from kip848_client._aiokafka._client import LinkedClient
from kip848_client._aiokafka._theirs import errors
from kip848_client.aiokafka._inner import InnerConsumer
from kip848_client.errors import LocalProtocolError

__all__ = ["WholeTopics"]

_log = logging.getLogger("kip848_client")

_INTERNAL: Final = "__"


class WholeTopics:
    """Assigns all partitions of topics, or of those that a pattern matches, to ``inner``."""

    def __init__(self, inner: InnerConsumer, client: LinkedClient, age_ms: int) -> None:
        self._inner = inner
        self._client = client
        self._age_s = age_ms / 1000
        self._topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def _wants(self) -> bool:
        return bool(self._topics) or self._pattern is not None

    def want(self, topics: frozenset[str], pattern: re.Pattern[str] | None) -> None:
        """Read these from now on, or from the start on."""
        if self._inner.assignment() and not self._wants and (topics or pattern is not None):
            raise LocalProtocolError("partitions were assigned by hand; unsubscribe() first")
        self._topics, self._pattern = topics, pattern
        self._changed.set()

    def check_unused(self) -> None:
        """Raise ``LocalProtocolError`` when topics are read."""
        if self._wants:
            raise LocalProtocolError("the consumer is subscribed; unsubscribe() first")

    async def begin(self) -> None:
        """Find the partitions, and go on looking for new ones. Raises aiokafka's error for a topic
        that is not there or that we may not see."""
        if self._wants:
            await self._assign()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="kip848-topics")

    async def end(self) -> None:
        """Look no more."""
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
            if not self._wants:
                continue
            try:
                await self._assign()
            except errors.KafkaError as err:
                _log.warning("the partitions of what is read cannot be found out: %s", err)

    async def _assign(self) -> None:
        self._changed.clear()
        pattern = self._pattern
        client = self._client
        found: Any
        if pattern is None:
            found = await client.partitions_of(self._topics)
        else:
            found = await client.partitions_where(
                lambda name: not name.startswith(_INTERNAL) and bool(pattern.match(name))
            )
        if self._wants and found != self._inner.assignment():
            self._inner.assign(found)

"""Topics without a group: all their partitions, including those that are added later."""

from __future__ import annotations

import re
from typing import Any

from kip848_client.aiokafka._adapters import ConsumerAdapter
from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._topic_watcher import TopicWatcher
from kip848_client.errors import LocalProtocolError

__all__ = ["WholeTopics"]


class WholeTopics:
    """Assigns all partitions of topics, or of topics that a pattern matches, to ``inner``."""

    def __init__(
        self, inner: ConsumerAdapter, client: LinkedClient, age_ms: int, *, with_internal: bool
    ) -> None:
        self._inner = inner
        self._client = client
        self._with_internal = with_internal
        self._topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._topic_watcher = TopicWatcher(self._assign, age_ms)

    @property
    def _wants(self) -> bool:
        return bool(self._topics) or self._pattern is not None

    def want(self, topics: frozenset[str], pattern: re.Pattern[str] | None) -> None:
        """Read these topics, after the start."""
        if self._inner.assignment() and not self._wants and (topics or pattern is not None):
            raise LocalProtocolError("partitions were assigned manually; call unsubscribe() first")
        self._topics, self._pattern = topics, pattern
        self._topic_watcher.soon()

    def check_unused(self) -> None:
        """Raise ``LocalProtocolError`` if topics are read."""
        if self._wants:
            raise LocalProtocolError("the consumer is subscribed; call unsubscribe() first")

    async def begin(self) -> None:
        """Find the partitions, and keep looking for new ones. Raises aiokafka's error for a topic
        that does not exist or that we may not see."""
        await self._topic_watcher.begin()

    async def end(self) -> None:
        """Stop looking for partitions."""
        await self._topic_watcher.end()

    async def _assign(self) -> None:
        topics, pattern = self._topics, self._pattern
        client = self._client
        found: Any
        if pattern is None:
            if not topics:
                return
            found = await client.partitions_of(topics)
        else:
            names = await client.topics_where(pattern.match, with_internal=self._with_internal)
            found = client.partitions_known(names)
        if (topics, pattern) != (self._topics, self._pattern):
            self._topic_watcher.soon()  # the subscription has changed meanwhile
        elif found != self._inner.assignment():
            self._inner.assign(found)

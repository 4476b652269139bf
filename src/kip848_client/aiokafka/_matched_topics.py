"""A pattern with a group: the client matches topics, as aiokafka's does.

KIP-848 lets the broker match, with RE2 and against whole names. aiokafka's users write Python
expressions, perhaps with look-arounds, that match at the beginning of a name; they rely on
``subscription()``, ``metadata_max_age_ms`` and ``exclude_internal_topics``. So the client matches
the names, and subscribes to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kip848_client.aiokafka._adapters import ConsumerAdapter
from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._topic_watcher import TopicWatcher
from kip848_client.errors import LocalProtocolError

__all__ = ["MatchedTopics"]


class MatchedTopics:
    """Subscribes ``inner`` to the topics that a pattern matches. ``nothing`` is called if there are
    none."""

    def __init__(
        self,
        inner: ConsumerAdapter,
        client: LinkedClient,
        age_ms: int,
        *,
        with_internal: bool,
        nothing: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._client = client
        self._with_internal = with_internal
        self._nothing = nothing
        self._pattern: re.Pattern[str] | None = None
        self._listener: Any = None
        self._is_new = False
        """Whether the consumer is not subscribed with this pattern and listener yet."""
        self._topic_watcher = TopicWatcher(self._look, age_ms)

    @property
    def names(self) -> frozenset[str]:
        """The topics that matched last."""
        return frozenset() if self._is_new else self._inner.subscription()

    def want(self, pattern: re.Pattern[str], listener: Any) -> None:
        """Consume matching topics, after the start. Raises ``LocalProtocolError`` if partitions
        were assigned manually."""
        self._inner.check_free()
        self._pattern, self._listener, self._is_new = pattern, listener, True
        self._topic_watcher.soon()

    def forget(self) -> None:
        """Drop the pattern."""
        self._pattern = None

    def check_unused(self) -> None:
        """Raise ``LocalProtocolError`` if there is a pattern."""
        if self._pattern is not None:
            raise LocalProtocolError("the consumer is subscribed; call unsubscribe() first")

    async def begin(self) -> None:
        """Find the topics, join the group for them, and keep looking for new ones. Raises
        ``KafkaError``."""
        await self._topic_watcher.begin()

    async def end(self) -> None:
        """Stop looking for topics."""
        await self._topic_watcher.end()

    async def _look(self) -> None:
        pattern = self._pattern
        if pattern is None:
            return
        names = await self._client.topics_where(pattern.match, with_internal=self._with_internal)
        if pattern is not self._pattern:
            self._topic_watcher.soon()  # the subscription has changed meanwhile
            return
        is_new, self._is_new = self._is_new, False
        if names and (is_new or names != self._inner.subscription()):
            self._inner.subscribe(names, listener=self._listener)
            if is_new:
                self._inner.greet_listener()
        elif not names and self._inner.subscription():
            self._inner.unsubscribe()
        if not names:
            self._nothing()

"""A pattern with a group: the topics that the client finds, as aiokafka's finds them.

KIP-848 lets the broker match, with RE2 and against whole names. aiokafka's users have written
expressions of Python that match at the beginning, look-arounds among them; they rely on
``subscription()``, on ``metadata_max_age_ms`` and on ``exclude_internal_topics``. So the names are
looked for here, and the group hears of names.
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
    """Subscribes ``inner`` to what a pattern matches. ``nothing`` is called when a look has found
    nothing to subscribe to."""

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
        """Whether the group has not heard of the pattern and its listener."""
        self._topic_watcher = TopicWatcher(self._look, age_ms)

    @property
    def names(self) -> frozenset[str]:
        """The topics that were found last."""
        return frozenset() if self._is_new else self._inner.subscription()

    def want(self, pattern: re.Pattern[str], listener: Any) -> None:
        """Consume these from now on, or from the start on. Raises ``LocalProtocolError`` when
        partitions were assigned by hand."""
        self._inner.check_free()
        self._pattern, self._listener, self._is_new = pattern, listener, True
        self._topic_watcher.soon()

    def forget(self) -> None:
        """Others say what is consumed."""
        self._pattern = None

    def check_unused(self) -> None:
        """Raise ``LocalProtocolError`` while there is a pattern."""
        if self._pattern is not None:
            raise LocalProtocolError("the consumer is subscribed; unsubscribe() first")

    async def begin(self) -> None:
        """Find the topics, join the group for them, and go on looking for new ones. Raises
        ``KafkaError``."""
        await self._topic_watcher.begin()

    async def end(self) -> None:
        """Look no more."""
        await self._topic_watcher.end()

    async def _look(self) -> None:
        pattern = self._pattern
        if pattern is None:
            return
        names = await self._client.topics_where(pattern.match, with_internal=self._with_internal)
        if pattern is not self._pattern:
            self._topic_watcher.soon()  # what was asked for is not wanted any more
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

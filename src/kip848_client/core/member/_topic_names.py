"""Look-ups of topic names: one request at a time, repeated with a growing pause.

Assignments carry topic ids; users know names. An id can stay without a name for a long time
(metadata lags behind the coordinator, or the topic is deleted or forbidden), and retries must
neither stop nor spin.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.backoff import backoff_ms
from kip848_client.core.member._commands import Command, ResolveTopics
from kip848_client.core.member._model import MemberSettings
from kip848_client.core.types import TopicId

__all__ = ["NameLookup"]


class NameLookup:
    """Decides when to look up names, and tracks the open request."""

    def __init__(
        self,
        settings: MemberSettings,
        jitter: Callable[[int], int],
        emit: Callable[[Command], None],
    ) -> None:
        self._emit = emit
        self._settings = settings
        self._jitter = jitter
        self._asked: tuple[TopicId, ...] | None = None
        self._at_ms = 0
        self._failures = 0
        self.queries = 0

    @property
    def is_open(self) -> bool:
        """Whether a request is open."""
        return self._asked is not None

    def due_ms(self, unresolved: tuple[TopicId, ...]) -> int | None:
        """When to send the next request, ``None`` if there is nothing to look up or one is open."""
        return None if self.is_open or not unresolved else self._at_ms

    def ask(self, now_ms: int, unresolved: tuple[TopicId, ...]) -> bool:
        """Request all of them, if a request is due; returns whether it was sent."""
        due_ms = self.due_ms(unresolved)
        if due_ms is None or now_ms < due_ms:
            return False
        self.queries += 1
        self._asked = unresolved
        self._emit(ResolveTopics(self.queries, unresolved))
        return True

    def answered(self, now_ms: int, query: int) -> tuple[TopicId, ...] | None:
        """Process an answer: returns the requested ids, ``None`` if its request is no longer
        open."""
        if self._asked is None or query != self.queries:
            return None
        asked, self._asked = self._asked, None
        settings = self._settings
        self._at_ms = now_ms + backoff_ms(
            self._failures, settings.retry_backoff_ms, settings.rejoin_backoff_max_ms, self._jitter
        )
        self._failures += 1
        return asked

    def ask_now(self) -> None:
        """Handle a new target: look up its names without a pause."""
        self._at_ms = 0
        self._failures = 0

    def reset(self) -> None:
        """Reset after the membership ended; the answer to an open request will be ignored."""
        self._asked = None
        self.ask_now()

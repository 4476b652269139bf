"""Asking for the names of topics: one question at a time, again with a growing pause.

Assignments carry topic ids; users know names. An id can stay without a name for long (metadata
lags behind the coordinator, or the topic is deleted or forbidden), and asking for it must neither
stop nor spin.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.backoff import backoff_ms
from kip848_client.core.member._commands import Command, ResolveTopics
from kip848_client.core.member._model import MemberSettings
from kip848_client.core.types import TopicId

__all__ = ["NameLookup"]


class NameLookup:
    """When to ask, and what was asked."""

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
        """Whether a question waits for its answer."""
        return self._asked is not None

    def due_ms(self, unresolved: tuple[TopicId, ...]) -> int | None:
        """When to ask next, ``None`` when there is nothing to ask or a question is open."""
        return None if self.is_open or not unresolved else self._at_ms

    def ask(self, now_ms: int, unresolved: tuple[TopicId, ...]) -> bool:
        """Ask for all of them, if a question is due; returns whether it was asked."""
        due_ms = self.due_ms(unresolved)
        if due_ms is None or now_ms < due_ms:
            return False
        self.queries += 1
        self._asked = unresolved
        self._emit(ResolveTopics(self.queries, unresolved))
        return True

    def answered(self, now_ms: int, query: int) -> tuple[TopicId, ...] | None:
        """An answer is here: the ids that were asked for, ``None`` when it belongs to a question
        that is not open any more."""
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
        """There is a new target: what it needs is asked without a pause."""
        self._at_ms = 0
        self._failures = 0

    def reset(self) -> None:
        """The membership ended; the answer to an open question is not wanted any more."""
        self._asked = None
        self.ask_now()

"""Asking for the names of topics: one question at a time, again with a growing pause.

Assignments carry topic ids; users know names. An id can stay without a name for long (metadata
lags behind the coordinator, or the topic is deleted or forbidden), and asking for it must neither
stop nor spin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kip848_client._types import TopicId
from kip848_client.member._heartbeat import backoff_ms
from kip848_client.member._model import MemberSettings
from kip848_client.member._reconcile import Ledger

__all__ = ["NameLookup"]


class NameLookup:
    """When to ask, what was asked, and what to do with the answer."""

    def __init__(
        self, settings: MemberSettings, ledger: Ledger, jitter: Callable[[int], int]
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._jitter = jitter
        self._asked: tuple[TopicId, ...] | None = None
        self._at_ms = 0
        self._failures = 0
        self.queries = 0

    @property
    def is_open(self) -> bool:
        """Whether a question waits for its answer."""
        return self._asked is not None

    def due_ms(self) -> int | None:
        """When to ask next, ``None`` when there is nothing to ask or a question is open."""
        if self.is_open or not self._ledger.unresolved():
            return None
        return self._at_ms

    def ask(self, now_ms: int) -> tuple[TopicId, ...]:
        """The ids to ask for now, numbered by ``queries``; empty when no question is due."""
        due_ms = self.due_ms()
        if due_ms is None or now_ms < due_ms:
            return ()
        self.queries += 1
        self._asked = self._ledger.unresolved()
        return self._asked

    def answered(self, now_ms: int, query: int, names: Mapping[TopicId, str]) -> bool:
        """Take in an answer; returns whether it belongs to the open question."""
        if self._asked is None or query != self.queries:
            return False
        asked, self._asked = self._asked, None
        self._ledger.name(asked, names)
        settings = self._settings
        self._at_ms = now_ms + backoff_ms(
            self._failures, settings.retry_backoff_ms, settings.rejoin_backoff_max_ms, self._jitter
        )
        self._failures += 1
        return True

    def hurry(self) -> None:
        """There is a new target: what it needs is asked without a pause."""
        self._at_ms = 0
        self._failures = 0

    def reset(self) -> None:
        """The membership ended; the answer to an open question is not wanted any more."""
        self._asked = None
        self.hurry()

"""What the member knows about its coordinator: whether it has one, and since when it is silent.

A lookup is asked for only when something wants to be sent, one at a time, with a backoff of its
own. Silence begins with a question (a lookup or a heartbeat) and ends with an answer that shows
the coordinator at work; a silence that lasts is reported again and again, since a consumer that is
out of its group without anybody noticing is the worst outcome of all.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.member._heartbeat import backoff_ms
from kip848_client.member._model import MemberSettings

__all__ = ["CoordinatorLink"]


class CoordinatorLink:
    """The member's view of its coordinator."""

    def __init__(self, settings: MemberSettings, jitter: Callable[[int], int]) -> None:
        self._settings = settings
        self._jitter = jitter
        self._failures = 0
        self._retry_ms = 0
        self._open = False
        self._silent_since_ms: int | None = None
        self._report_ms = 0
        self._reported = False
        self.known = False
        self.lookups = 0

    # -- lookup ------------------------------------------------------------------------------

    def begin_lookup(self, now_ms: int) -> int | None:
        """The number of a lookup to start now, or ``None`` when none is due."""
        if self.known or self._open or now_ms < self._retry_ms:
            return None
        self._open = True
        self.lookups += 1
        self.asked(now_ms)
        return self.lookups

    def take_lookup(self, number: int) -> bool:
        """Whether ``number`` is the open lookup; it is closed then."""
        if not self._open or number != self.lookups:
            return False
        self._open = False
        return True

    def found(self) -> None:
        """The lookup named a broker."""
        self.known = True
        self._failures = 0
        self._retry_ms = 0

    def lookup_failed(self, now_ms: int) -> None:
        """The lookup named none: the next one waits."""
        settings = self._settings
        self._retry_ms = now_ms + backoff_ms(
            self._failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )
        self._failures += 1

    def lost(self) -> None:
        """The broker that was known is not the coordinator, or cannot be reached."""
        self.known = False

    def next_lookup_ms(self) -> int | None:
        """When a lookup becomes due, ``None`` when nothing but an event can make one due."""
        return None if self.known or self._open else self._retry_ms

    # -- silence -----------------------------------------------------------------------------

    def asked(self, now_ms: int) -> None:
        """Something was sent to it, or it was looked for: from here on it is silent."""
        if self._silent_since_ms is None:
            self._silent_since_ms = now_ms
            self._report_ms = now_ms + self._settings.unreachable_after_ms

    def heard(self, now_ms: int) -> int | None:
        """It answered. Returns for how long it had been silent when that was reported."""
        silent = self.silent_ms(now_ms) if self._reported else None
        self.hush()
        if not self.known:
            self.asked(now_ms)  # that was its farewell: another one is being looked for
        return silent

    def hush(self) -> None:
        """Nothing is expected of it any more."""
        self._silent_since_ms = None
        self._reported = False

    def silent_ms(self, now_ms: int) -> int:
        """For how long it has owed an answer."""
        return 0 if self._silent_since_ms is None else now_ms - self._silent_since_ms

    def report_due_ms(self) -> int | None:
        """When its silence must be reported (again), ``None`` while it owes nothing."""
        return None if self._silent_since_ms is None else self._report_ms

    def reported(self, now_ms: int) -> None:
        """Its silence was reported."""
        self._reported = True
        self._report_ms = now_ms + self._settings.unreachable_after_ms

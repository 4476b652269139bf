"""Reporting of failed automatic commits: once, then once a minute, and when they succeed again.

They happen every few seconds, and while a coordinator is unavailable they all fail alike. A failure
because the epoch changed is part of any rebalance, and is reported each time, at a low level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.group._commands import (
    AutomaticCommitFailed,
    AutomaticCommitsRecovered,
    GroupCommand,
)
from kip848_client.core.group._reasons import by_reason
from kip848_client.core.offsets import CommitDone
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, Kip848Error

__all__ = ["AGAIN_MS", "CommitFailures"]

AGAIN_MS: Final = 60_000
"""Minimum time between two reports of failures of the same kind."""


class CommitFailures:
    """Tracks the failed commits by interval of one consumer."""

    def __init__(self, emit: Callable[[GroupCommand], None]) -> None:
        self._emit = emit
        self._since_ms: int | None = None
        """When the first reported failure of the current series happened."""
        self._again_ms: dict[object, int] = {}
        """By kind of failure: when the next one is reported."""

    def ended(self, now_ms: int, done: CommitDone) -> None:
        """Handle the end of a commit."""
        is_due = {kind: now_ms >= again_ms for kind, again_ms in self._again_ms.items()}
        for partitions, error in by_reason(done.failed):
            kind = _kind(error)
            passing = kind == ErrorCode.STALE_MEMBER_EPOCH
            if not passing:
                if not is_due.get(kind, True):
                    continue
                self._again_ms[kind] = now_ms + AGAIN_MS
                self._since_ms = now_ms if self._since_ms is None else self._since_ms
            self._emit(AutomaticCommitFailed(partitions, error, passing))
        if done.committed and not done.failed and self._since_ms is not None:
            self._emit(AutomaticCommitsRecovered(now_ms - self._since_ms))
            self._since_ms = None
            self._again_ms.clear()


def _kind(error: Kip848Error) -> object:
    """Group by code or type, because texts differ in times and numbers."""
    return error.code if isinstance(error, BrokerError) else type(error)

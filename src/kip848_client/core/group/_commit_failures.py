"""What is told of automatic commits that fail: once, then once a minute, and when it is over.

They come every few seconds, and while a coordinator is away each of them fails alike. One that
fails because the epoch moved is part of any rebalance, and is told each time, quietly.
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
"""Between two that are told and failed alike."""


class CommitFailures:
    """Of the commits by interval of one consumer."""

    def __init__(self, emit: Callable[[GroupCommand], None]) -> None:
        self._emit = emit
        self._since_ms: int | None = None
        """When the first of those failed that have failed in a row, and were told."""
        self._again_ms: dict[object, int] = {}
        """By what they failed with: when the next one is told."""

    def ended(self, now_ms: int, done: CommitDone) -> None:
        """One ended."""
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
    """Texts differ in times and numbers."""
    return error.code if isinstance(error, BrokerError) else type(error)

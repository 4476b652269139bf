"""Pauses between attempts that fail again and again (KIP-580), for the pure cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["Backoff", "Jitter", "backoff_ms"]

Jitter = Callable[[int], int]
"""Gets a pause in ms and gives it back varied by up to 20 %; ``lambda ms: ms`` varies nothing."""

_MAX_DOUBLINGS: Final = 20


def backoff_ms(failures: int, base_ms: int, cap_ms: int, jitter: Jitter) -> int:
    """Pause after the ``failures``-th failure in a row (from 0): doubling, capped, varied by up to
    20 %. A ``jitter`` that goes further is brought back (KAFKA-19813)."""
    pause = min(cap_ms, base_ms << min(failures, _MAX_DOUBLINGS))
    return max(1, min(max(jitter(pause), pause * 4 // 5), pause * 6 // 5))


class Backoff:
    """The pauses between failures in a row, each longer than the one before."""

    def __init__(self, base_ms: int, cap_ms: int, jitter: Jitter) -> None:
        self._base_ms = base_ms
        self._cap_ms = cap_ms
        self._jitter = jitter
        self._failures = 0

    def next_ms(self) -> int:
        """The pause after one more failure."""
        pause_ms = backoff_ms(self._failures, self._base_ms, self._cap_ms, self._jitter)
        self._failures += 1
        return pause_ms

    def reset(self) -> None:
        """An attempt succeeded."""
        self._failures = 0

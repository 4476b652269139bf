"""Exponential backoff between failing attempts (KIP-580), for the pure cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["Backoff", "Jitter", "backoff_ms"]

Jitter = Callable[[int], int]
"""Takes a pause in ms and returns it varied by up to 20 %; ``lambda ms: ms`` keeps it."""

_MAX_DOUBLINGS: Final = 20


def backoff_ms(failures: int, base_ms: int, cap_ms: int, jitter: Jitter) -> int:
    """Compute the pause after a failure: doubling, capped, varied by up to 20 % (KIP-580).

    Args:
        failures: Consecutive failures before this one, from 0.
        base_ms: The first pause.
        cap_ms: The longest pause before variation.
        jitter: Varies the pause; a larger deviation than 20 % is limited (KAFKA-19813).

    Returns:
        The pause in ms, at least 1.
    """
    pause = min(cap_ms, base_ms << min(failures, _MAX_DOUBLINGS))
    return max(1, min(max(jitter(pause), pause * 4 // 5), pause * 6 // 5))


class Backoff:
    """Increasing pauses between consecutive failures."""

    def __init__(self, base_ms: int, cap_ms: int, jitter: Jitter) -> None:
        self._base_ms = base_ms
        self._cap_ms = cap_ms
        self._jitter = jitter
        self._failures = 0

    def next_ms(self) -> int:
        """Return the pause in ms after one more failure."""
        pause_ms = backoff_ms(self._failures, self._base_ms, self._cap_ms, self._jitter)
        self._failures += 1
        return pause_ms

    def reset(self) -> None:
        """Start again with the shortest pause, after a success."""
        self._failures = 0

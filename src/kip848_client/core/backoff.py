"""Pauses between attempts that fail again and again (KIP-580), for the pure cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["Jitter", "backoff_ms"]

Jitter = Callable[[int], int]
"""Gets a pause in ms and gives it back varied by up to 20 %; ``lambda ms: ms`` varies nothing."""

_MAX_DOUBLINGS: Final = 20


def backoff_ms(failures: int, base_ms: int, cap_ms: int, jitter: Jitter) -> int:
    """Pause after the ``failures``-th failure in a row (from 0): doubling, capped, varied by up to
    20 %. A ``jitter`` that goes further is brought back (KAFKA-19813)."""
    pause = min(cap_ms, base_ms << min(failures, _MAX_DOUBLINGS))
    return max(1, min(max(jitter(pause), pause * 4 // 5), pause * 6 // 5))

"""Pauses between retries (KIP-580)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.runtime.random import CHANCE

__all__ = ["Backoff", "jittered"]

_JITTER: Final = 0.2
_DOUBLINGS_MAX: Final = 30
"""The number of doublings after which any limit is reached."""


def jittered(pause_ms: int) -> int:
    """Vary ``pause_ms`` by up to a fifth, so that many clients do not retry in step."""
    return round(pause_ms * CHANCE.uniform(1 - _JITTER, 1 + _JITTER))


class Backoff:
    """``retry_backoff_ms``, doubled with each failure up to ``retry_backoff_max_ms``."""

    def __init__(self, first_ms: int, max_ms: int, jitter: Callable[[int], int] = jittered) -> None:
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._jitter = jitter

    def pause_s(self, failures: int) -> float:
        """How long to wait after that many failures in a row, in seconds."""
        doublings = min(max(failures - 1, 0), _DOUBLINGS_MAX)
        return self._jitter(min(self._first_ms << doublings, self._max_ms)) / 1000

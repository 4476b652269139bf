"""When a broker whose quota is used up may be asked again (KIP-219). Pure: time is an argument.

Such a broker answers at once and says in ``throttle_time_ms`` for how long it takes nothing more
from the connection. What is sent in that time only waits at the broker, where its timeout runs out.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Throttle"]


class Throttle:
    """The rule for one connection."""

    def __init__(self) -> None:
        self._until_ms = 0

    def note(self, now_ms: int, answer: Any) -> None:
        """Look at an answer; those without the field say nothing."""
        for_ms = getattr(answer, "throttle_time_ms", 0)
        if for_ms > 0:
            self._until_ms = max(self._until_ms, now_ms + for_ms)

    def remaining_ms(self, now_ms: int) -> int:
        """For how long nothing may be sent; 0 when something may."""
        return max(0, self._until_ms - now_ms)

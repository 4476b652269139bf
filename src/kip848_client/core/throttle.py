"""When requests to a throttling broker may be sent again (KIP-219). Pure: time is an argument.

When a quota is exceeded, a broker answers at once, and ``throttle_time_ms`` is the time for which
it does not read from the connection. A request sent in that time waits at the broker and times out.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Throttle"]


class Throttle:
    """The rule for one connection."""

    def __init__(self) -> None:
        self._until_ms = 0

    def note(self, now_ms: int, answer: Any) -> None:
        """Apply ``throttle_time_ms`` of an answer, if it has this field."""
        for_ms = getattr(answer, "throttle_time_ms", 0)
        if for_ms > 0:
            self._until_ms = max(self._until_ms, now_ms + for_ms)

    def remaining_ms(self, now_ms: int) -> int:
        """The time for which nothing may be sent; 0 if sending is allowed."""
        return max(0, self._until_ms - now_ms)

"""The next assignment, as announced by the current one (``scheduled.rebalance.max.delay.ms``).

An assignor that keeps items for workers that may return announces its next computation to all
workers, as a delay. The worker that computed requests it at that time. The others request it a
little later, each at another moment, in case that worker is gone by then; if a new assignment
arrives first, they do not.
"""

from __future__ import annotations

import zlib
from typing import Final

from kip848_client.core.types import MemberId

__all__ = ["ScheduledRebalance"]

_FIRST_SHARE: Final = 20
_LAST_SHARE: Final = 100


class ScheduledRebalance:
    """When this worker requests the next assignment, if it does."""

    def __init__(self, member_id: MemberId) -> None:
        spread = zlib.crc32(member_id.encode()) % (_LAST_SHARE - _FIRST_SHARE + 1)
        self._grace_percent = _FIRST_SHARE + spread
        self._announced: bytes | None = None
        self._ends_ms: int | None = None
        """When the delay ends."""
        self.due_ms: int | None = None
        """When to request it; ``None`` if nothing was announced."""

    def announced(
        self, now_ms: int, said: bytes, delay_ms: int, *, computed_here: bool, interval_ms: int
    ) -> None:
        """An assignment with the metadata ``said`` has arrived. If it is a repetition, the delay
        does not restart."""
        if said == self._announced:
            return
        self._announced = said
        grace_ms = 0 if computed_here else interval_ms * self._grace_percent // 100
        self._ends_ms = now_ms + delay_ms if delay_ms > 0 else None
        self.due_ms = None if self._ends_ms is None else self._ends_ms + grace_ms

    def remaining_ms(self, now_ms: int) -> int:
        """The rest of the delay."""
        return 0 if self._ends_ms is None else max(0, self._ends_ms - now_ms)

    def take_due(self, now_ms: int) -> bool:
        """Whether to request it now; true once."""
        if self.due_ms is None or now_ms < self.due_ms:
            return False
        # The next assignment may repeat the same bytes and still announce a new delay, because
        # other workers were lost meanwhile.
        self.due_ms = self._announced = None
        return True

    def forget(self) -> None:
        """The worker is not in the group any more; its next assignment will be a new one."""
        self._announced = self._ends_ms = self.due_ms = None

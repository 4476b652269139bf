"""The next assignment that an assignment has announced (``scheduled.rebalance.max.delay.ms``).

An assignor that keeps items for workers that may return says when it wants to compute again, as a
duration, to all workers. The one that computed asks for it at that time. The others ask a little
later, each at another moment, in case that one is gone by then; when a new assignment comes first,
they do not ask at all.
"""

from __future__ import annotations

import zlib
from typing import Final

from kip848_client.core.types import MemberId

__all__ = ["ScheduledRebalance"]

_FIRST_SHARE: Final = 20
_LAST_SHARE: Final = 100


class ScheduledRebalance:
    """When this worker asks for the next assignment, if it does."""

    def __init__(self, member_id: MemberId) -> None:
        spread = zlib.crc32(member_id.encode()) % (_LAST_SHARE - _FIRST_SHARE + 1)
        self._grace_percent = _FIRST_SHARE + spread
        self._announced: bytes | None = None
        self._ends_ms: int | None = None
        """When the delay ends."""
        self.due_ms: int | None = None
        """When to ask; ``None`` when nothing was announced."""

    def announced(
        self, now_ms: int, said: bytes, delay_ms: int, *, computed_here: bool, interval_ms: int
    ) -> None:
        """An assignment says this, in ``said``. One that is repeated does not begin anew."""
        if said == self._announced:
            return
        self._announced = said
        grace_ms = 0 if computed_here else interval_ms * self._grace_percent // 100
        self._ends_ms = now_ms + delay_ms if delay_ms > 0 else None
        self.due_ms = None if self._ends_ms is None else self._ends_ms + grace_ms

    def remaining_ms(self, now_ms: int) -> int:
        """What is left of the delay."""
        return 0 if self._ends_ms is None else max(0, self._ends_ms - now_ms)

    def take_due(self, now_ms: int) -> bool:
        """Whether to ask now; true once."""
        if self.due_ms is None or now_ms < self.due_ms:
            return False
        # What is asked for may say the same words again, and means another delay: other workers
        # were lost meanwhile.
        self.due_ms = self._announced = None
        return True

    def forget(self) -> None:
        """The worker is out of the group: its next assignment is another one."""
        self._announced = self._ends_ms = self.due_ms = None

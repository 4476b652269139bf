"""Extra heartbeats of a member whose assignment is changing.

Members learn of a change only from the answer to their next heartbeat. At that moment other members
are often still releasing the partitions it was given, and brokers from 4.3 on compute assignments
up to a second late (KIP-1263). So a member that joined, or whose assignment has changed, sends
heartbeats sooner than the interval: at first soon, then in growing pauses, for two intervals at
most. By then all other members have learned of the change, too. Progress, that is, a new target or
the end of a reconciliation, restarts with the short pause, since the next step may be as near; but
each target has one budget.

They are additional: the regular heartbeats are sent when they would be without these, so no member
learns of anything later because of them. In a group without changes there are none.
"""

from __future__ import annotations

from typing import Final

__all__ = ["EXTRA_HEARTBEATS_MAX", "EXTRA_INTERVALS", "ExtraHeartbeats"]

EXTRA_HEARTBEATS_MAX: Final = 20
"""Maximum per target."""
EXTRA_INTERVALS: Final = 2
"""How long progress is followed by extra heartbeats, in heartbeat intervals."""
_PAUSE_MS: Final = 250
_LONG_PAUSE_MS: Final = 500
_LONG_PAUSES_PER_INTERVAL: Final = 10
"""Number of long pauses per interval, for intervals beyond five seconds, so that the budget lasts
for one and a half."""


class ExtraHeartbeats:
    """Decides when the next extra heartbeat is due. ``wanted``: False for none, ever."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._left = 0
        self._until_ms = 0
        self._pause_ms = _PAUSE_MS
        self.due_ms: int | None = None
        """When the next extra heartbeat is due; ``None`` for regular ones only."""

    def is_over(self, now_ms: int) -> bool:
        """Whether there was no progress for so long that none is expected."""
        return now_ms > self._until_ms

    def target_changed(self, now_ms: int, interval_ms: int) -> None:
        """Handle a new target."""
        self._left = EXTRA_HEARTBEATS_MAX if self._wanted else 0
        self.progress(now_ms, interval_ms)

    def progress(self, now_ms: int, interval_ms: int) -> None:
        """Handle progress towards the target: restart with the short pause."""
        if not self._left:
            return
        self._until_ms = now_ms + EXTRA_INTERVALS * interval_ms
        self._pause_ms = _PAUSE_MS
        self._plan(now_ms, interval_ms)

    def sent(self, now_ms: int, interval_ms: int, *, extra: bool) -> None:
        """Note a heartbeat that was built, as an extra one (``extra``) or for another reason."""
        if extra:
            self._left -= 1
        self._plan(now_ms, interval_ms)

    def stop(self) -> None:
        """Stop extra heartbeats."""
        self._left = 0
        self._until_ms = 0
        self.due_ms = None

    def _plan(self, now_ms: int, interval_ms: int) -> None:
        self.due_ms = now_ms + self._pause_ms
        longest_ms = max(_LONG_PAUSE_MS, interval_ms // _LONG_PAUSES_PER_INTERVAL)
        self._pause_ms = min(2 * self._pause_ms, longest_ms)
        if self._left <= 0 or self.due_ms > self._until_ms:
            self.due_ms = None

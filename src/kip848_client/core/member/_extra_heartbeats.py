"""Extra heartbeats of a member whose assignment is changing.

Members hear of a change by their next heartbeat only. What a member was given is often given up by
others at this moment, and brokers from 4.3 on compute assignments up to a second late (KIP-1263).
So a member that joined, or whose assignment has changed, asks again sooner than the interval: at
first soon, then in growing pauses, for two intervals at most. By then everybody else has heard of
it, too. Progress, which is a new target or the end of a reconciliation, begins anew with the short
pause, since the next step may be as near; but each target has one budget.

They come on top: the heartbeats that the interval asks for go out when they would without these, so
no member hears of anything later because it asked more often. In a group in which nothing changes
there are none.
"""

from __future__ import annotations

from typing import Final

__all__ = ["EXTRA_HEARTBEATS_MAX", "EXTRA_INTERVALS", "ExtraHeartbeats"]

EXTRA_HEARTBEATS_MAX: Final = 20
"""For one target."""
EXTRA_INTERVALS: Final = 2
"""How long progress is followed by extra heartbeats, in heartbeat intervals."""
_PAUSE_MS: Final = 250
_LONG_PAUSE_MS: Final = 500
_LONG_PAUSES_PER_INTERVAL: Final = 10
"""Of an interval beyond five seconds, so that the budget lasts for one and a half."""


class ExtraHeartbeats:
    """Says when the next one is due. ``wanted``: False for none, ever."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._left = 0
        self._until_ms = 0
        self._pause_ms = _PAUSE_MS
        self.due_ms: int | None = None
        """When to ask again; ``None`` when the interval is all there is."""

    def is_over(self, now_ms: int) -> bool:
        """Whether no progress was made for so long that none is expected."""
        return now_ms > self._until_ms

    def target_changed(self, now_ms: int, interval_ms: int) -> None:
        """The coordinator wants something new."""
        self._left = EXTRA_HEARTBEATS_MAX if self._wanted else 0
        self.progress(now_ms, interval_ms)

    def progress(self, now_ms: int, interval_ms: int) -> None:
        """The member came nearer to its target: the short pause again."""
        if not self._left:
            return
        self._until_ms = now_ms + EXTRA_INTERVALS * interval_ms
        self._pause_ms = _PAUSE_MS
        self._plan(now_ms, interval_ms)

    def sent(self, now_ms: int, interval_ms: int, *, extra: bool) -> None:
        """A heartbeat was built, by this class's wish (``extra``) or for another reason."""
        if extra:
            self._left -= 1
        self._plan(now_ms, interval_ms)

    def stop(self) -> None:
        """Nothing is known to have changed any more."""
        self._left = 0
        self._until_ms = 0
        self.due_ms = None

    def _plan(self, now_ms: int, interval_ms: int) -> None:
        self.due_ms = now_ms + self._pause_ms
        longest_ms = max(_LONG_PAUSE_MS, interval_ms // _LONG_PAUSES_PER_INTERVAL)
        self._pause_ms = min(2 * self._pause_ms, longest_ms)
        if self._left <= 0 or self.due_ms > self._until_ms:
            self.due_ms = None

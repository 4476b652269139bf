"""Deadlines of groups: a heap whose entries are cheap to move.

A session deadline moves with every heartbeat and almost never fires, so moving one must not touch
the heap. Each key has at most one *live* heap entry, which may be earlier than the key's true
deadline; when such an entry comes up, it is pushed again at the true one. Deadlines of the same
millisecond fire in the order in which they were last set.
"""

from __future__ import annotations

import heapq
from enum import StrEnum
from typing import NamedTuple

__all__ = ["Timer", "TimerKind", "Timers"]


class TimerKind(StrEnum):
    """What is due."""

    SESSION = "session"
    """A member has been silent for too long."""
    REBALANCE = "rebalance"
    """A member has not acknowledged a revocation in time."""
    MEMBER_JOIN = "member join"
    """A classic member of a consumer group has to join again and has not."""
    MEMBER_SYNC = "member sync"
    """A classic member of a consumer group has joined and not asked for its assignment."""
    REGEX = "regex"
    """The regexes of a group are to be resolved; due at once."""
    COMPUTATION = "computation"
    """A member has not computed the group's assignment in time."""
    COMPANY = "company"
    """A group has waited long enough for others to join, and its first target is computed."""
    CLASSIC_SESSION = "classic session"
    """A member of a classic group has been silent for too long, or does not come back with the id
    that it was given."""
    JOIN_PHASE = "join phase"
    """A classic group has waited long enough for its members to join; group-wide."""
    SYNC_PHASE = "sync phase"
    """A classic group has waited long enough for its members to sync; group-wide."""
    CLEANUP = "cleanup"
    """Expired offsets and empty groups are to be removed."""


class Timer(NamedTuple):
    """The key of a timer: arming one that runs moves it. ``member_id`` is empty for group-wide
    timers, both ids for broker-wide ones."""

    kind: TimerKind
    group_id: str = ""
    member_id: str = ""


class Timers:
    """All running timers of a coordinator."""

    __slots__ = ("_armed", "_entries", "_heap", "_sequence")

    def __init__(self) -> None:
        self._armed: dict[Timer, tuple[int, int, int]] = {}  # deadline, sequence, payload
        self._entries: dict[Timer, tuple[int, int]] = {}  # the live heap entry of a key
        self._heap: list[tuple[int, int, Timer]] = []
        self._sequence = 0

    def arm(self, timer: Timer, deadline_ms: int, payload: int = 0) -> None:
        """Start the timer, or move it. ``payload`` comes back when it is due."""
        self._sequence += 1
        self._armed[timer] = (deadline_ms, self._sequence, payload)
        entry = self._entries.get(timer)
        if entry is None or deadline_ms < entry[0]:
            self._push(timer, deadline_ms, self._sequence)

    def cancel(self, timer: Timer) -> None:
        """Stop the timer if it runs."""
        self._armed.pop(timer, None)

    def deadline_of(self, timer: Timer) -> int | None:
        """When this timer is due, ``None`` when it does not run."""
        armed = self._armed.get(timer)
        return None if armed is None else armed[0]

    @property
    def deadline_ms(self) -> int | None:
        """When the first timer is due."""
        self._settle()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> tuple[Timer, int] | None:
        """Take the first timer whose time has come, with its payload."""
        self._settle()
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        _, _, timer = heapq.heappop(self._heap)
        del self._entries[timer]
        return timer, self._armed.pop(timer)[2]

    def _push(self, timer: Timer, deadline_ms: int, sequence: int) -> None:
        self._entries[timer] = (deadline_ms, sequence)
        heapq.heappush(self._heap, (deadline_ms, sequence, timer))

    def _settle(self) -> None:
        """Make the top of the heap a true deadline."""
        heap, entries = self._heap, self._entries
        while heap:
            deadline_ms, sequence, timer = heap[0]
            if entries.get(timer) != (deadline_ms, sequence):
                heapq.heappop(heap)  # superseded by an earlier entry
                continue
            armed = self._armed.get(timer)
            if armed is None:
                heapq.heappop(heap)
                del entries[timer]
            elif armed[:2] != (deadline_ms, sequence):
                entries[timer] = armed[:2]
                heapq.heapreplace(heap, (armed[0], armed[1], timer))
            else:
                return

    def __len__(self) -> int:
        return len(self._armed)

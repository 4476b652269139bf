"""One assigned partition: its phase, and what keeps it from being fetched.

A partition is in one *phase*. In addition there are reasons against fetching it (``why_not``), each
independent of the others: a partition can be paused and full and without a leader, in any phase.

A *generation* is one position and what follows from it. Each assignment, seek, reset and truncation
begins a new one and invalidates all earlier requests. A delivered slice belongs to one generation
through its cursor.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kip848_client.core.cluster import NO_EPOCH, NO_NODE
from kip848_client.core.fetch._model import Cursor, Slice
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, TopicIdPartition, TopicPartition
from kip848_client.errors import Kip848Error

__all__ = [
    "FULL",
    "HELD",
    "LIMITED",
    "NOT_STARTED",
    "NO_LEADER",
    "NO_SLICES",
    "PAUSED",
    "RESTING",
    "Partition",
    "Phase",
]

PAUSED: Final = 1
"""Paused by the application."""
HELD: Final = 2
"""Its revocation has begun; nothing may be delivered from this very step on."""
LIMITED: Final = 4
"""Its topic is not subscribed to any more."""
NOT_STARTED: Final = 8
"""The rebalance listener has not yet returned."""
FULL: Final = 16
"""Enough of it is buffered."""
RESTING: Final = 32
"""Waiting after an error."""
NO_LEADER: Final = 64
"""The leader or the topic id is unknown."""

_SHUT: Final = PAUSED | HELD | LIMITED
"""Reasons that also prevent delivery."""


NO_SLICES: Final[deque[Slice]] = deque(maxlen=0)
"""Shared by all partitions without slices: a deque takes 600 bytes, and most partitions are
idle."""


class Phase(Enum):
    """The phase of a partition."""

    IDLE = "idle"
    """No position, and none is being looked up."""
    SEEKING_START = "seeking-start"
    """A position is being looked up."""
    READY = "ready"
    """The partition has a position."""
    CHECKING = "checking"
    """A broker reported the position as out of range; before that is believed, the leader is asked
    for its range."""
    STOPPED = "stopped"
    """Stopped by an error that must be raised."""


@dataclass(slots=True, eq=False)
class Partition:
    """The core's state of one assigned partition."""

    tp: TopicPartition
    topic_id: TopicId | None
    by_hand: bool
    """Assigned by name, not by a group: its id is the one the topic has when it is found."""
    generation: int
    phase: Phase = Phase.IDLE
    why_not: int = NOT_STARTED
    cursor: Cursor | None = None
    """Set if there is a position."""
    fetch_offset: int = -1
    """The end of what is buffered: the next offset to fetch."""
    fetch_epoch: int = NO_EPOCH
    """The leader epoch of the record before ``fetch_offset``."""
    slices: deque[Slice] = field(default_factory=lambda: NO_SLICES)
    buffered_bytes: int = 0
    buffered_from: int = NO_NODE
    """The broker that the buffered slices are attributed to."""

    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None

    node: int = NO_NODE
    """The broker to fetch from, while it is fetchable."""
    read_from: int = NO_NODE
    """A replica that the leader named (KIP-392)."""
    lease_until_ms: int = 0
    """Until when to read from ``read_from``, or to avoid ``avoided``."""
    led_by: int = NO_NODE
    """The leader at the time the replica was chosen."""
    avoided: int = NO_NODE
    """A replica that failed."""

    rest_until_ms: int = 0
    failures: int = 0
    """Consecutive failures; each makes the rest longer."""
    refetched_at: int = -1
    """The offset of damaged bytes that were fetched once more."""
    troubled_since_ms: int | None = None
    noticed: bool = False
    """Whether this error was logged."""

    error: Kip848Error | None = None
    """The error to raise."""
    again: Phase | None = None
    """The phase in which to retry once the error was raised; ``None``: never."""
    retried_ms: int | None = None
    """When it was last retried."""
    seek: int = 0
    """The ticket of the seek that may move it; 0 for none."""

    @property
    def key(self) -> TopicIdPartition:
        """Topic id and partition number, as brokers identify it."""
        return (self.topic_id or ZERO_TOPIC_ID, self.tp[1])

    @property
    def readable(self) -> bool:
        """Whether buffered records may be delivered."""
        return not self.why_not & _SHUT

    @property
    def is_over(self) -> bool:
        """Whether it stopped for good: its topic is gone."""
        return self.phase is Phase.STOPPED and self.again is None

    @property
    def consumed(self) -> int | None:
        """The position of the application."""
        return None if self.cursor is None else self.cursor.consumed

    def mark(self, reason: int, *, on: bool) -> bool:
        """Set or clear a reason against fetching; returns whether that changed anything."""
        before = self.why_not
        self.why_not = before | reason if on else before & ~reason
        if self.why_not == before:
            return False
        if self.cursor is not None:
            self.cursor.readable = self.readable
        return True

    def leave_position(self, generation: int, phase: Phase) -> None:
        """Begin a new generation without a position. The buffer must be empty."""
        assert not self.slices
        self._end_generation(generation)
        self.phase = phase
        self.cursor = None
        self.fetch_offset, self.fetch_epoch = -1, NO_EPOCH

    def stand_at(self, generation: int, offset: int, epoch: int) -> None:
        """Begin a new generation at this position. The buffer must be empty."""
        assert not self.slices
        assert offset >= 0
        self._end_generation(generation)
        self.phase = Phase.READY
        self.fetch_offset, self.fetch_epoch = offset, epoch
        self._new_cursor(offset, epoch)

    def renew(self, generation: int, fetch_offset: int, fetch_epoch: int) -> None:
        """Begin a new generation that keeps the application's position and what is buffered up to
        ``fetch_offset``."""
        before = self.cursor
        assert before is not None
        self._end_generation(generation)
        self.fetch_offset, self.fetch_epoch = fetch_offset, fetch_epoch
        cursor = self._new_cursor(before.consumed, before.consumed_epoch)
        for each in self.slices:
            each.cursor = cursor

    def learn_id(self, topic_id: TopicId) -> None:
        """Set the topic id of a partition assigned by name."""
        self.topic_id = topic_id
        if self.cursor is not None:
            self.cursor.topic_id = topic_id

    def reset_failures(self) -> None:
        """Reset the failure state after an answer without an error."""
        self.failures = 0
        self.troubled_since_ms = None
        self.noticed = False

    def _end_generation(self, generation: int) -> None:
        if self.cursor is not None:
            self.cursor.readable = False
        self.generation = generation

    def _new_cursor(self, consumed: int, epoch: int) -> Cursor:
        topic_id = self.topic_id or ZERO_TOPIC_ID
        self.cursor = Cursor(self.tp, topic_id, self.generation, consumed, epoch, self.readable)
        return self.cursor

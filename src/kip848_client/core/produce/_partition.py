"""The state of one partition that is written to: queued and in-flight batches, and backoff."""

from __future__ import annotations

from collections import deque

from kip848_client.core.cluster import NO_NODE
from kip848_client.core.produce._batches import Batch
from kip848_client.core.produce._sequences import Sequences
from kip848_client.core.types import TopicId, TopicPartition

__all__ = ["Partition"]


class Partition:
    """Batches in the order of their records: first those in flight, then ``waiting``, then the open
    one. A batch that must be sent again is queued in its old place."""

    __slots__ = (
        "alarm_ms",
        "due",
        "failures",
        "flying",
        "flying_to",
        "left",
        "moves",
        "open",
        "ready_at",
        "rest_until_ms",
        "sequences",
        "topic_id",
        "tp",
        "trouble",
        "trouble_code",
        "trouble_since_ms",
        "unsettled",
        "waiting",
    )

    def __init__(self, tp: TopicPartition, *, alone: bool) -> None:
        self.tp = tp
        self.open: Batch | None = None
        """The batch that takes records."""
        self.due = False
        """The open batch has lingered long enough, or must not linger."""
        self.waiting: deque[Batch] = deque()
        self.flying: list[Batch] = []
        """In flight, whether failed already or not."""
        self.flying_to = NO_NODE
        self.unsettled: list[Batch] = []
        """Batches whose fate is unknown until a later batch is answered."""
        self.left = NO_NODE
        """The broker that was not the leader or did not answer: the reason for the backoff."""
        self.sequences = Sequences(alone=alone)
        self.topic_id: TopicId | None = None
        """The id of the topic that was last written to."""
        self.failures = 0
        """Failures in a row; each makes the backoff longer."""
        self.moves = 0
        """How often in a row it followed a leader hint."""
        self.rest_until_ms = 0
        self.alarm_ms = 0
        """The time for which a wake-up is scheduled."""
        self.trouble: str | None = None
        self.trouble_code: int | None = None
        """Why the last attempt failed."""
        self.trouble_since_ms = 0
        """Since when attempts have failed while records are queued."""
        self.ready_at = NO_NODE
        """The broker in whose ready queue it is."""

    @property
    def has_next(self) -> bool:
        """Whether there is a batch to send, as far as this partition knows."""
        return bool(self.waiting) or (self.due and self.open is not None)

    @property
    def is_idle(self) -> bool:
        """No batch is queued, open or in flight."""
        waits = self.waiting or self.unsettled or self.open is not None
        return not waits and not self.flying

    def wait_again(self, batch: Batch) -> None:
        """Queue a batch that was in flight again."""
        waiting = self.waiting
        at = 0
        while at < len(waiting) and waiting[at].order < batch.order:
            at += 1
        waiting.insert(at, batch)

    def is_first(self, batch: Batch) -> bool:
        """Whether no earlier batch is in flight or queued."""
        order = batch.order
        if any(each.order < order for each in self.flying):
            return False
        return not self.waiting or self.waiting[0].order >= order

    def fail(self, now_ms: int, why: str, code: int | None) -> None:
        """An attempt to send a batch failed."""
        if self.trouble is None:
            self.trouble_since_ms = now_ms
        self.trouble, self.trouble_code = why, code

    def reset_failures(self) -> None:
        """A broker accepted a batch."""
        self.failures = self.moves = 0
        self.left = NO_NODE
        self.trouble = self.trouble_code = None

"""One partition that is written to: what waits, what is on its way, and whether it rests."""

from __future__ import annotations

from collections import deque

from kip848_client.core.cluster import NO_NODE
from kip848_client.core.produce._batches import Batch
from kip848_client.core.produce._sequences import Sequences
from kip848_client.core.types import TopicId, TopicPartition

__all__ = ["Partition"]


class Partition:
    """Batches in the order of their records: first those on their way, then ``waiting``, then the
    open one. What was on its way and has to be sent again waits in its old place."""

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
        """Takes records."""
        self.due = False
        """The open batch has lingered, or may not linger."""
        self.waiting: deque[Batch] = deque()
        self.flying: list[Batch] = []
        """On the wire, given up or not."""
        self.flying_to = NO_NODE
        self.unsettled: list[Batch] = []
        """Batches of which only later ones can tell whether a broker has them."""
        self.left = NO_NODE
        """The broker that did not lead it, or did not answer: it rests for that."""
        self.sequences = Sequences(alone=alone)
        self.topic_id: TopicId | None = None
        """Of the topic that was written to last."""
        self.failures = 0
        """In a row: each makes it rest longer."""
        self.moves = 0
        """How often in a row it followed a hint."""
        self.rest_until_ms = 0
        self.alarm_ms = 0
        """For when it has an alarm."""
        self.trouble: str | None = None
        self.trouble_code: int | None = None
        """Why the newest try failed."""
        self.trouble_since_ms = 0
        """Since when tries have failed, while records wait."""
        self.ready_at = NO_NODE
        """The broker that it waits for its turn at."""

    @property
    def has_next(self) -> bool:
        """Whether there is a batch that may be sent as far as this partition knows."""
        return bool(self.waiting) or (self.due and self.open is not None)

    @property
    def is_idle(self) -> bool:
        """Nothing waits, is open or on its way."""
        waits = self.waiting or self.unsettled or self.open is not None
        return not waits and not self.flying

    def wait_again(self, batch: Batch) -> None:
        """A batch that was on its way is to be sent again."""
        waiting = self.waiting
        at = 0
        while at < len(waiting) and waiting[at].order < batch.order:
            at += 1
        waiting.insert(at, batch)

    def is_first(self, batch: Batch) -> bool:
        """Whether no batch before this one is on its way or waits."""
        order = batch.order
        if any(each.order < order for each in self.flying):
            return False
        return not self.waiting or self.waiting[0].order >= order

    def fail(self, now_ms: int, why: str, code: int | None) -> None:
        """A try to send a batch failed."""
        if self.trouble is None:
            self.trouble_since_ms = now_ms
        self.trouble, self.trouble_code = why, code

    def reset_failures(self) -> None:
        """A broker took a batch."""
        self.failures = self.moves = 0
        self.left = NO_NODE
        self.trouble = self.trouble_code = None

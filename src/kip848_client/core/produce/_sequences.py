"""Sequence numbers of one partition: what a broker needs to keep batches in order, each once.

A broker takes a batch only behind the one before it, and knows the newest five again. So a batch
keeps its numbers for as long as a broker may have it, and no other batch gets them. When one with
numbers failed there is a hole, and a broker takes nothing behind it: sequences begin anew under
another epoch. A producer without a transactional id raises the epoch by itself, for this partition
alone: brokers keep it by partition, and InitProducerId would only answer another producer id. In a
transaction the next epoch comes from the coordinator.

Nothing changes its name while a batch of the partition is on its way. Then the first that waits
decides. If no broker has it, no broker has what is behind it either, and all of them get new
numbers. If a broker may have it, it is sent again as what it was, and the answer tells.

That answer may be that the broker lacks what was before, although it has the batch: a broker that
was restarted knows again the last batch alone. Then later batches tell, because a broker that has
one has all before it. Where none does, nobody can tell, and the batch fails: it is not sent under
other numbers (decision 13).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kip848_client.core.produce._batches import Batch
from kip848_client.core.produce._model import NOBODY, ProducerId

__all__ = ["Sequences"]

_NUMBERS: Final = 1 << 31
"""Sequence numbers: after 2^31-1 comes 0."""
_FORGOTTEN_MS: Final = 600_000
"""After so long a silence a broker may not know a producer any more (Kafka's default of
``producer.id.expiration.ms`` is a day)."""
_EPOCH_MAX: Final = (1 << 15) - 1


class Sequences:
    """``alone``: without a transactional id."""

    __slots__ = (
        "_alone",
        "_written_ms",
        "acknowledged",
        "broken",
        "newest",
        "next_number",
        "producer",
        "suspended",
    )

    def __init__(self, *, alone: bool) -> None:
        self._alone = alone
        self.producer: ProducerId = NOBODY
        self.next_number = 0
        self._written_ms = 0
        self.broken = False
        """There is a hole: nothing new is sent as ``producer``."""
        self.suspended = False
        """There may be one: a batch waits for what later ones tell."""
        self.newest: tuple[ProducerId, tuple[int, ...]] = (NOBODY, ())
        """The last batch in order that a broker has: who sent it, and its order."""
        self.acknowledged = NOBODY.number
        """The producer id that the broker is known to know here. One that it does not know may
        begin with any number, so there is nothing that would keep a second batch behind the
        first: until the first is acknowledged, there is no second one on its way."""

    def is_exhausted(self, base: ProducerId) -> bool:
        """Whether this partition needs another producer id."""
        used_up = self._alone and self.producer.epoch >= _EPOCH_MAX
        return (self.broken or self.suspended) and used_up and base.number == self.producer.number

    def prepare(
        self, head: Batch, waiting: Iterable[Batch], base: ProducerId, *, on_its_way: bool
    ) -> bool:
        """Give the first batch that waits its numbers; False: it must wait. ``base``: who we are.
        ``on_its_way``: whether other batches of the partition are."""
        successor = self._successor(base)
        if successor != self.producer:
            if on_its_way:
                return False
            if self._alone and head.has_sequence and head.doubt:
                return True
            if successor is None:
                return False
            self.producer = successor
            self.next_number = 0
            self.broken = self.suspended = False
            for each in waiting:
                each.forget_sequence()
        if not head.has_sequence:
            head.producer = self.producer
            head.first_sequence = self.next_number
            self.next_number = (self.next_number + head.records) % _NUMBERS
        return True

    def written(self, now_ms: int, batch: Batch) -> None:
        """A broker has this batch."""
        self.acknowledged = batch.producer.number
        self._written_ms = now_ms
        if batch.producer != self.newest[0] or batch.order > self.newest[1]:
            self.newest = (batch.producer, batch.order)

    def rested(self, now_ms: int) -> None:
        """Nothing is on its way. Brokers forget producers that are silent for long."""
        if now_ms - self._written_ms >= _FORGOTTEN_MS:
            self.acknowledged = NOBODY.number

    def proves(self, batch: Batch) -> bool:
        """Whether a broker has this batch, because it has a later one."""
        producer, order = self.newest
        return batch.has_sequence and batch.producer == producer and batch.order < order

    def split(self, batch: Batch, parts: Iterable[Batch]) -> None:
        """The parts have the numbers of the whole."""
        first = batch.first_sequence
        for part in parts:
            part.producer, part.doubt = batch.producer, batch.doubt
            part.first_sequence = first
            first = (first + part.records) % _NUMBERS

    def _successor(self, base: ProducerId) -> ProducerId | None:
        """Who sends the next new batch; ``None``: nobody yet."""
        mine = self.producer
        if not self._alone:
            return base if base != mine else None if self.broken else mine
        if base.number != mine.number:
            return base
        if not self.broken and not self.suspended:
            return mine
        return ProducerId(mine.number, mine.epoch + 1) if mine.epoch < _EPOCH_MAX else None

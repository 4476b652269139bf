"""Sequence numbers of one partition, by which a broker keeps batches in order and without
duplicates.

A broker accepts a batch only directly after the previous one, and recognizes the newest five when
they are sent again. So a batch keeps its numbers for as long as a broker may have it, and no other
batch gets them. When a batch with numbers fails, it leaves a gap, and the broker accepts nothing
after it until the sequence restarts under another epoch. A producer without a transactional id
raises the epoch itself, for this partition only: brokers keep it per partition, and InitProducerId
would only return another producer id. In a transaction the coordinator supplies the next epoch.

The epoch never changes while a batch of the partition is in flight. After that, the first queued
batch decides. If no broker has it, no broker has the following ones either, and all of them get new
numbers. If a broker may have it, it is sent again unchanged, and the answer shows which is true.

That answer may be that the broker lacks the previous batch although it has this one, because a
restarted broker recognizes only the last batch. Then later batches decide, because a broker that
has a batch has all batches before it. If there is none to decide it, the fate of the batch is
unknown and it fails; it is not sent under other numbers (decision 13).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kip848_client.core.produce._batches import Batch
from kip848_client.core.produce._model import NO_PRODUCER, ProducerId

__all__ = ["Sequences"]

_NUMBERS: Final = 1 << 31
"""Sequence numbers wrap to 0 after 2^31-1."""
_FORGOTTEN_MS: Final = 600_000
"""After this long without a write, a broker may have forgotten a producer (Kafka's default for
``producer.id.expiration.ms`` is one day)."""
_EPOCH_MAX: Final = (1 << 15) - 1


class Sequences:
    """``alone``: the producer has no transactional id."""

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
        self.producer: ProducerId = NO_PRODUCER
        self.next_number = 0
        self._written_ms = 0
        self.broken = False
        """There is a gap: nothing new is sent as ``producer``."""
        self.suspended = False
        """There may be a gap: the fate of a batch depends on later batches."""
        self.newest: tuple[ProducerId, tuple[int, ...]] = (NO_PRODUCER, ())
        """The last batch in order that a broker has: its producer, and its order."""
        self.acknowledged = NO_PRODUCER.number
        """The producer id that the broker is known to have for this partition. For an unknown one
        it accepts any first number, so nothing would hold a second batch back behind the first. So
        there is no second batch in flight until the first is acknowledged."""

    def is_exhausted(self, base: ProducerId) -> bool:
        """Whether this partition needs another producer id."""
        used_up = self._alone and self.producer.epoch >= _EPOCH_MAX
        return (self.broken or self.suspended) and used_up and base.number == self.producer.number

    def prepare(
        self, head: Batch, waiting: Iterable[Batch], base: ProducerId, *, on_its_way: bool
    ) -> bool:
        """Assign sequence numbers to the first queued batch; returns False if it must wait.
        ``base``: the current producer id. ``on_its_way``: whether other batches of the partition
        are in flight."""
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
        """Nothing is in flight. Brokers forget producers that do not write for a long time."""
        if now_ms - self._written_ms >= _FORGOTTEN_MS:
            self.acknowledged = NO_PRODUCER.number

    def proves(self, batch: Batch) -> bool:
        """Whether a broker certainly has this batch, because it has a later one."""
        producer, order = self.newest
        return batch.has_sequence and batch.producer == producer and batch.order < order

    def split(self, batch: Batch, parts: Iterable[Batch]) -> None:
        """Divide the numbers of the whole among the parts."""
        first = batch.first_sequence
        for part in parts:
            part.producer, part.doubt = batch.producer, batch.doubt
            part.first_sequence = first
            first = (first + part.records) % _NUMBERS

    def _successor(self, base: ProducerId) -> ProducerId | None:
        """The producer of the next new batch; ``None`` if there is none yet."""
        mine = self.producer
        if not self._alone:
            return base if base != mine else None if self.broken else mine
        if base.number != mine.number:
            return base
        if not self.broken and not self.suspended:
            return mine
        return ProducerId(mine.number, mine.epoch + 1) if mine.epoch < _EPOCH_MAX else None

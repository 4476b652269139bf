"""A batch builder whose bytes a test can read, and a log that checks batches as Kafka does."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kip848_client.core.produce._model import Header, ProducerId
from kip848_client.error_codes import ErrorCode

__all__ = ["ModelLog", "PlainBatch", "PlainBuilder", "plain_batch"]

_HEADER_BYTES = 61
_RECORD_BYTES = 7
_REMEMBERED = 5


class PlainBatch(NamedTuple):
    """What such bytes say."""

    producer: ProducerId
    first: int
    transactional: bool
    values: list[str]


def plain_batch(data: bytes) -> PlainBatch:
    """Read what ``PlainBuilder`` wrote."""
    number, epoch, first, transactional, values = json.loads(data)
    return PlainBatch(ProducerId(number, epoch), first, transactional, values)


class PlainBuilder:
    """A ``BatchBuilder`` that keeps the values of its records."""

    def __init__(self, size_bytes: int) -> None:
        self._limit_bytes = size_bytes
        self.values: list[bytes] = []
        self.size_bytes = _HEADER_BYTES
        self.sealed = False

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[Header]
    ) -> bool:
        """Add a record."""
        del timestamp_ms, headers
        assert not self.sealed
        size = _RECORD_BYTES + len(key or b"") + len(value or b"")
        if self.values and self.size_bytes + size > self._limit_bytes:
            return False
        self.size_bytes += size
        self.values.append(value or b"")
        return True

    @property
    def records(self) -> int:
        """How many there are."""
        return len(self.values)

    def seal(self) -> None:
        """No more."""
        self.sealed = True

    def bytes_for(self, producer: ProducerId, first_sequence: int, *, transactional: bool) -> bytes:
        """JSON."""
        values = [value.decode() for value in self.values]
        return json.dumps([*producer, first_sequence, transactional, values]).encode()

    def split(self) -> Sequence[PlainBuilder]:
        """Halves."""
        if len(self.values) < 2:
            return (self,)
        half = (len(self.values) + 1) // 2
        parts = (PlainBuilder(1 << 30), PlainBuilder(1 << 30))
        for row, value in enumerate(self.values):
            parts[row >= half].append(0, None, value, ())
        return parts


class _Remembered(NamedTuple):
    first: int
    last: int
    base_offset: int


@dataclass
class _Producer:
    epoch: int
    last: int
    batches: deque[_Remembered] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


class ModelLog:
    """The log of one partition, with what a broker keeps of producers: their epoch, their last
    sequence number and their newest five batches."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._producers: dict[int, _Producer] = {}

    def append(self, batch: PlainBatch) -> tuple[int, int]:
        """Append a batch, if its numbers are right; returns (error code, base offset)."""
        (number, epoch), first = batch.producer, batch.first
        if number < 0:
            return 0, self._write(batch)
        last = (first + len(batch.values) - 1) % (1 << 31)
        known = self._producers.get(number)
        if known is not None:
            if epoch < known.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            if epoch == known.epoch:
                for each in known.batches:
                    if (each.first, each.last) == (first, last):
                        return 0, each.base_offset
                if first != (known.last + 1) % (1 << 31):
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            elif first != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        if known is None or known.epoch != epoch:
            known = self._producers[number] = _Producer(epoch, -1)
        base = self._write(batch)
        known.last = last
        known.batches.append(_Remembered(first, last, base))
        return 0, base

    def _write(self, batch: PlainBatch) -> int:
        base = len(self.values)
        self.values.extend(batch.values)
        return base

    def forget_but_the_last(self) -> None:
        """A restart from a snapshot: of each producer the last batch is known."""
        for known in self._producers.values():
            while len(known.batches) > 1:
                known.batches.popleft()

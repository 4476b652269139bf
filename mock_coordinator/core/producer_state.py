"""What a partition remembers of idempotent producers (KIP-98): who wrote which sequence numbers.

For each producer id the log keeps the epoch and the last five batches. A batch that is already
among them is a retry and is answered with its old offset; one that does not continue the sequence
is refused. A producer id that is unknown, or was silent for ``producer.id.expiration.ms``, may
start anywhere, because its earlier state may have been forgotten.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from kip848_client.wire import ErrorCode
from mock_coordinator.core.record_batch import BatchHeader

__all__ = ["AppendedBatch", "ProducerStates"]

_REMEMBERED: Final = 5
_LAST_SEQUENCE: Final = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class AppendedBatch:
    """A batch that is in the log: what a retry of it is recognised by, and answered with."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    last_written_ms: int
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


class ProducerStates:
    """The idempotent producers of one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def duplicate_of(self, header: BatchHeader) -> AppendedBatch | None:
        """The batch of which this one is a retry."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        wanted = (header.base_sequence, header.last_sequence)
        for batch in producer.batches:
            if (batch.base_sequence, batch.last_sequence) == wanted:
                return batch
        return None

    def refusal(self, now_ms: int, header: BatchHeader, expiration_ms: int) -> ErrorCode | None:
        """Why this batch may not be appended, or ``None`` when it continues the sequence."""
        producer = self._producers.get(header.producer_id)
        if producer is not None and now_ms - producer.last_written_ms >= expiration_ms:
            del self._producers[header.producer_id]
            producer = None
        if producer is None:
            return None
        if header.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if header.producer_epoch > producer.epoch:
            in_order = header.base_sequence == 0
        else:
            last = producer.batches[-1].last_sequence
            in_order = header.base_sequence == (0 if last == _LAST_SEQUENCE else last + 1)
        return None if in_order else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def appended(self, now_ms: int, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Remember a batch that was appended."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = _Producer(header.producer_epoch, now_ms)
            self._producers[header.producer_id] = producer
        producer.last_written_ms = now_ms
        producer.batches.append(
            AppendedBatch(header.base_sequence, header.last_sequence, base_offset, timestamp)
        )

"""The producers of a partition (KIP-98): their sequence numbers and open transactions.

For each producer id the log has the epoch and the last five batches. A batch that is already among
them is a retry and is answered with its old offset; one that does not continue the sequence is
refused. An unknown producer id may start anywhere, because its earlier state may have been removed:
a producer that was silent for ``producer.id.expiration.ms``, and has no open transaction, is
removed at the next check (``expire``), at an interval, as in Kafka. What counts is the timestamp of
the last batch, which the producer chooses.

A transaction is open in a partition from its first batch to its marker. Before the first batch the
broker verifies with the transaction coordinator that the partition is part of a transaction
(KIP-890); the sequence and epoch of the request that caused the verification are remembered until a
batch is written, so that a later batch of the same producer cannot overtake an earlier one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.logs.record_batch import BatchHeader

__all__ = ["AppendedBatch", "ProducerState", "ProducerStates", "ProducerWatch"]

_REMEMBERED: Final = 5
_NO_EPOCH: Final = -1
"""Of a producer with an id that does not say its epoch: Kafka takes it, and then any sequence."""
_LAST_SEQUENCE: Final = 0x7FFFFFFF
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class AppendedBatch:
    """A batch that is in the log: what a retry of it is recognised by, and answered with."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int


@dataclass(slots=True)
class ProducerState:
    """One producer in one partition.

    ``first_offset`` is where its open transaction begins; ``coordinator_epoch`` comes from its last
    marker. ``last_timestamp`` is that of its newest record or marker.
    """

    epoch: int = _NONE
    last_timestamp: int = _NONE
    coordinator_epoch: int = _NONE
    first_offset: int | None = None
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    @property
    def last_sequence(self) -> int:
        """The sequence number that the next batch continues; -1 when there was none."""
        return self.batches[-1].last_sequence if self.batches else _NONE

    def enter(self, epoch: int) -> None:
        """Continue in this epoch; in a new epoch, sequences start over."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


@dataclass(slots=True)
class _Verification:
    """What was asked about a transaction that has not written to the partition yet, and when."""

    asked_ms: int
    epoch: int
    lowest_sequence: int
    from_zero: bool

    def update(self, epoch: int, sequence: int) -> None:
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


@dataclass(slots=True)
class ProducerWatch:
    """Whether any partition of a broker knows any producer: else there is none to forget."""

    any: bool = False


class ProducerStates:
    """The producers of one partition. ``watch`` is called when there are any."""

    def __init__(self, watch: ProducerWatch | None = None) -> None:
        self._watch: Final = watch or ProducerWatch()
        self._producers: dict[int, ProducerState] = {}
        self._verifications: dict[int, _Verification] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset, which only grows

    def __len__(self) -> int:
        return len(self._producers) + len(self._verifications)

    @property
    def active(self) -> tuple[tuple[int, ProducerState], ...]:
        """The producers that are not forgotten, by id, in order of appearance."""
        return tuple(self._producers.items())

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that were silent for too long and have no open transaction."""
        latest = now_ms - expiration_ms
        for producer_id, state in tuple(self._producers.items()):
            if state.first_offset is None and state.last_timestamp <= latest:
                del self._producers[producer_id]
        for producer_id, asked in tuple(self._verifications.items()):
            if asked.asked_ms <= latest:
                del self._verifications[producer_id]

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._open.values()), None)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer, in this very epoch, has written to a transaction that is open."""
        state = self._producers.get(producer_id)
        return state is not None and state.first_offset is not None and state.epoch == epoch

    def has_seen_newer(self, producer_id: int, epoch: int) -> bool:
        """Whether a later epoch of the producer is known."""
        state = self._producers.get(producer_id)
        return state is not None and state.epoch > epoch

    # -- data ------------------------------------------------------------------------------------

    def start_verification(self, now_ms: int, header: BatchHeader, *, from_zero: bool) -> None:
        """Note that the coordinator is asked about the transaction that this batch would open.

        ``from_zero``: a producer that is not known here must begin with sequence number 0.
        """
        known = self._verifications.get(header.producer_id)
        if known is None:
            self._watch.any = True
            self._verifications[header.producer_id] = _Verification(
                now_ms, header.producer_epoch, header.base_sequence, from_zero
            )
        else:
            known.update(header.producer_epoch, header.base_sequence)

    def duplicate_of(self, header: BatchHeader) -> AppendedBatch | None:
        """The batch that this one repeats, if any."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        wanted = (header.base_sequence, header.last_sequence)
        for batch in producer.batches:
            if (batch.base_sequence, batch.last_sequence) == wanted:
                return batch
        return None

    def refusal(self, header: BatchHeader) -> ErrorCode | None:
        """Why this batch may not be appended, or ``None`` when it may."""
        producer = self._producers.get(header.producer_id)
        if producer is not None and header.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if not self._in_order(producer, header):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        is_open = producer is not None and producer.first_offset is not None
        return ErrorCode.INVALID_TXN_STATE if is_open and not header.is_transactional else None

    def _in_order(self, producer: ProducerState | None, header: BatchHeader) -> bool:
        sequence = header.base_sequence
        asked = self._verifications.get(header.producer_id)
        if asked is not None and sequence > asked.lowest_sequence:
            return False
        if producer is None:
            return asked is None or not asked.from_zero or sequence == 0
        if header.producer_epoch != producer.epoch:
            return sequence == 0 or producer.epoch == _NO_EPOCH
        last = producer.last_sequence
        return sequence == (0 if last == _LAST_SEQUENCE else last + 1)

    def appended(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Remember a batch that was appended; a transactional one opens a transaction."""
        self._watch.any = True
        producer = self._producers.setdefault(header.producer_id, ProducerState())
        producer.enter(header.producer_epoch)
        producer.last_timestamp = timestamp
        producer.batches.append(
            AppendedBatch(header.base_sequence, header.last_sequence, base_offset, timestamp)
        )
        if header.is_transactional:
            self._verifications.pop(header.producer_id, None)
            if producer.first_offset is None:
                producer.first_offset = self._open[header.producer_id] = base_offset

    # -- markers ---------------------------------------------------------------------------------

    def marker_refusal(
        self, producer_id: int, epoch: int, coordinator_epoch: int, *, raised: bool = False
    ) -> ErrorCode | None:
        """Why a marker may not be appended.

        ``raised``: ending the transaction raised the epoch, so a marker in the epoch of an open
        transaction is not meant for it (KIP-890).
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return None
        is_open = producer.first_offset is not None
        if epoch < producer.epoch or (raised and is_open and epoch == producer.epoch):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if coordinator_epoch < producer.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return None

    def ended(
        self, now_ms: int, producer_id: int, epoch: int, coordinator_epoch: int
    ) -> int | None:
        """A marker was appended; returns where the transaction began, ``None`` for an empty one."""
        self._watch.any = True
        self._verifications.pop(producer_id, None)
        producer = self._producers.setdefault(producer_id, ProducerState())
        producer.enter(epoch)
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = now_ms
        producer.first_offset = None
        return self._open.pop(producer_id, None)

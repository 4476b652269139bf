"""Collects records into batches: open batches, the memory budget, linger and delivery timeouts.

An open batch reserves as many bytes of the budget as it may grow to, as in Java, so that adding a
record needs no accounting. It is closed when a record no longer fits, or when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from kip848_client.core.partition_names import shown
from kip848_client.core.produce._batches import Batch
from kip848_client.core.produce._model import (
    BatchBuilder,
    Header,
    MakeBuilder,
    Placed,
    ProduceSettings,
)
from kip848_client.core.produce._partition import Partition
from kip848_client.core.types import TopicPartition
from kip848_client.errors import RecordTooLarge

__all__ = ["Accumulator"]

_OVERHEAD_BYTES: Final = 61 + 21
"""The header of a batch, plus the most that a record takes besides its key, value and headers."""
_HEADER_OVERHEAD_BYTES: Final = 10
"""Two lengths."""
_OVER_MAX: Final = 64
"""Finished batches kept in the heap beyond the number of live ones, before it is cleaned up."""


class Accumulator:
    """All partitions. None is forgotten, because brokers do not forget a partition's sequence
    numbers. ``touched``: partitions that may have something to send since the last step. ``closed``
    is called for each batch that takes no more records, with its partition, its bytes and whether
    it is full; ``used`` for the topic of each new batch."""

    def __init__(
        self,
        settings: ProduceSettings,
        make_builder: MakeBuilder,
        *,
        closed: Callable[[TopicPartition, int, bool], None],
        used: Callable[[int, str], None],
    ) -> None:
        self.open: dict[TopicPartition, Batch] = {}
        """Batches that take records (the hot path)."""
        self.partitions: dict[TopicPartition, Partition] = {}
        self.touched: dict[Partition, None] = {}
        self.held_bytes = 0
        """Bytes of the budget in use."""
        self.reserved_bytes: int | None = None
        """Bytes that a waiting caller needs."""
        self._settings = settings
        self._make_builder = make_builder
        self._closed = closed
        self._used = used
        self._number = 0
        self._lingering: dict[Partition, int] = {}
        """Open batches that are not due yet, with the time each was opened. The first is due
        first."""
        self._roots: dict[int, int] = {}
        """Batches whose result has not been reported yet, in order: the number of the batch that
        the records were first appended to, and how many parts it has now."""
        self._expiring: list[tuple[int, int, Batch]] = []
        """Ordered by deadline; may contain finished batches."""
        self._live = 0
        """How many of them are not finished."""

    # -- queries -----------------------------------------------------------------------------

    def partition(self, tp: TopicPartition) -> Partition:
        """The state of a partition, created if necessary."""
        partition = self.partitions.get(tp)
        if partition is None:
            alone = self._settings.transactional_id is None
            partition = self.partitions[tp] = Partition(tp, alone=alone)
        return partition

    @property
    def newest(self) -> int:
        """The number of the newest batch."""
        return self._number

    @property
    def unreported(self) -> int:
        """How many appended batches have no reported result yet."""
        return len(self._roots)

    def is_reported(self, barrier: int) -> bool:
        """Whether all batches up to this number have had their result reported."""
        return not self._roots or next(iter(self._roots)) > barrier

    def waiting_at(self, tp: TopicPartition) -> int:
        """How many batches of a partition are not acknowledged yet."""
        partition = self.partitions.get(tp)
        return 0 if partition is None else len(partition.waiting) + len(partition.flying)

    def is_idle(self, topic: str) -> bool:
        """Whether this topic has no batches."""
        return all(each.is_idle for each in self.partitions.values() if each.tp[0] == topic)

    def due_ms(self) -> int | None:
        """When the next batch has lingered long enough, or expires."""
        due = next(iter(self._lingering.values()), None)
        if due is not None:
            due += self._settings.linger_ms
        expiring = self._expiring
        while expiring and expiring[0][2].is_over:
            heappop(expiring)
        if expiring:
            due = expiring[0][0] if due is None else min(due, expiring[0][0])
        return due

    # -- appending ---------------------------------------------------------------------------

    def begin(
        self,
        now_ms: int,
        tp: TopicPartition,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> Placed | None:
        """Begin a batch with this record; ``None`` if the budget does not allow it.

        Raises ``RecordTooLarge``.
        """
        size_bytes = self._size(tp, key, value, headers)
        held_bytes = max(self._settings.batch_bytes, size_bytes)
        if self.held_bytes and self.held_bytes + held_bytes > self._settings.buffer_bytes:
            self._reserve(held_bytes)
            return None
        builder = self._make_builder(held_bytes)
        builder.append(timestamp_ms, key, value, headers)
        partition = self.partition(tp)
        self.fill(tp)
        self._number = number = self._number + 1
        deadline_ms = now_ms + self._settings.delivery_timeout_ms
        batch = Batch(
            number,
            (number,),
            tp,
            builder,
            created_ms=now_ms,
            deadline_ms=deadline_ms,
            held_bytes=held_bytes,
        )
        batch.records = 1
        if partition.is_idle:
            partition.trouble_since_ms = now_ms  # what waited before is finished
        partition.open = self.open[tp] = batch
        self.held_bytes += held_bytes
        self._roots[number] = 1
        self._await(batch)
        self._lingering[partition] = now_ms
        self._used(now_ms, tp[0])
        # if other batches are due earlier and nothing else has happened, the timer is enough
        notify = bool(self.touched) or next(iter(self._lingering)) is partition
        return Placed(number, 0, tp, notify)

    def fill(self, tp: TopicPartition) -> bool:
        """Close the open batch of a partition, if any, because a record does not fit into it.
        Returns whether there was one."""
        batch = self.open.get(tp)
        if batch is None:
            return False
        self.close(self.partitions[tp], full=True)
        return True

    def _size(
        self,
        tp: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> int:
        """The largest size in bytes of a batch that holds only this record."""
        size = _OVERHEAD_BYTES
        if key is not None:
            size += len(key)
        if value is not None:
            size += len(value)
        for name, content in headers:
            size += _HEADER_OVERHEAD_BYTES + len(name.encode())
            if content is not None:
                size += len(content)
        settings = self._settings
        if size > min(settings.request_bytes, settings.buffer_bytes):
            limit = (
                f"max_request_size={settings.request_bytes}"
                if size > settings.request_bytes
                else f"buffer_memory={settings.buffer_bytes}"
            )
            raise RecordTooLarge(
                f"{shown(tp)}: a record of {size} bytes (with its overhead, before compression) is "
                f"larger than {limit} allows; raise it, and the topic's max.message.bytes with it, "
                "or send less in one record"
            )
        return size

    def _reserve(self, held_bytes: int) -> None:
        wanted = self.reserved_bytes
        self.reserved_bytes = held_bytes if wanted is None else min(wanted, held_bytes)

    def close(self, partition: Partition, *, full: bool) -> Batch:
        """Close the open batch to more records and queue it for sending."""
        batch = partition.open
        assert batch is not None
        partition.open = None
        partition.due = False
        del self.open[partition.tp]
        self._lingering.pop(partition, None)
        size_bytes = batch.builder.size_bytes
        self.held_bytes += size_bytes - batch.held_bytes
        batch.held_bytes = size_bytes
        partition.waiting.append(batch)
        self.touched[partition] = None
        self._closed(partition.tp, size_bytes, full)
        return batch

    # -- time --------------------------------------------------------------------------------

    def settle(self, now_ms: int) -> Iterator[Partition]:
        """The partitions that may have become ready to send."""
        if self.reserved_bytes is not None:
            self.flush_now()  # a caller that waits for memory must not wait for lingering batches
        lingering, linger_ms = self._lingering, self._settings.linger_ms
        while lingering:
            partition, since_ms = next(iter(lingering.items()))
            if now_ms < since_ms + linger_ms:
                break
            del lingering[partition]
            self._due(partition)
        touched, self.touched = self.touched, {}
        yield from touched

    def flush_now(self) -> None:
        """Stop lingering: all open batches are due now."""
        lingering, self._lingering = self._lingering, {}
        for partition in lingering:
            self._due(partition)

    def _due(self, partition: Partition) -> None:
        partition.due = True
        self.touched[partition] = None

    def expired(self, now_ms: int) -> Iterator[Batch]:
        """Batches that have passed their deadline and whose result has not been reported."""
        expiring = self._expiring
        while expiring and expiring[0][0] <= now_ms:
            batch = heappop(expiring)[2]
            if not batch.is_over:
                yield batch

    def everything(self) -> Iterator[Batch]:
        """Every batch whose result has not been reported, in order."""
        for _, _, batch in sorted(self._expiring, key=lambda each: each[2].order):
            if not batch.is_over:
                yield batch

    # -- finishing ---------------------------------------------------------------------------

    def end(self, batch: Batch) -> None:
        """Mark a batch whose result is being reported as finished, and free its bytes."""
        self._is_over(batch)

    def withdraw(self, batch: Batch) -> None:
        """Remove a batch from the send queue if it is in it."""
        partition = self.partitions[batch.tp]
        if partition.open is batch:
            self.close(partition, full=False)
        if batch in partition.unsettled:
            partition.unsettled.remove(batch)
        elif batch not in partition.flying:
            partition.waiting.remove(batch)
            self.touched[partition] = None

    def split(self, batch: Batch, builders: Collection[BatchBuilder]) -> list[Batch]:
        """Replace a batch that is neither in flight nor queued by these parts."""
        parts: list[Batch] = []
        for at, builder in enumerate(builders):
            self._number += 1
            part = Batch(
                self._number,
                (*batch.order, at),
                batch.tp,
                builder,
                created_ms=batch.created_ms,
                deadline_ms=batch.deadline_ms,
                held_bytes=builder.size_bytes,
            )
            part.records = builder.records
            self.held_bytes += part.held_bytes
            self._await(part)
            parts.append(part)
        self._roots[batch.order[0]] += len(parts)
        self._is_over(batch)
        for part in parts:
            self.partitions[batch.tp].wait_again(part)
        return parts

    def _await(self, batch: Batch) -> None:
        heappush(self._expiring, (batch.deadline_ms, batch.number, batch))
        self._live += 1

    def _is_over(self, batch: Batch) -> None:
        batch.is_over = True
        self._live -= 1
        if len(self._expiring) > _OVER_MAX + 2 * self._live:
            # without this cleanup, batches that are never reached would be kept in memory
            self._expiring = [each for each in self._expiring if not each[2].is_over]
            heapify(self._expiring)
        self.held_bytes -= batch.held_bytes
        batch.held_bytes = 0
        root = batch.order[0]
        self._roots[root] -= 1
        if not self._roots[root]:
            del self._roots[root]

    def takes_room(self) -> bool:
        """Whether memory is free for a waiting caller, which must then retry."""
        wanted = self.reserved_bytes
        if wanted is None:
            return False
        if self.held_bytes and self.held_bytes + wanted > self._settings.buffer_bytes:
            return False
        self.reserved_bytes = None
        return True

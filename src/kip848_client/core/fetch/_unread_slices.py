"""Fetched records that are not yet delivered: slices of logs, taken in turn, counted in bytes.

A broker's answer for a partition becomes one slice. Slices of a partition are contiguous: each was
requested at the end of the previous one. Partitions with something to read are kept in a ring, so
that each gets its turn. How much may be fetched ahead is decided by ``_planner``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from kip848_client.core.fetch._model import BatchRef, EpochEnd, Slice
from kip848_client.core.fetch._partition import NO_SLICES, Partition
from kip848_client.core.types import TopicPartition

__all__ = ["UnreadSlices"]


class UnreadSlices:
    """All slices of all partitions."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.changes = 0
        """Incremented when what may be read changes, other than by reading it."""
        self.read: dict[TopicPartition, Partition] = {}
        """Partitions with slices finished since the last look; the reader of this field clears
        it."""
        self._ring: dict[TopicPartition, Partition] = {}
        self._by_node: dict[int, int] = {}
        """Node to the number of partitions with slices from that broker."""

    # -- reading -----------------------------------------------------------------------------

    def slices(self, only: Collection[TopicPartition] = ()) -> list[Slice]:
        """The first slice of each partition that can be read, in turn."""
        return [partition.slices[0] for partition in self._turns(only)]

    def next_slice(self, only: Collection[TopicPartition] = ()) -> Slice | None:
        """The first slice of the partition whose turn it is, if any."""
        for partition in self._turns(only):
            return partition.slices[0]
        return None

    def _turns(self, only: Collection[TopicPartition]) -> Iterator[Partition]:
        wanted = frozenset(only)
        for tp, partition in self._ring.items():
            if not wanted or tp in wanted:
                yield partition

    def finish(self, partition: Partition, piece: Slice) -> None:
        """Mark a slice as read to its end and move the position there. Ignored unless it is the
        first of the partition, in the current generation."""
        if not partition.slices or partition.slices[0] is not piece:
            return
        cursor = piece.cursor
        cursor.consumed, cursor.consumed_epoch = piece.next_offset, piece.last_epoch
        self._remove(partition, partition.slices.popleft())
        self.read[partition.tp] = partition
        self.turn(partition.tp)
        if not partition.slices:
            self._ring.pop(partition.tp, None)

    def turn(self, tp: TopicPartition) -> None:
        """End the turn of this partition."""
        partition = self._ring.pop(tp, None)
        if partition is not None:
            self._ring[tp] = partition

    # -- changing ----------------------------------------------------------------------------

    def append(self, partition: Partition, node: int, piece: Slice) -> None:
        """Add a slice that a broker sent."""
        if not partition.slices:
            partition.buffered_from = node
            self._by_node[node] = self._by_node.get(node, 0) + 1
            partition.slices = deque()
        partition.slices.append(piece)
        partition.buffered_bytes += len(piece.raw)
        self.size_bytes += len(piece.raw)
        self.changes += 1
        self.refresh(partition)

    def clear(self, partition: Partition) -> None:
        """Drop everything buffered for the partition."""
        self.changes += 1
        while partition.slices:
            self._remove(partition, partition.slices.pop())
        self._ring.pop(partition.tp, None)
        self.read.pop(partition.tp, None)

    def cut(self, partition: Partition, end: EpochEnd) -> tuple[int, int]:
        """Drop what is buffered beyond ``end``, which is where the broker's log ends an epoch;
        returns the (offset, leader epoch) to continue fetching at."""
        cursor = partition.cursor
        assert cursor is not None
        self.changes += 1
        kept: list[Slice] = []
        cut = False
        while partition.slices:
            piece = partition.slices.popleft()
            self._remove(partition, piece)
            whole = piece if not cut else None
            if whole is not None and not _within(piece, end):
                cut, whole = True, _part(piece, end)
            if whole is not None:
                kept.append(whole)
        for piece in kept:
            self.append(partition, partition.buffered_from, piece)
        self.refresh(partition)
        if kept:
            return kept[-1].next_offset, kept[-1].last_epoch
        return cursor.consumed, cursor.consumed_epoch

    def refresh(self, partition: Partition) -> None:
        """Re-check whether the partition can be read."""
        inside = partition.tp in self._ring
        if bool(partition.slices) and partition.readable:
            if not inside:
                self._ring[partition.tp] = partition
                self.changes += 1
        elif inside:
            del self._ring[partition.tp]
            self.changes += 1

    def holds_of(self, node: int) -> bool:
        """Whether anything from this broker is buffered."""
        return node in self._by_node

    def _remove(self, partition: Partition, piece: Slice) -> None:
        partition.buffered_bytes -= len(piece.raw)
        self.size_bytes -= len(piece.raw)
        if not partition.slices:
            partition.slices = NO_SLICES
            node = partition.buffered_from
            self._by_node[node] -= 1
            if not self._by_node[node]:
                del self._by_node[node]


def _within(piece: Slice, end: EpochEnd) -> bool:
    return piece.next_offset <= end.end_offset and piece.last_epoch <= end.epoch


def _part(piece: Slice, end: EpochEnd) -> Slice | None:
    """Return the batches of a slice that are before the end. Its bytes stay whole; bytes that no
    batch refers to are not read."""
    kept: list[BatchRef] = []
    for batch in piece.batches:
        if batch.next_offset > end.end_offset or batch.leader_epoch > end.epoch:
            break
        kept.append(batch)
    if not kept:
        return None
    after, epoch = kept[-1].next_offset, kept[-1].leader_epoch
    return Slice(piece.cursor, piece.first_offset, after, epoch, piece.raw, tuple(kept))

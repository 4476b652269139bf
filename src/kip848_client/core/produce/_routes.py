"""Chooses the partition for records as Java's producer does.

A key determines its partition. Records without a key stay with one partition for about one batch of
bytes, so that batches are full and all partitions get the same share (KIP-480, KIP-794). No batch
that has room is left behind: the partition changes when a batch is closed, and a record that did
not fit into it goes to the next partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kip848_client.core.produce._partitioner import partition_of_key
from kip848_client.core.types import TopicPartition

__all__ = ["Choose", "Route"]

Choose = Callable[[int], int]
"""Takes n and returns one of 0 .. n-1, all equally likely."""


class Route:
    """Chooses the partition for the records of one topic. ``waiting`` returns the number of
    unacknowledged batches of a partition."""

    __slots__ = (
        "_bytes",
        "_choose",
        "_left",
        "_limit_bytes",
        "_turn",
        "_waiting",
        "led",
        "partitions",
    )

    def __init__(
        self, choose: Choose, limit_bytes: int, waiting: Callable[[TopicPartition], int]
    ) -> None:
        self.partitions: tuple[TopicPartition, ...] = ()
        """All partitions, by number."""
        self.led: Sequence[TopicPartition] = ()
        """Partitions with a leader, as of the last metadata; may be empty."""
        self._choose = choose
        self._limit_bytes = limit_bytes
        self._waiting = waiting
        self._turn: TopicPartition | None = None
        """The current partition of records without a key."""
        self._left: TopicPartition | None = None
        """The previous one."""
        self._bytes = 0
        """Bytes in the batches closed since the current one was chosen."""

    def learn(self, partitions: tuple[TopicPartition, ...], led: Sequence[TopicPartition]) -> None:
        """Set the partitions, at least one, and those that have a leader."""
        self.partitions = partitions
        self.led = led
        if self._turn not in partitions:
            self._turn = None

    def of(self, key: bytes | None) -> TopicPartition:
        """The partition of a record."""
        if key is None:
            return self._turn or self._pick()
        partitions = self.partitions
        return partitions[partition_of_key(key, len(partitions))]

    def _pick(self) -> TopicPartition:
        """Choose another partition: of two that have a leader, the one with fewer unacknowledged
        batches, so that a slow broker gets less."""
        able = self.led or self.partitions
        others = [each for each in able if each != self._left] or able
        one, two = (others[self._choose(len(others))] for _ in range(2))
        self._turn = turn = two if self._waiting(two) < self._waiting(one) else one
        self._bytes = 0
        return turn

    def closed(self, tp: TopicPartition, size_bytes: int, *, full: bool) -> None:
        """A batch was closed."""
        if tp != self._turn:
            return
        self._bytes += size_bytes
        if full or self._bytes >= self._limit_bytes:
            self._left, self._turn = tp, None

"""Where the records of a topic go, as Java's producer sends them.

A key has its partition. Records without a key stay with one partition for a batch's worth of bytes,
so that batches are full and all partitions get the same (KIP-480, KIP-794). No batch is left behind
that has room: it is another partition's turn when a batch was closed, and a record that did not fit
into it goes along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kip848_client.core.produce._partitioner import partition_of_key
from kip848_client.core.types import TopicPartition

__all__ = ["Choose", "Route"]

Choose = Callable[[int], int]
"""Gets n and gives one of 0 .. n-1, each as likely as the others."""


class Route:
    """Where the records of one topic go. ``waiting`` tells how many batches of a partition are not
    acknowledged."""

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
        """By number."""
        self.led: Sequence[TopicPartition] = ()
        """Those that have a leader, as metadata told last; there may be none."""
        self._choose = choose
        self._limit_bytes = limit_bytes
        self._waiting = waiting
        self._turn: TopicPartition | None = None
        """Records without a key go there at the moment."""
        self._left: TopicPartition | None = None
        """They went there before."""
        self._bytes = 0
        """In batches that were closed in this turn."""

    def learn(self, partitions: tuple[TopicPartition, ...], led: Sequence[TopicPartition]) -> None:
        """Which partitions there are, at least one, and which of them have a leader."""
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
        """Another one: of two that have a leader the one with fewer batches that wait, so that a
        slow broker gets less."""
        able = self.led or self.partitions
        others = [each for each in able if each != self._left] or able
        one, two = (others[self._choose(len(others))] for _ in range(2))
        self._turn = turn = two if self._waiting(two) < self._waiting(one) else one
        self._bytes = 0
        return turn

    def closed(self, tp: TopicPartition, size_bytes: int, *, full: bool) -> None:
        """A batch takes no more records."""
        if tp != self._turn:
            return
        self._bytes += size_bytes
        if full or self._bytes >= self._limit_bytes:
            self._left, self._turn = tp, None

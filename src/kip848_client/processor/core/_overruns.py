"""Handles transactions that were open for longer than their coordinator allows.

The coordinator measures from the first output of a transaction to its end. So a slow record does no
harm by itself, because its outputs come after the work. It does harm if other records of the same
transaction have sent outputs before it. Repeating the same records together would overrun forever.
So the records of such a transaction are repeated with one transaction per record (or batch), until
they are committed. If even such a transaction overruns, several times in a row, the processor
fails: a transaction with a single record cannot be made smaller.

Other records continue as usual, in transactions without those. There may be many of them before
those records come up again: a consumer returns all fetched records of one partition before the next
one's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kip848_client.core.partition_names import listed
from kip848_client.core.types import TopicPartition
from kip848_client.errors import TransactionTimedOut
from kip848_client.processor.core._model import Portion

__all__ = ["ALONE_MAX", "Overruns"]

ALONE_MAX: Final = 3
"""How often in a row one record may overrun in a transaction of its own."""


class Overruns:
    """The records to be repeated one by one."""

    def __init__(self) -> None:
        self._until: dict[TopicPartition, int] = {}
        self._tried: dict[TopicPartition, int] = {}
        self._in_a_row: dict[TopicPartition, int] = {}
        """How often a record overran in a transaction of its own."""
        self.is_alone = False
        """Whether the transaction is for a single record (or batch)."""

    def has(self, portion: Portion) -> bool:
        """Whether the first record (or batch) must have a transaction of its own."""
        return portion.first < self._until.get(portion.partition, 0)

    def begun(self) -> None:
        """Another transaction has begun."""
        self._tried.clear()
        self.is_alone = False

    def take(self, portion: Portion) -> bool:
        """The transaction takes this portion next. Returns whether it is for the first record (or
        batch) alone."""
        self.is_alone = self.has(portion)
        return self.is_alone

    def tried(self, tp: TopicPartition, until: int) -> None:
        """The transaction could not take an output of the records before ``until``."""
        self._tried[tp] = until

    def overrun(
        self, done: Mapping[TopicPartition, int], error: Exception
    ) -> TransactionTimedOut | None:
        """A transaction has overrun, with the records before ``done`` by partition. Returns the
        error to fail with if repetition is useless."""
        in_it = {**done, **self._tried}
        for tp, until in in_it.items():
            self._until[tp] = max(until, self._until.get(tp, 0))
            self._in_a_row[tp] = self._in_a_row.get(tp, 0) + self.is_alone
        if not any(self._in_a_row[tp] >= ALONE_MAX for tp in in_it):
            return None
        return TransactionTimedOut(
            f"a transaction with one record (or batch) of {listed(sorted(in_it))} was "
            f"open for longer than the producer's transaction_timeout_ms, {ALONE_MAX} times in "
            "a row: its outputs do not get through in that time. Raise transaction_timeout_ms, or "
            f"return less for one record; the last time: {error}",
            cause=error,
        )

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Records before these offsets will not come up again."""
        for tp, offset in offsets.items():
            self._in_a_row.pop(tp, None)
            if self._until.get(tp, offset + 1) <= offset:
                del self._until[tp]

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are no longer assigned."""
        for tp in partitions:
            self._until.pop(tp, None)
            self._tried.pop(tp, None)
            self._in_a_row.pop(tp, None)

"""Transactions that were open for longer than their coordinator allows, and how to get past them.

The coordinator counts from the first output of a transaction to its end. So a record that takes
long does no harm by itself: its outputs come after the work. It does where others of the same
transaction have sent theirs before it. The same records again would overrun again, for ever. So
what was in such a transaction is repeated with a transaction for each record (or batch), until it
is committed. If one overruns even so, several times in a row, the end has to be somebody else's to
find: a transaction with nothing else in it cannot be made smaller.

What was not in it goes on as ever, in transactions without those. There may be much of it before
they come again: a consumer hands out what it has fetched of one partition before the next one's.
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
"""So often in a row one record may overrun in a transaction of its own."""


class Overruns:
    """What is to be repeated record by record."""

    def __init__(self) -> None:
        self._until: dict[TopicPartition, int] = {}
        self._tried: dict[TopicPartition, int] = {}
        self._in_a_row: dict[TopicPartition, int] = {}
        """How often a record overran in a transaction of its own."""
        self.is_alone = False
        """Whether the transaction is for one record (or batch)."""

    def has(self, portion: Portion) -> bool:
        """Whether its first record (or batch) is to have a transaction of its own."""
        return portion.first < self._until.get(portion.partition, 0)

    def begun(self) -> None:
        """Another transaction."""
        self._tried.clear()
        self.is_alone = False

    def take(self, portion: Portion) -> bool:
        """The transaction has this next. Returns whether it is for its first record (or batch)
        alone."""
        self.is_alone = self.has(portion)
        return self.is_alone

    def tried(self, tp: TopicPartition, until: int) -> None:
        """The transaction could not take an output of the records before ``until``."""
        self._tried[tp] = until

    def overrun(
        self, done: Mapping[TopicPartition, int], error: Exception
    ) -> TransactionTimedOut | None:
        """A transaction was, with the records before ``done`` by partition. Returns the error to
        end with, if it makes no sense to repeat it."""
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
        """What is before these will not come again."""
        for tp, offset in offsets.items():
            self._in_a_row.pop(tp, None)
            if self._until.get(tp, offset + 1) <= offset:
                del self._until[tp]

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These are not ours any more."""
        for tp in partitions:
            self._until.pop(tp, None)
            self._tried.pop(tp, None)
            self._in_a_row.pop(tp, None)

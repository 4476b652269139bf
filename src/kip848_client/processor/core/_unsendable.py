"""Records whose outputs cannot be sent in any transaction: they become dead letters.

When an output is refused, other outputs of the same record may already be in the transaction, so it
is aborted. When the record comes up again it is not processed: it becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kip848_client.core.types import TopicPartition
from kip848_client.processor.core._model import Portion

__all__ = ["Unsendable", "UnsendableRun"]


class UnsendableRun(NamedTuple):
    """Consecutive records, and why they cannot be processed."""

    first: int
    until: int
    error: Exception


class Unsendable:
    """Such records by partition, in order of their offsets."""

    def __init__(self) -> None:
        self._runs: dict[TopicPartition, list[UnsendableRun]] = {}

    def add(self, tp: TopicPartition, first: int, until: int, error: Exception) -> None:
        """These records become dead letters when they come up again."""
        runs = self._runs.setdefault(tp, [])
        runs.append(UnsendableRun(first, until, error))
        runs.sort(key=lambda each: each.first)

    def of(self, portion: Portion) -> UnsendableRun | None:
        """The first run that overlaps ``portion``."""
        for each in self._runs.get(portion.partition, ()):
            if each.first < portion.until and portion.first < each.until:
                return each
        return None

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Records before these offsets will not come up again."""
        for tp, offset in offsets.items():
            left = [each for each in self._runs.get(tp, ()) if each.until > offset]
            if left:
                self._runs[tp] = left
            else:
                self._runs.pop(tp, None)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are no longer assigned."""
        for tp in partitions:
            self._runs.pop(tp, None)

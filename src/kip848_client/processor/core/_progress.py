"""Which records are fetched, which are in the transaction, and where to read from again."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping

from kip848_client.core.types import TopicPartition
from kip848_client.processor.core._model import Portion

__all__ = ["Progress"]


class Progress:
    """Records that the consumer has returned and that no transaction has committed.

    After an abort, reading restarts at the first of them in each partition. This is the committed
    offset or, if there is none, where the consumer began.
    """

    def __init__(self) -> None:
        self._hand: deque[Portion] = deque()
        self._first: dict[TopicPartition, int] = {}
        self._done: dict[TopicPartition, int] = {}
        self.records = 0
        """The number of fetched records that were not taken yet."""

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The offsets for the transaction to commit, one per partition of its records."""
        return dict(self._done)

    @property
    def has_done(self) -> bool:
        """Whether the transaction has complete records."""
        return bool(self._done)

    @property
    def next(self) -> Portion | None:
        """The portion that ``take`` would return."""
        return self._hand[0] if self._hand else None

    def touches(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the transaction has records of one of these partitions."""
        return any(tp in self._done for tp in partitions)

    def polled(self, portions: Collection[Portion]) -> None:
        """These portions were fetched."""
        for portion in portions:
            self._first.setdefault(portion.partition, portion.first)
            self._hand.append(portion)
            self.records += portion.records

    def take(self) -> Portion | None:
        """Remove and return the portion to process next."""
        if not self._hand:
            return None
        portion = self._hand.popleft()
        self.records -= portion.records
        return portion

    def put_back(self, portion: Portion) -> None:
        """Return a portion to the front, to be processed next."""
        self._hand.appendleft(portion)
        self.records += portion.records

    def processed(self, tp: TopicPartition, until: int) -> None:
        """The transaction has the records of ``tp`` before ``until``."""
        self._done[tp] = until

    def drop(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Discard the fetched records of these partitions. Returns the offsets to read from again
        if the partitions stay assigned."""
        found: dict[TopicPartition, int] = {}
        kept = deque[Portion]()
        for portion in self._hand:
            if portion.partition in partitions:
                found.setdefault(portion.partition, portion.first)
                self.records -= portion.records
            else:
                kept.append(portion)
        self._hand = kept
        return found

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are no longer assigned."""
        self.drop(partitions)
        for tp in partitions:
            self._first.pop(tp, None)
            self._done.pop(tp, None)

    def committed(self) -> None:
        """The transaction is committed; only the fetched records are left."""
        in_hand: dict[TopicPartition, int] = {}
        for portion in self._hand:
            in_hand.setdefault(portion.partition, portion.first)
        self._first = in_hand
        self._done.clear()

    def rewind(self) -> dict[TopicPartition, int]:
        """Discard everything, and return the offsets to read from again."""
        first, self._first = self._first, {}
        self._hand.clear()
        self._done.clear()
        self.records = 0
        return first

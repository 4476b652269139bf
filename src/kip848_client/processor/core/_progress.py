"""Which records are in hand, which are in the transaction, and where to read again from."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping

from kip848_client.core.types import TopicPartition
from kip848_client.processor.core._model import Portion

__all__ = ["Progress"]


class Progress:
    """The records that the consumer has handed out and no transaction has committed.

    What is read again after an abort begins with the first of them, by partition: that is what is
    committed, or where the consumer began where nothing is.
    """

    def __init__(self) -> None:
        self._hand: deque[Portion] = deque()
        self._first: dict[TopicPartition, int] = {}
        self._done: dict[TopicPartition, int] = {}
        self.records = 0
        """In hand."""

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """What the transaction is to commit: of each partition that it has records of."""
        return dict(self._done)

    @property
    def has_done(self) -> bool:
        """Whether the transaction has records."""
        return bool(self._done)

    @property
    def next(self) -> Portion | None:
        """What ``take`` would return."""
        return self._hand[0] if self._hand else None

    def touches(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the transaction has records of one of these."""
        return any(tp in self._done for tp in partitions)

    def polled(self, portions: Collection[Portion]) -> None:
        """These are in hand."""
        for portion in portions:
            self._first.setdefault(portion.partition, portion.first)
            self._hand.append(portion)
            self.records += portion.records

    def take(self) -> Portion | None:
        """What is to be processed next; it is in hand no more."""
        if not self._hand:
            return None
        portion = self._hand.popleft()
        self.records -= portion.records
        return portion

    def put_back(self, portion: Portion) -> None:
        """To be processed next."""
        self._hand.appendleft(portion)
        self.records += portion.records

    def processed(self, tp: TopicPartition, until: int) -> None:
        """The transaction has the records of ``tp`` before ``until``."""
        self._done[tp] = until

    def drop(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Have nothing of these in hand. Returns from where they must be read again, if they stay
        ours."""
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
        """These are not ours any more."""
        self.drop(partitions)
        for tp in partitions:
            self._first.pop(tp, None)
            self._done.pop(tp, None)

    def committed(self) -> None:
        """The transaction is committed: what is in hand is what is left."""
        in_hand: dict[TopicPartition, int] = {}
        for portion in self._hand:
            in_hand.setdefault(portion.partition, portion.first)
        self._first = in_hand
        self._done.clear()

    def rewind(self) -> dict[TopicPartition, int]:
        """Have nothing, and return from where to read again."""
        first, self._first = self._first, {}
        self._hand.clear()
        self._done.clear()
        self.records = 0
        return first

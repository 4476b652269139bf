"""A plain stand-in for the batches of a producer: one record each, one on its way a partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kip848_client.core.produce._error_rules import Api, Reaction, reaction, refusal
from kip848_client.core.produce._interfaces import ProducerIdentity
from kip848_client.core.produce._model import ProducerId
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error, RecordUnreadable

__all__ = ["Batch", "Batches"]

_PASSING: Final = (Reaction.RETRY, Reaction.REFRESH)


@dataclass(eq=False)
class Batch:
    """One record."""

    tp: TopicPartition
    value: bytes
    limit_ms: int
    producer: ProducerId | None = None
    sequence: int = 0
    not_before_ms: int = 0
    is_bad: bool = False


class Batches:
    """Batches of one record, one on its way for each partition."""

    def __init__(self, now: Callable[[], int], produce: Callable[[Batch], None]) -> None:
        self.client: ProducerIdentity | None = None
        self._now = now
        self._produce = produce
        self.waiting: list[Batch] = []
        self.flying: list[Batch] = []
        self.sequences: dict[TopicPartition, int] = {}
        self.has_gap = False

    @property
    def is_empty(self) -> bool:
        return not self.waiting and not self.flying

    @property
    def is_in_flight(self) -> bool:
        return bool(self.flying)

    @property
    def trouble(self) -> str | None:
        return None

    def flush_now(self) -> None:
        """There is no lingering here."""

    def drop_unsent(self, error: Kip848Error) -> None:
        assert error
        self.has_gap = self.has_gap or any(each.producer is not None for each in self.waiting)
        self.waiting.clear()

    def begin_anew(self, producer: ProducerId) -> None:
        assert producer.number >= 0
        assert not self.flying, "something is on its way"
        assert not self.waiting, "something of the transaction before is left"
        self.sequences.clear()
        self.has_gap = False

    def send(self) -> None:
        """What may be sent; what waited for too long fails."""
        client = self.client
        assert client is not None
        now = self._now()
        for batch in tuple(self.waiting):
            who = client.producer
            if who is None:
                return
            if batch.limit_ms <= now:
                self.waiting.remove(batch)
                sent = batch.producer is not None
                self.has_gap = self.has_gap or sent
                to_do = Reaction.ABORT_AND_BUMP if sent else Reaction.ABORT
                error = RecordUnreadable("late", topic=batch.tp[0], partition=0, offset=0)
                client.batch_failed(now, batch.producer, to_do, error)
                return
            taken = any(each.tp == batch.tp for each in self.flying)
            first = next(each for each in self.waiting if each.tp == batch.tp)
            if taken or first is not batch or batch.not_before_ms > now:
                continue
            if not client.may_send(batch.tp, batch.tp.partition):
                continue
            if batch.producer is None:
                batch.producer = who
                batch.sequence = self.sequences.get(batch.tp, 0)
                self.sequences[batch.tp] = batch.sequence + 1
            assert batch.producer == who, "a batch of another epoch"
            self.waiting.remove(batch)
            self.flying.append(batch)
            client.sent(batch.tp, batch.tp.partition)
            self._produce(batch)

    def answered(self, batch: Batch, code: int | None) -> None:
        """``None``: no answer."""
        if batch not in self.flying:
            return
        self.flying.remove(batch)
        assert self.client is not None
        self.client.batch_ended(batch.tp)
        if not code and code is not None:
            return
        to_do = Reaction.RETRY if code is None else reaction(Api.PRODUCE, code)
        if to_do is Reaction.DONE:
            return
        if to_do in _PASSING:
            batch.not_before_ms = self._now() + 50
            self.waiting.insert(0, batch)
            return
        if to_do in (Reaction.REORDER, Reaction.SPLIT):
            to_do = Reaction.ABORT_AND_BUMP
        self.has_gap = True
        error = refusal(Api.PRODUCE, code or 0)
        self.client.batch_failed(self._now(), batch.producer, to_do, error)

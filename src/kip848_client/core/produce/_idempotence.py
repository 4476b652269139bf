"""Who we are without a transactional id: nobody, or a producer id that any broker gives.

The id is asked for when the producer starts, or when the first batch wants to be sent. Epochs are
raised by partitions themselves (``_sequences.py``); another id is needed only when one of them has
used them up, or when a broker does not believe ours any more.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._error_rules import Api, Reaction, reaction, refusal
from kip848_client.core.produce._interfaces import Batches
from kip848_client.core.produce._model import (
    NOBODY,
    ProducerId,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.core.types import TopicPartition, Wait
from kip848_client.errors import Kip848Error, LocalProtocolError

__all__ = ["Idempotence"]


class Idempotence:
    """The ``ProducerIdentity`` of a producer without a transactional id."""

    def __init__(
        self,
        settings: ProduceSettings,
        jitter: Jitter,
        emit: Callable[[do.Command], None],
        batches: Batches,
    ) -> None:
        self.stale = 0
        """Answers that nobody waited for any more."""
        self._settings = settings
        self._jitter = jitter
        self._emit = emit
        self._batches = batches
        self.who: ProducerId | None = None if settings.idempotent else NOBODY
        self._is_wanted = False
        self._number = 0
        self._open: int | None = None
        self._failures = 0
        self._since_ms: int | None = None
        """When the request was sent for the first time."""
        self._not_before_ms = 0
        self._is_closing = False

    # -- looking -----------------------------------------------------------------------------

    @property
    def producer(self) -> ProducerId | None:
        """In whose name batches are sent: the epoch is that of a partition that had no trouble."""
        if self.who is None:
            self._is_wanted = True
        return self.who

    @property
    def version(self) -> TransactionVersion:
        """There are no transactions, so nothing keeps a driver from the newest requests."""
        return TransactionVersion.V2

    @property
    def is_at_rest(self) -> bool:
        """There is nothing that brokers would have to be told at the end."""
        return True

    def may_send(self, tp: TopicPartition, node: int) -> bool:
        """Whether this partition may be sent: always."""
        del tp, node
        return True

    def check_append(self) -> None:
        """Raises where no record may be appended now."""
        if self._is_closing:
            raise LocalProtocolError("the producer is closed; make a new one")

    def waits(self) -> dict[str, Wait]:
        """The producer id, until a broker returns one."""
        since_ms = self._since_ms
        if since_ms is None or not (self._is_wanted and self._failures):
            return {}
        return {"a producer id": Wait("InitProducerId: no broker has returned one yet", since_ms)}

    def due_ms(self) -> int | None:
        """When to ask again."""
        waits = self.who is None and self._is_wanted and self._open is None
        return self._not_before_ms if waits else None

    # -- events ------------------------------------------------------------------------------

    def take(self, now_ms: int, event: ev.Event) -> bool:
        """Take an event in, if it is about who we are; returns whether it was."""
        match event:
            case ev.StartRequested(ticket):
                self._is_wanted = True  # a step earlier than the first batch needs it
                self._emit(do.Done(ticket))
            case ev.ProducerIdAnswered():
                if self._is_answer(event.number):
                    self._on_answer(now_ms, event)
            case ev.TxnLost():
                if self._is_answer(event.number):
                    self._again(now_ms, event.fatal)
            case ev.BeginRequested() | ev.CommitRequested() | ev.AbortRequested():
                self._refuse(event.ticket)
            case ev.OffsetsAdded():
                self._refuse(event.ticket)
            case ev.TransactionVersionLearnt() | ev.Refused():
                pass
            case ev.TxnAnswered() | ev.CoordinatorFound() | ev.CoordinatorNotFound():
                self.stale += 1
            case _:
                return False
        return True

    def _refuse(self, ticket: int) -> None:
        error = LocalProtocolError(
            "this producer has no transactions; make one with transactional_id=..."
        )
        self._emit(do.Failed(ticket, error))

    def _is_answer(self, number: int) -> bool:
        if number != self._open:
            self.stale += 1
            return False
        self._open = None
        return True

    def _on_answer(self, now_ms: int, event: ev.ProducerIdAnswered) -> None:
        code = event.error_code
        if not code and event.producer.number >= 0:
            self.who = event.producer
            self._failures = 0
            self._since_ms = None
            return
        passing = not code or reaction(Api.INIT_PRODUCER_ID, code) in (
            Reaction.RETRY,
            Reaction.REFRESH,
        )
        self._again(now_ms, None if passing else refusal(Api.INIT_PRODUCER_ID, code, event.message))

    def _again(self, now_ms: int, fatal: Kip848Error | None) -> None:
        """Ask again, later. Where waiting cures nothing, the batches that wait know it now, and it
        is asked again for those that follow."""
        settings = self._settings
        self._not_before_ms = now_ms + backoff_ms(
            self._failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )
        self._failures += 1
        if fatal is not None:
            self._is_wanted = False
            self._since_ms = None
            self._batches.drop_unsent(fatal)

    # -- what batches tell -------------------------------------------------------------------

    def sent(self, tp: TopicPartition, node: int) -> None:
        """A batch is on its way."""

    def written(self, producer: ProducerId) -> None:
        """A batch is in the log."""

    def batch_ended(self, tp: TopicPartition) -> None:
        """A batch is on its way no more."""

    def batch_failed(
        self, now_ms: int, producer: ProducerId | None, reaction: Reaction, error: Kip848Error
    ) -> None:
        """A batch has failed for good."""
        del now_ms, error
        if reaction in (Reaction.ASK, Reaction.RECOVER) and producer is not None:
            self.renew(producer)

    def renew(self, producer: ProducerId) -> None:
        """Another producer id is needed than this one."""
        if self.who is not None and self._settings.idempotent and self.who[0] == producer[0]:
            self.who = None
            self._is_wanted = True

    def wait_ended(self, ticket: int) -> None:
        """Nobody waits here."""

    def end(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """Nothing more is appended."""
        self._is_closing = True

    def settle(self, now_ms: int) -> None:
        """Ask for a producer id."""
        due_ms = self.due_ms()
        if due_ms is not None and due_ms <= now_ms:
            self._number += 1
            self._open = self._number
            if self._since_ms is None:
                self._since_ms = now_ms
            self._emit(
                do.InitProducerId(
                    self._number, None, None, self._settings.transaction_timeout_ms, NOBODY
                )
            )

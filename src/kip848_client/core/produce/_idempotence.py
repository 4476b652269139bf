"""The identity of a producer without a transactional id: none, or a producer id from any broker.

The id is requested when the producer starts, or when the first batch is ready to send. Partitions
raise their epochs themselves (``_sequences.py``). Another id is needed only when a partition has
used up the epochs, or when a broker no longer accepts this one.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._error_rules import Api, Reaction, reaction, refusal
from kip848_client.core.produce._interfaces import Batches
from kip848_client.core.produce._model import (
    NO_PRODUCER,
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
        """Answers that were no longer expected."""
        self._settings = settings
        self._jitter = jitter
        self._emit = emit
        self._batches = batches
        self.who: ProducerId | None = None if settings.idempotent else NO_PRODUCER
        self._is_wanted = False
        self._number = 0
        self._open: int | None = None
        self._failures = 0
        self._since_ms: int | None = None
        """When the request was first sent."""
        self._not_before_ms = 0
        self._is_closing = False

    # -- queries -----------------------------------------------------------------------------

    @property
    def producer(self) -> ProducerId | None:
        """The producer id under which batches are sent. Its epoch is that of a partition without
        failures."""
        if self.who is None:
            self._is_wanted = True
        return self.who

    @property
    def version(self) -> TransactionVersion:
        """Without transactions the driver may always use the newest request versions."""
        return TransactionVersion.V2

    @property
    def is_at_rest(self) -> bool:
        """Whether brokers need no request before closing: always."""
        return True

    def may_send(self, tp: TopicPartition, node: int) -> bool:
        """Whether this partition may be sent: always."""
        del tp, node
        return True

    def check_append(self) -> None:
        """Raises if no record may be appended now."""
        if self._is_closing:
            raise LocalProtocolError("the producer is closed; make a new one")

    def waits(self) -> dict[str, Wait]:
        """The producer id, until a broker returns one."""
        since_ms = self._since_ms
        if since_ms is None or not (self._is_wanted and self._failures):
            return {}
        return {"a producer id": Wait("InitProducerId: no broker has returned one yet", since_ms)}

    def due_ms(self) -> int | None:
        """When to retry."""
        waits = self.who is None and self._is_wanted and self._open is None
        return self._not_before_ms if waits else None

    # -- events ------------------------------------------------------------------------------

    def take(self, now_ms: int, event: ev.Event) -> bool:
        """Apply an event if it concerns the producer id; returns whether it did."""
        match event:
            case ev.StartRequested(ticket):
                self._is_wanted = True  # one step before the first batch needs it
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
        """Retry later. If waiting does not help, fail the waiting batches now; later batches cause
        a new request."""
        settings = self._settings
        self._not_before_ms = now_ms + backoff_ms(
            self._failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )
        self._failures += 1
        if fatal is not None:
            self._is_wanted = False
            self._since_ms = None
            self._batches.drop_unsent(fatal)

    # -- reports about batches ---------------------------------------------------------------

    def sent(self, tp: TopicPartition, node: int) -> None:
        """A batch is in flight."""

    def written(self, producer: ProducerId) -> None:
        """A batch is in the log."""

    def batch_ended(self, tp: TopicPartition) -> None:
        """A batch is no longer in flight."""

    def batch_failed(
        self, now_ms: int, producer: ProducerId | None, reaction: Reaction, error: Kip848Error
    ) -> None:
        """A batch has failed permanently."""
        del now_ms, error
        if reaction in (Reaction.ASK, Reaction.RECOVER) and producer is not None:
            self.renew(producer)

    def renew(self, producer: ProducerId) -> None:
        """Replace this producer id."""
        if self.who is not None and self._settings.idempotent and self.who[0] == producer[0]:
            self.who = None
            self._is_wanted = True

    def wait_ended(self, ticket: int) -> None:
        """No calls wait here."""

    def end(self) -> None:
        """No calls wait here."""

    def close(self) -> None:
        """No more records are appended."""
        self._is_closing = True

    def settle(self, now_ms: int) -> None:
        """Request a producer id if one is due."""
        due_ms = self.due_ms()
        if due_ms is not None and due_ms <= now_ms:
            self._number += 1
            self._open = self._number
            if self._since_ms is None:
                self._since_ms = now_ms
            self._emit(
                do.InitProducerId(
                    self._number, None, None, self._settings.transaction_timeout_ms, NO_PRODUCER
                )
            )

"""A producer without a transactional id: its producer id, when batches are to be idempotent.

Any broker gives one. When a broker may miss sequence numbers (a batch had been sent and was given
up), numbers under the same id would be refused for ever; so another id is asked for, as soon as
nothing is on its way, and everything that waits is sent under that one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client._backoff import Jitter, backoff_ms
from kip848_client._types import TopicPartition
from kip848_client.errors import Kip848Error, LocalProtocolError, ProducerFailed
from kip848_client.producing import _commands as do
from kip848_client.producing import _events as ev
from kip848_client.producing._errors import Api, Reaction, reaction, refusal
from kip848_client.producing._model import (
    NOBODY,
    ProducerId,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.producing._seam import Batches

__all__ = ["Idempotence"]

_LOST: Final = frozenset({Reaction.ABORT_AND_BUMP, Reaction.ASK, Reaction.RECOVER})
"""What the broker knows of us is not what we know."""
_PASSING: Final = frozenset({Reaction.RETRY, Reaction.REFRESH})


class Idempotence:
    """The ``Identity`` of a producer without a transactional id."""

    def __init__(
        self,
        settings: ProduceSettings,
        jitter: Jitter,
        emit: Callable[[do.Command], None],
        batches: Batches,
    ) -> None:
        self._settings = settings
        self._jitter = jitter
        self._emit = emit
        self._batches = batches
        self._who: ProducerId | None = None if settings.idempotent else NOBODY
        self._is_wanted = False
        self._is_lost = False
        self._number = 0
        self._is_open = False
        self._failures = 0
        self._not_before_ms = 0
        self._fatal: ProducerFailed | None = None
        self.stale = 0
        """Answers and failures that did not count any more."""

    @property
    def producer(self) -> ProducerId | None:
        """In whose name batches may be sent now; asked for if there is nobody yet."""
        if self._fatal is not None:
            return None
        self._is_wanted = self._who is None
        return None if self._is_lost else self._who

    @property
    def version(self) -> TransactionVersion:
        """Without transactions it does not matter."""
        return TransactionVersion.V2

    @property
    def is_at_rest(self) -> bool:
        """There is nothing to end."""
        return True

    def may_send(self, tp: TopicPartition) -> bool:
        """There is nothing to add a partition to."""
        del tp
        return True

    def sent(self, tp: TopicPartition) -> None:
        """Nothing follows."""

    def check_append(self) -> None:
        """Raises the error that the producer has failed with."""
        if self._fatal is not None:
            raise ProducerFailed(str(self._fatal), cause=self._fatal.cause)

    def due_ms(self) -> int | None:
        """When ``settle`` has something to do without another event."""
        is_due = self._is_wanted and not self._is_open and self._fatal is None
        return self._not_before_ms if is_due else None

    def batch_failed(
        self, now_ms: int, producer: ProducerId | None, reaction: Reaction, error: Kip848Error
    ) -> None:
        """A batch has failed for good. Other records are none the worse for it, but for their
        sequence numbers."""
        del now_ms
        if producer not in (None, self._who):
            self.stale += 1
        elif reaction is Reaction.FATAL:
            self._fail(error)
        elif reaction in _LOST and producer is not None and producer != NOBODY:
            self._is_lost = True

    def take(self, now_ms: int, event: ev.Event) -> bool:
        """Take an event in, if it is about who we are; returns whether it was."""
        match event:
            case ev.StartRequested():
                self._emit(do.Done(event.ticket))
            case (
                ev.BeginRequested() | ev.OffsetsAdded() | ev.CommitRequested() | ev.AbortRequested()
            ):
                error = LocalProtocolError(
                    "this producer has no transactional_id; make one that has"
                )
                self._emit(do.Failed(event.ticket, error))
            case ev.ProducerIdAnswered() | ev.TxnLost():
                if event.number == self._number and self._is_open:
                    self._is_open = False
                    self._answered(now_ms, event)
                else:
                    self.stale += 1
            case (
                ev.TransactionVersionLearnt()
                | ev.CoordinatorFound()
                | ev.CoordinatorNotFound()
                | ev.TxnAnswered()
            ):
                pass
            case _:
                return False
        return True

    def wait_ended(self, ticket: int) -> None:
        """Nothing was waited for."""

    def close(self) -> None:
        """Nothing is open."""

    def settle(self, now_ms: int) -> None:
        """Ask for a producer id, if one is wanted."""
        if self._fatal is not None:
            self._batches.drop_unsent(ProducerFailed(str(self._fatal), cause=self._fatal.cause))
            return
        if self._is_lost and not self._batches.is_in_flight:
            self._is_lost, self._who, self._is_wanted = False, None, True
        if not self._is_wanted or self._is_open or now_ms < self._not_before_ms:
            return
        self._number += 1
        self._is_open = True
        timeout_ms = self._settings.transaction_timeout_ms
        self._emit(do.InitProducerId(self._number, None, None, timeout_ms, NOBODY))

    def _answered(self, now_ms: int, event: ev.ProducerIdAnswered | ev.TxnLost) -> None:
        if isinstance(event, ev.ProducerIdAnswered):
            code = event.error_code
            if not code:
                self._failures = 0
                self._is_wanted = False
                self._who = event.producer
                self._batches.begin_anew(event.producer)
                return
            error: Kip848Error | None = refusal(Api.INIT_PRODUCER_ID, code, event.message)
            if reaction(Api.INIT_PRODUCER_ID, code) in _PASSING:
                error = None
        else:
            error = event.fatal
        if error is not None:
            self._fail(error)
            return
        settings = self._settings
        self._not_before_ms = now_ms + backoff_ms(
            self._failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )
        self._failures += 1

    def _fail(self, cause: Kip848Error) -> None:
        self._fatal = self._fatal or ProducerFailed(
            f"the producer cannot go on: {cause}; mend the cause, close it and make a new one",
            cause=cause,
        )

"""Where transactions and batches meet: what each needs of the other, and nothing else.

``Transactions`` is the ``ProducerIdentity`` of a producer with a transactional id, ``Idempotence``
that of one without.

The core keeps this order in a step: events first, then ``ProducerIdentity.settle``, the sender, and
``ProducerIdentity.settle`` again until neither asks for anything more: a sender that asks
``may_send`` may have to wait for a partition to be added, and the end of a transaction waits for
the last batch.
"""

from __future__ import annotations

from typing import Protocol

from kip848_client.core.produce._error_rules import Reaction
from kip848_client.core.produce._events import Event
from kip848_client.core.produce._model import ProducerId, TransactionVersion
from kip848_client.core.types import TopicPartition, Wait
from kip848_client.errors import Kip848Error

__all__ = ["Batches", "ProducerIdentity"]


class Batches(Protocol):
    """What transactions need of the batches. All batches there are belong to one transaction."""

    @property
    def is_empty(self) -> bool:
        """No batch waits, rests before another try or is on its way."""
        ...

    @property
    def is_in_flight(self) -> bool:
        """A batch is on its way, and its answer is waited for."""
        ...

    @property
    def has_gap(self) -> bool:
        """Since ``begin_anew`` a batch that had been sent with sequence numbers did not succeed, so
        that the broker may miss them."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why a batch is not written yet, as far as a broker or the network has said."""
        ...

    def flush_now(self) -> None:
        """Send what waits without lingering: the transaction is to be committed."""
        ...

    def drop_unsent(self, error: Kip848Error) -> None:
        """Fail all batches that are not on their way at this moment. Is called from ``settle``, and
        in each step for as long as the transaction lasts, so a batch whose answer was lost goes the
        same way."""
        ...

    def begin_anew(self, producer: ProducerId) -> None:
        """This is who we are from now on; sequences begin with 0. Batches that wait, if there are
        any, are sent under this name."""
        ...


class ProducerIdentity(Protocol):
    """What batches need to know of transactions, or of the producer id without one, and have to
    tell."""

    @property
    def who(self) -> ProducerId | None:
        """Who we are, ``NOBODY`` or ``None`` where no producer id was named (yet, or again)."""
        ...

    @property
    def producer(self) -> ProducerId | None:
        """In whose name batches may be sent now; ``None``: not yet, or not any more. It is asked
        for, if it was not before: the sender has something to send."""
        ...

    @property
    def version(self) -> TransactionVersion:
        """Of the transaction that is open."""
        ...

    def may_send(self, tp: TopicPartition, node: int) -> bool:
        """Whether this partition is part of the transaction, or may be added by being written to;
        if not, it will be added, or may be soon."""
        ...

    def sent(self, tp: TopicPartition, node: int) -> None:
        """A batch is on its way to this broker: the transaction is not empty."""
        ...

    def batch_ended(self, tp: TopicPartition) -> None:
        """A batch is on its way no more: it has an answer, or nobody tells what became of it."""
        ...

    def written(self, producer: ProducerId) -> None:
        """A batch that was sent as ``producer`` is in the log."""
        ...

    def batch_failed(
        self, now_ms: int, producer: ProducerId | None, reaction: Reaction, error: Kip848Error
    ) -> None:
        """A batch has failed for good: ``ABORT``, ``ABORT_AND_BUMP``, ``ASK``, ``RECOVER`` or
        ``FATAL`` says what that means for others. It was sent as ``producer`` (``None``: never);
        a failure of an older epoch is ignored and counted."""
        ...

    def check_append(self) -> None:
        """Raises ``LocalProtocolError`` where no record may be appended now, or the error that the
        transaction or the producer has failed with."""
        ...

    def take(self, now_ms: int, event: Event) -> bool:
        """Take an event in, if it is about transactions or producer ids; returns whether it was."""
        ...

    def wait_ended(self, ticket: int) -> None:
        """Whoever asked with this ticket waits no more; what was asked for goes on."""
        ...

    def close(self) -> None:
        """Nothing new begins; a transaction that is open is aborted, unless its commit was asked
        for. ``is_at_rest`` tells when that is done."""
        ...

    def end(self) -> None:
        """The time for closing is over: whoever waits still is told so."""
        ...

    @property
    def is_at_rest(self) -> bool:
        """Nothing is left to be done for a transaction."""
        ...

    def waits(self) -> dict[str, Wait]:
        """What is waited for."""
        ...

    @property
    def stale(self) -> int:
        """Answers and failures that did not count any more."""
        ...

    def settle(self, now_ms: int) -> None:
        """Ask for what is to be asked for. Also ends those whose waiting has lasted too long."""
        ...

    def due_ms(self) -> int | None:
        """When ``settle`` has something to do without another event; ``None`` for never."""
        ...

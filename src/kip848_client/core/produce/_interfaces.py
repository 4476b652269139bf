"""The interface between transactions and batches: all that each needs from the other.

``Transactions`` is the ``ProducerIdentity`` of a producer with a transactional id, ``Idempotence``
that of one without.

Within a step the core keeps this order: first events, then ``ProducerIdentity.settle``, the sender,
and ``ProducerIdentity.settle`` again until neither requests anything more. A sender that calls
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
    """What transactions need from the batches. All existing batches belong to one transaction."""

    @property
    def is_empty(self) -> bool:
        """No batch is queued, backing off or in flight."""
        ...

    @property
    def is_in_flight(self) -> bool:
        """A batch is in flight and its answer is outstanding."""
        ...

    @property
    def has_gap(self) -> bool:
        """Since ``begin_anew``, a batch sent with sequence numbers has failed, so the broker may
        miss those numbers."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why a batch is not written yet, as reported by a broker or the network."""
        ...

    def flush_now(self) -> None:
        """Send queued batches without lingering: the transaction is to be committed."""
        ...

    def drop_unsent(self, error: Kip848Error) -> None:
        """Fail all batches that are not in flight now. It is called from ``settle`` in each step
        until the transaction ends, so a batch whose answer is lost later fails too."""
        ...

    def begin_anew(self, producer: ProducerId) -> None:
        """Use this producer id and epoch from now on; sequences begin with 0. Queued batches, if
        any, are sent under it."""
        ...


class ProducerIdentity(Protocol):
    """What batches need to know of transactions, or of the producer id without one, and what they
    report back."""

    @property
    def who(self) -> ProducerId | None:
        """The current producer id and epoch: -1 and -1 or ``None`` if there is none (yet, or
        again)."""
        ...

    @property
    def producer(self) -> ProducerId | None:
        """The producer id under which batches may be sent now; ``None`` if not yet, or no longer.
        Reading it requests an id if necessary, because the sender has something to send."""
        ...

    @property
    def version(self) -> TransactionVersion:
        """The version of the open transaction."""
        ...

    def may_send(self, tp: TopicPartition, node: int) -> bool:
        """Whether this partition is part of the transaction, or may be added by writing to it. If
        not, it will be added, or may be soon."""
        ...

    def sent(self, tp: TopicPartition, node: int) -> None:
        """A batch is in flight to this broker: the transaction is not empty."""
        ...

    def batch_ended(self, tp: TopicPartition) -> None:
        """A batch is no longer in flight: it has an answer, or its fate is unknown."""
        ...

    def written(self, producer: ProducerId) -> None:
        """A batch sent as ``producer`` is in the log."""
        ...

    def batch_failed(
        self, now_ms: int, producer: ProducerId | None, reaction: Reaction, error: Kip848Error
    ) -> None:
        """A batch has failed permanently. The reaction ``ABORT``, ``ABORT_AND_BUMP``, ``ASK``,
        ``RECOVER`` or ``FATAL`` says what that means for others. It was sent as ``producer``
        (``None``: never sent); a failure of an older epoch is ignored and counted."""
        ...

    def check_append(self) -> None:
        """Raises ``LocalProtocolError`` if no record may be appended now, or the error with which
        the transaction or the producer has failed."""
        ...

    def take(self, now_ms: int, event: Event) -> bool:
        """Apply an event if it concerns transactions or producer ids; returns whether it did."""
        ...

    def wait_ended(self, ticket: int) -> None:
        """The caller with this ticket no longer waits; the request itself continues."""
        ...

    def close(self) -> None:
        """Begin nothing new. An open transaction is aborted, unless its commit was requested.
        ``is_at_rest`` is true when that is done."""
        ...

    def end(self) -> None:
        """The time for closing is over: fail all calls that still wait."""
        ...

    @property
    def is_at_rest(self) -> bool:
        """No work is left for a transaction."""
        ...

    def waits(self) -> dict[str, Wait]:
        """What calls wait for."""
        ...

    @property
    def stale(self) -> int:
        """How many answers and failures were no longer expected."""
        ...

    def settle(self, now_ms: int) -> None:
        """Send the requests that are due. Also fails calls that have waited too long."""
        ...

    def due_ms(self) -> int | None:
        """When ``settle`` has work without another event; ``None`` for never."""
        ...

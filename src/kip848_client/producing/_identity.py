"""What the batches ask of who we are, and the other way round: the seam to transactions.

``Identity`` is implemented twice: by ``Idempotence`` for a producer without a transactional id
(idempotent or not), by the transaction's machine for one that has one. The core does not know which
of them it has.
"""

from __future__ import annotations

from typing import NoReturn, Protocol

from kip848_client._types import TopicPartition
from kip848_client.errors import Kip848Error
from kip848_client.producing._errors import Reaction
from kip848_client.producing._events import Event
from kip848_client.producing._model import ProducerId, TransactionVersion

__all__ = ["Identity", "Records"]


class Identity(Protocol):
    """Who we are for brokers, and what may be sent as such. All of it is called inside a step, but
    ``is_open``, ``refuse`` and ``joined``, which ``append`` uses."""

    is_open: bool
    """Records may be appended. Read for every record: a plain attribute."""

    @property
    def transactional_id(self) -> str | None: ...

    @property
    def version(self) -> TransactionVersion: ...

    @property
    def bumps_alone(self) -> bool:
        """A partition whose sequences cannot go on takes the next epoch by itself: brokers keep the
        epoch of a producer without a transactional id by partition, and nobody answers it one. In a
        transaction ``failed`` tells, and the partition waits for another ``producer_for``."""
        ...

    @property
    def deadline_ms(self) -> int | None:
        """When ``settle`` has something to do if nothing happens before."""
        ...

    @property
    def is_over(self) -> bool:
        """After ``CloseRequested``: nothing is open at brokers any more."""
        ...

    def refuse(self) -> NoReturn:
        """Raise why records may not be appended."""
        ...

    def joined(self, tp: TopicPartition) -> None:
        """A batch of this partition was begun. Called again for each batch."""
        ...

    def producer_for(self, tp: TopicPartition) -> ProducerId | None:
        """Who sends the next batch of this partition; ``None``: it must wait. ``NOBODY`` without
        idempotence. Another one than before: sequences begin at 0 as soon as nothing of the
        partition is on its way."""
        ...

    def failed(
        self, now_ms: int, tp: TopicPartition, reaction: Reaction, error: Kip848Error
    ) -> None:
        """A batch failed for good. ``ABORT_AND_BUMP``: it had sequence numbers, so this partition
        needs another epoch; ``ABORT``: it had none, or nothing is known to be missing."""
        ...

    def exhausted(self) -> None:
        """A partition has used up the epochs of this producer id."""
        ...

    def take(self, now_ms: int, event: Event) -> bool:
        """An event; returns whether it was one for us. ``CloseRequested`` is shown to us and then
        handled by the core, ``WaitEnded`` to whoever knows the ticket."""
        ...

    def settle(self, now_ms: int) -> None:
        """Ask for what is due. Called at the end of each step, before batches are sent."""
        ...


class Records(Protocol):
    """What an identity may do to the batches."""

    @property
    def is_empty(self) -> bool:
        """No batch waits or is on its way, not even one that was given up meanwhile."""
        ...

    @property
    def on_the_wire(self) -> int:
        """Batches in requests that are not answered yet, those given up included."""
        ...

    def hurry(self) -> None:
        """Send what waits, without lingering."""
        ...

    def drop_waiting(self, now_ms: int, error: Kip848Error) -> bool:
        """Fail everything that is not on the wire, ``Identity.failed`` not called; returns whether
        sequence numbers were lost with it."""
        ...

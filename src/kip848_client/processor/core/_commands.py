"""What the processor's core asks of its driver.

Three things may be under way at once, one of each: a ``Poll``; a ``Process`` or
``SendDeadLetters``; and one that asks the producer (``Begin``, ``SendOffsets``, ``Commit``,
``Abort``). What is not numbered is done before the next event is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kip848_client.core.types import TopicPartition
from kip848_client.errors import RecordUnreadable

__all__ = [
    "Abort",
    "Begin",
    "Command",
    "Commit",
    "Cut",
    "Drop",
    "Ended",
    "Notice",
    "Poll",
    "Process",
    "Release",
    "Rewind",
    "SendDeadLetters",
    "SendOffsets",
    "TakeUnreadable",
]


@dataclass(frozen=True, slots=True)
class Command:
    """Base of everything that a step may ask for."""


# -- the consumer --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Poll(Command):
    """Ask the consumer for records. Answer: ``Polled`` or ``PollFailed``."""

    number: int
    max_records: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class TakeUnreadable(Command):
    """Have this record in hand, behind those of its partition, by the bytes that the error has, and
    have the consumer read on behind it."""

    error: RecordUnreadable


@dataclass(frozen=True, slots=True)
class Drop(Command):
    """Forget the records in hand of these partitions: they are lost."""

    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class Rewind(Command):
    """Forget the records in hand of these partitions, and have the consumer read them again from
    these offsets, as far as they are still assigned."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Release(Command):
    """The partitions of this ``Revoked`` may be given up."""

    ticket: int


# -- the function --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Process(Command):
    """Call the function for the records in hand from ``first`` until ``until``, one after the other
    or as one batch, and send what it returns. Answer: ``Processed``, ``FunctionFailed`` or
    ``OutputRefused``."""

    number: int
    partition: TopicPartition
    first: int
    until: int


@dataclass(frozen=True, slots=True)
class Cut(Command):
    """End this ``Process`` after the record that the function has; a batch is not cut. ``discard``:
    nor send what comes of it, the transaction is over."""

    number: int
    discard: bool


@dataclass(frozen=True, slots=True)
class SendDeadLetters(Command):
    """Send the records in hand from ``first`` until ``until`` to the dead-letter topic. Answer:
    ``Processed`` or ``Failed``."""

    number: int
    partition: TopicPartition
    first: int
    until: int
    error: Exception


# -- the producer --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin(Command):
    """Begin a transaction. Answer: ``Done`` or ``Failed``."""

    number: int


@dataclass(frozen=True, slots=True)
class SendOffsets(Command):
    """Send these offsets (of the next record each) with the transaction, in the consumer's name as
    it is in this moment. Answer: ``Done`` or ``Failed``."""

    number: int
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Commit(Command):
    """Commit the transaction, or ask what came of that. Answer: ``Done`` or ``Failed``."""

    number: int


@dataclass(frozen=True, slots=True)
class Abort(Command):
    """Abort the transaction; also while something else of it is under way, whose answer does not
    count any more. Answer: ``Done`` or ``Failed``."""

    number: int


# -- the application -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended(Command):
    """``run`` returns, or raises ``error``. What is still under way is cancelled."""

    error: Exception | None


@dataclass(frozen=True, slots=True)
class Notice(Command):
    """Log this: something that the user may want to know and that nothing is raised for."""

    text: str
    warning: bool

"""Commands of the processor's core to its driver.

Three things may be in progress at the same time, one of each: a ``Poll``; a ``Process`` or
``SendDeadLetters``; and a call of the producer (``Begin``, ``SendOffsets``, ``Commit``, ``Abort``).
Commands without a number are complete before the next event.
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
    """Base of all commands."""


# -- the consumer --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Poll(Command):
    """Poll the consumer for records. Answer: ``Polled`` or ``PollFailed``."""

    number: int
    max_records: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class TakeUnreadable(Command):
    """Append this record to the fetched records of its partition, using the bytes in the error, and
    seek the consumer past it."""

    error: RecordUnreadable


@dataclass(frozen=True, slots=True)
class Drop(Command):
    """Discard the fetched records of these partitions, which are lost."""

    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class Rewind(Command):
    """Discard the fetched records of these partitions, and seek the consumer to these offsets,
    where the partitions are still assigned."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Release(Command):
    """The partitions of this ``Revoked`` may be given up."""

    ticket: int


# -- the function --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Process(Command):
    """Call the function for the fetched records from ``first`` until ``until``, one after the other
    or as one batch, and send its outputs. Answer: ``Processed``, ``FunctionFailed`` or
    ``OutputRefused``."""

    number: int
    partition: TopicPartition
    first: int
    until: int


@dataclass(frozen=True, slots=True)
class Cut(Command):
    """End this ``Process`` after the function's current record; a batch is not interrupted.
    ``discard``: do not send its outputs either, because the transaction is over."""

    number: int
    discard: bool


@dataclass(frozen=True, slots=True)
class SendDeadLetters(Command):
    """Send the fetched records from ``first`` until ``until`` to the dead-letter topic. Answer:
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
    """Send these offsets (of the next record of each partition) with the transaction, for the
    consumer's current membership. Answer: ``Done`` or ``Failed``."""

    number: int
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Commit(Command):
    """Commit the transaction, or ask for the result of an earlier commit. Answer: ``Done`` or
    ``Failed``."""

    number: int


@dataclass(frozen=True, slots=True)
class Abort(Command):
    """Abort the transaction, even while another call for it is in progress; the answer of that call
    is then ignored. Answer: ``Done`` or ``Failed``."""

    number: int


# -- the application -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended(Command):
    """``run`` returns, or raises ``error``. Everything still in progress is cancelled."""

    error: Exception | None


@dataclass(frozen=True, slots=True)
class Notice(Command):
    """Log something the user may want to know and that raises no error."""

    text: str
    warning: bool

"""What can happen to the processor's core.

All are in the past tense. Those that answer a command carry its number; a number that does not
count any more is ignored and counted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kip848_client.core.types import TopicPartition
from kip848_client.processor.core._model import Portion

__all__ = [
    "Done",
    "Event",
    "Failed",
    "FunctionFailed",
    "Lost",
    "OutputRefused",
    "PollFailed",
    "Polled",
    "Processed",
    "Revoked",
    "RunRequested",
    "StopRequested",
    "TimerFired",
    "WaitEnded",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Base of everything that a step takes."""


# -- what the application does -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunRequested(Event):
    """Consumer and producer are started: begin."""


@dataclass(frozen=True, slots=True)
class StopRequested(Event):
    """Process nothing more, end the transaction, and end. What takes longer than the deadline is
    not waited for. Again: the nearer deadline counts."""

    deadline_ms: int


# -- what the consumer says ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Polled(Event):
    """Answer to ``Poll``, also when nothing came. The portions are in hand from now on; told in the
    very moment in which the consumer has handed them out, with nothing in between."""

    number: int
    portions: tuple[Portion, ...] = ()


@dataclass(frozen=True, slots=True)
class PollFailed(Event):
    """Answer to ``Poll``: the consumer raised. It has handed nothing out."""

    number: int
    error: Exception


@dataclass(frozen=True, slots=True)
class Revoked(Event):
    """The group wants these partitions back; nothing of them is handed out any more. They are given
    up when ``Release`` with this ticket has come, not before."""

    ticket: int
    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class WaitEnded(Event):
    """Whoever waited with this ticket waits no more. (The group asks again, then.)"""

    ticket: int


@dataclass(frozen=True, slots=True)
class Lost(Event):
    """These partitions are not ours any more, and may be somebody else's already."""

    partitions: Collection[TopicPartition]


# -- what the function does ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Processed(Event):
    """Answer to ``Process`` or ``SendDeadLetters``: the ``records`` from ``first`` of the command
    until ``until`` are whole, their outputs sent. ``until`` is that of the command, or less if it
    was cut short: ``first`` if nothing is whole."""

    number: int
    until: int
    records: int


@dataclass(frozen=True, slots=True)
class FunctionFailed(Event):
    """Answer to ``Process``: the function raised for the records from ``first`` until ``until`` (or
    returned what is no output), and nothing of theirs was sent. The ``records`` before them are
    whole."""

    number: int
    first: int
    until: int
    records: int
    error: Exception


@dataclass(frozen=True, slots=True)
class OutputRefused(Event):
    """Answer to ``Process``: an output of the records from ``first`` until ``until`` was refused,
    and others of theirs may have been sent."""

    number: int
    first: int
    until: int
    error: Exception


# -- what the producer says ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done(Event):
    """``Begin``, ``SendOffsets``, ``Commit`` or ``Abort`` is done."""

    number: int


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """It is not, or ``SendDeadLetters`` is not: what the producer raised."""

    number: int
    error: Exception


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """``deadline_ms`` has come."""

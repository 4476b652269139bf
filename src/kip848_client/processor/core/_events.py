"""Events of the processor's core.

All names are in the past tense. Events that answer a command carry its number; an event whose
number is no longer expected is ignored and counted.
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
    """Base of all events."""


# -- requests of the application -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunRequested(Event):
    """Consumer and producer are started: begin processing."""


@dataclass(frozen=True, slots=True)
class StopRequested(Event):
    """Process nothing more, end the transaction, and end. Anything unfinished at the deadline is
    abandoned. If posted again, the nearer deadline counts."""

    deadline_ms: int


# -- consumer events -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Polled(Event):
    """Answer to ``Poll``, also if it returned no records. The driver now has the records of these
    portions. Must be posted in the same moment in which the consumer has returned them, with
    nothing in between."""

    number: int
    portions: tuple[Portion, ...] = ()


@dataclass(frozen=True, slots=True)
class PollFailed(Event):
    """Answer to ``Poll``: the consumer raised, and returned no records."""

    number: int
    error: Exception


@dataclass(frozen=True, slots=True)
class Revoked(Event):
    """The group revokes these partitions; the consumer returns no more records of them. They must
    not be given up before ``Release`` with this ticket."""

    ticket: int
    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class WaitEnded(Event):
    """The caller with this ticket no longer waits. (The group then asks again.)"""

    ticket: int


@dataclass(frozen=True, slots=True)
class Lost(Event):
    """These partitions are lost, and may belong to another member already."""

    partitions: Collection[TopicPartition]


# -- function results ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Processed(Event):
    """Answer to ``Process`` or ``SendDeadLetters``: the ``records`` from the command's ``first``
    until ``until`` are complete, with their outputs sent. ``until`` equals that of the command, or
    is less if it was interrupted; it equals ``first`` if no record is complete."""

    number: int
    until: int
    records: int


@dataclass(frozen=True, slots=True)
class FunctionFailed(Event):
    """Answer to ``Process``: the function raised for the records from ``first`` until ``until`` (or
    returned an invalid output), and none of their outputs were sent. The ``records`` before them
    are complete."""

    number: int
    first: int
    until: int
    records: int
    error: Exception


@dataclass(frozen=True, slots=True)
class OutputRefused(Event):
    """Answer to ``Process``: an output of the records from ``first`` until ``until`` was refused.
    Other outputs of theirs may have been sent."""

    number: int
    first: int
    until: int
    error: Exception


# -- producer results ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done(Event):
    """``Begin``, ``SendOffsets``, ``Commit`` or ``Abort`` has succeeded."""

    number: int


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """One of these or ``SendDeadLetters`` has failed, with the producer's error."""

    number: int
    error: Exception


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """``deadline_ms`` is reached."""

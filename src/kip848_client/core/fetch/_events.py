"""The events of the fetch core.

All are in the past tense. Those that answer a command carry its number; a number that is no longer
open is ignored and counted. Events about partitions that are not assigned are ignored: the
application and the group race, and both are right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kip848_client.core.fetch._model import FetchAnswer, ListedOffset, StoredOffset
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.errors import Kip848Error

__all__ = [
    "AllButHeld",
    "AssignmentChanged",
    "BufferRead",
    "CloseRequested",
    "CommittedFailed",
    "CommittedFound",
    "ErrorDelivered",
    "Event",
    "FetchAnswered",
    "FetchLost",
    "OffsetsAsked",
    "OffsetsListed",
    "OffsetsNotListed",
    "OffsetsWithdrawn",
    "Paused",
    "Resumed",
    "SeekBegun",
    "SeekEnded",
    "Sought",
    "Started",
    "TimerFired",
    "TopicsLimited",
    "Undecodable",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Base class of all events."""


# -- assignment, by the group or manual ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AssignmentChanged(Event):
    """``assignment`` is the complete new assignment; partitions not in it are lost. ``fresh`` names
    those that start over: without a position, not started, even if a partition of that name was
    assigned before (a recreated topic).

    The id is ``None`` for a manual assignment: it becomes the id that the topic has when it is
    first looked up, and stays that one.
    """

    assignment: Mapping[TopicPartition, TopicId | None]
    fresh: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The listener has returned for these: find missing positions, and fetch."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AllButHeld(Event):
    """Of ``of``, exactly ``fetchable`` may be fetched and delivered; the others are held, because
    their revocation has begun. A held partition keeps its buffer until it is revoked or
    released."""

    of: frozenset[TopicPartition]
    fetchable: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class TopicsLimited(Event):
    """Only partitions of these topics are fetched and delivered; ``None`` for no limit."""

    topics: frozenset[str] | None


# -- the application -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paused(Event):
    """Deliver nothing from these and fetch nothing more, until ``Resumed``. Buffers are kept."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Resumed(Event):
    """Undo ``Paused``."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Sought(Event):
    """Continue at ``offset``, discarding what is buffered or being looked up."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class SeekBegun(Event):
    """The application will move these to offsets that are being looked up. Positions stay as they
    are. ``ticket`` is a number that is not in use."""

    ticket: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class SeekEnded(Event):
    """Move the partitions of a ``SeekBegun`` to the offsets found, except those overtaken by a
    newer seek or the loss of the partition. Empty: the look-up failed or was cancelled."""

    ticket: int
    offsets: Mapping[TopicPartition, StoredOffset]
    committed: bool = False
    """Whether these are the offsets that the group has committed."""


@dataclass(frozen=True, slots=True)
class OffsetsAsked(Event):
    """A user requests offsets by time: ``EARLIEST``, ``LATEST`` or ms since 1970. Answer:
    ``OffsetsFound`` or ``OffsetsNotFound`` with the same ticket, a number that is not in use."""

    ticket: int
    times: Mapping[TopicPartition, int]
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class OffsetsWithdrawn(Event):
    """The caller of the ``OffsetsAsked`` with this ticket no longer waits: there is no answer, and
    brokers are not asked again."""

    ticket: int


@dataclass(frozen=True, slots=True)
class BufferRead(Event):
    """Slices were finished (``FetchCore.finish``): there is space for more."""


@dataclass(frozen=True, slots=True)
class ErrorDelivered(Event):
    """The error that stopped this partition was raised in the application. If a retry may help, it
    is tried once more, at a limited rate."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Undecodable(Event):
    """The bytes of a slice cannot be decoded from ``offset`` on: a wrong checksum, or garbage. The
    buffer of the partition is dropped from there; it is fetched once more before it stops."""

    partition: TopicPartition
    generation: int
    offset: int
    error: Kip848Error
    is_final: bool = False
    """Another fetch would return the same bytes: the partition stops at once."""


# -- answers of the cluster ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FetchAnswered(Event):
    """Answer to ``SendFetch``."""

    fetch: int
    answer: FetchAnswer


@dataclass(frozen=True, slots=True)
class FetchLost(Event):
    """Answer to ``SendFetch``: there was none. ``sent``: the broker may have acted on it.
    ``error``: one that must be raised (failed authentication, a version that the broker lacks)."""

    fetch: int
    why: str
    sent: bool = True
    error: Kip848Error | None = None


@dataclass(frozen=True, slots=True)
class OffsetsListed(Event):
    """Answer to ``ListOffsets``."""

    query: int
    rows: Mapping[TopicPartition, ListedOffset]


@dataclass(frozen=True, slots=True)
class OffsetsNotListed(Event):
    """Answer to ``ListOffsets``: there was none. ``error`` as in ``FetchLost``."""

    query: int
    why: str
    error: Kip848Error | None = None


@dataclass(frozen=True, slots=True)
class CommittedFound(Event):
    """Answer to ``LookUpCommitted``: ``None`` for a partition without a committed offset.
    Partitions left out could not be looked up."""

    number: int
    offsets: Mapping[TopicPartition, StoredOffset | None]


@dataclass(frozen=True, slots=True)
class CommittedFailed(Event):
    """Answer to ``LookUpCommitted``: it failed. ``passing``: it is retried silently; otherwise the
    error is raised, and it is retried, too."""

    number: int
    error: Kip848Error
    passing: bool


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """``deadline_ms`` has passed."""


@dataclass(frozen=True, slots=True)
class CloseRequested(Event):
    """Stop: request nothing more, and close the sessions."""

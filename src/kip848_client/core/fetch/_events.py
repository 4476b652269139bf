"""What can happen to the fetch core.

All are in the past tense. Those that answer a command carry its number; a number that is not open
any more is ignored and counted. What concerns a partition that is not assigned is ignored: the
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
    """Base of everything that a step takes."""


# -- what is assigned, by the group or by hand ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class AssignmentChanged(Event):
    """``assignment`` is what is assigned from now on; what is not in it is gone. ``fresh`` of it
    begins anew: without a position, not started, even if a partition of that name was there (a
    topic that was created again).

    The id is ``None`` for an assignment by hand: whichever topic has the name when it is first
    looked for, and from then on that one.
    """

    assignment: Mapping[TopicPartition, TopicId | None]
    fresh: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The listener is done with these: find positions where there are none, and fetch."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AllButHeld(Event):
    """Of ``of``, exactly ``fetchable`` may be fetched and handed out; the others are held: their
    revocation has begun. What is held keeps its buffer until it is taken away, or not."""

    of: frozenset[TopicPartition]
    fetchable: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class TopicsLimited(Event):
    """Only partitions of these topics are fetched and handed out; ``None`` for no limit."""

    topics: frozenset[str] | None


# -- what the application does -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paused(Event):
    """Hand nothing of these out, and fetch nothing more, until ``Resumed``. Buffers are kept."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Resumed(Event):
    """Undo ``Paused``."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Sought(Event):
    """Continue at ``offset``, whatever is buffered or looked for."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class SeekBegun(Event):
    """The application wants to move these to offsets that are being looked up. Positions stay as
    they are. ``ticket`` is a number that is not in use."""

    ticket: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class SeekEnded(Event):
    """Move the partitions of a ``SeekBegun`` to what was found, but those that a younger seek, or
    the loss of the partition, overtook. Empty: the look-up failed or was cancelled."""

    ticket: int
    offsets: Mapping[TopicPartition, StoredOffset]
    committed: bool = False
    """Whether these are the offsets that the group has committed."""


@dataclass(frozen=True, slots=True)
class OffsetsAsked(Event):
    """Someone wants offsets by time: ``EARLIEST``, ``LATEST`` or ms since 1970. Answer:
    ``OffsetsFound`` or ``OffsetsNotFound`` with the same ticket, a number that is not in use."""

    ticket: int
    times: Mapping[TopicPartition, int]
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class OffsetsWithdrawn(Event):
    """Who asked by ``OffsetsAsked`` with this ticket does not wait any more: there is no answer,
    and brokers are not asked again."""

    ticket: int


@dataclass(frozen=True, slots=True)
class BufferRead(Event):
    """Slices were finished (``FetchCore.finish``): there is room for more."""


@dataclass(frozen=True, slots=True)
class ErrorDelivered(Event):
    """The application was told of the error that stopped this partition. Where asking again may
    help, it is tried once more, paced."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Undecodable(Event):
    """The bytes of a slice are no records from ``offset`` on: a wrong checksum, or garbage. The
    partition's buffer from there on is dropped; it is fetched once more before it stops."""

    partition: TopicPartition
    generation: int
    offset: int
    error: Kip848Error
    is_final: bool = False
    """Another fetch would return the same bytes: the partition stops at once."""


# -- what the cluster says -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FetchAnswered(Event):
    """Answer to ``SendFetch``."""

    fetch: int
    answer: FetchAnswer


@dataclass(frozen=True, slots=True)
class FetchLost(Event):
    """Answer to ``SendFetch``: none came. ``sent``: the broker may have acted on it. ``error``: one
    that the user must know (a login that was refused, a version that the broker lacks)."""

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
    """Answer to ``ListOffsets``: none came. ``error`` as in ``FetchLost``."""

    query: int
    why: str
    error: Kip848Error | None = None


@dataclass(frozen=True, slots=True)
class CommittedFound(Event):
    """Answer to ``LookUpCommitted``: ``None`` for a partition without a committed offset. What is
    left out could not be found out."""

    number: int
    offsets: Mapping[TopicPartition, StoredOffset | None]


@dataclass(frozen=True, slots=True)
class CommittedFailed(Event):
    """Answer to ``LookUpCommitted``. ``passing``: it is tried again and nobody has to know;
    else the user is told, and it is tried again, too."""

    number: int
    error: Kip848Error
    passing: bool


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """``deadline_ms`` is over."""


@dataclass(frozen=True, slots=True)
class CloseRequested(Event):
    """End: ask for nothing more, and close the sessions."""

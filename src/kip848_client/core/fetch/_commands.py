"""What the fetch core asks of its driver. All of it is I/O or tells somebody something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kip848_client.core.cluster import Endpoint, LearnLeaders
from kip848_client.core.fetch._model import FetchIntent, FoundOffset
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = [
    "CloseSession",
    "Command",
    "Commands",
    "ListOffsets",
    "LookUpCommitted",
    "Notice",
    "OffsetsFound",
    "OffsetsNotFound",
    "Positioned",
    "Readable",
    "SendFetch",
    "UseEndpoints",
]


@dataclass(frozen=True, slots=True)
class Command:
    """Base of everything that a step may ask for."""


@dataclass(frozen=True, slots=True)
class SendFetch(Command):
    """Send a Fetch to ``node``, on a connection that nothing else uses: what follows a waiting
    Fetch on its connection waits as long as it does. At most one is open a node. Answer:
    ``FetchAnswered`` or ``FetchLost`` with the same number."""

    fetch: int
    node: int
    intent: FetchIntent
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CloseSession(Command):
    """Tell ``node`` that its fetch session is over (session epoch -1). No answer is waited for."""

    node: int
    session_id: int


@dataclass(frozen=True, slots=True)
class ListOffsets(Command):
    """Ask the leader ``node`` for offsets by time; ``wanted`` maps to (time, current leader epoch).
    Answer: ``OffsetsListed`` or ``OffsetsNotListed`` with the same number."""

    query: int
    node: int
    wanted: Mapping[TopicPartition, tuple[int, int]]
    read_committed: bool


@dataclass(frozen=True, slots=True)
class LookUpCommitted(Command):
    """Ask what the group has committed for these. Answer: ``CommittedFound`` or
    ``CommittedFailed`` with the same number."""

    number: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class UseEndpoints(Command):
    """Brokers and their addresses, as a Fetch answer told them (KIP-951)."""

    nodes: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Positioned(Command):
    """The partition now has this position, by a seek, a committed offset or a reset. ``committed``:
    the group has committed just this."""

    partition: TopicPartition
    offset: int
    leader_epoch: int
    committed: bool


@dataclass(frozen=True, slots=True)
class Readable(Command):
    """Something can be read, or told, that could not before: wake who waits for records."""


@dataclass(frozen=True, slots=True)
class OffsetsFound(Command):
    """Answer to ``OffsetsAsked``."""

    ticket: int
    found: Mapping[TopicPartition, FoundOffset]


@dataclass(frozen=True, slots=True)
class OffsetsNotFound(Command):
    """Answer to ``OffsetsAsked``: the deadline is over, or waiting cures nothing."""

    ticket: int
    error: Kip848Error


@dataclass(frozen=True, slots=True)
class Notice(Command):
    """Log this: something that the user may want to know and that nothing is raised for.
    ``warning`` or else info."""

    text: str
    warning: bool
    partition: TopicPartition | None = None


Commands = list[Command | LearnLeaders]
"""The commands of a step so far. The parts of the core share one such list, and add to it."""

"""What the fetch core asks of its driver: I/O and notifications only."""

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
    """Base class of all commands."""


@dataclass(frozen=True, slots=True)
class SendFetch(Command):
    """Send a Fetch to ``node``, on a connection that nothing else uses: any request behind a
    waiting Fetch on the same connection waits as long as it does. At most one is open per node.
    Answer: ``FetchAnswered`` or ``FetchLost`` with the same number."""

    fetch: int
    node: int
    intent: FetchIntent
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CloseSession(Command):
    """Close the fetch session at ``node`` (session epoch -1). No answer is waited for."""

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
    """Look up the group's committed offsets of these partitions. Answer: ``CommittedFound`` or
    ``CommittedFailed`` with the same number."""

    number: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class UseEndpoints(Command):
    """Brokers and their addresses, from a Fetch answer (KIP-951)."""

    nodes: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Positioned(Command):
    """The partition now has this position, from a seek, a committed offset or a reset.
    ``committed``: this is exactly the group's committed offset."""

    partition: TopicPartition
    offset: int
    leader_epoch: int
    committed: bool


@dataclass(frozen=True, slots=True)
class Readable(Command):
    """Records, or an error, can be delivered that could not be before: wake the waiting readers."""


@dataclass(frozen=True, slots=True)
class OffsetsFound(Command):
    """Answer to ``OffsetsAsked``."""

    ticket: int
    found: Mapping[TopicPartition, FoundOffset]


@dataclass(frozen=True, slots=True)
class OffsetsNotFound(Command):
    """Answer to ``OffsetsAsked``: the deadline has passed, or the error is not retriable."""

    ticket: int
    error: Kip848Error


@dataclass(frozen=True, slots=True)
class Notice(Command):
    """Log this: something worth knowing for which nothing is raised. Level warning if ``warning``,
    else info."""

    text: str
    warning: bool
    partition: TopicPartition | None = None


Commands = list[Command | LearnLeaders]
"""The commands of a step so far. The parts of the core share one such list and append to it."""

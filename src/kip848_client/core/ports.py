"""Interfaces that drivers need from outside: a clock, a transport, topics, connection observers.

They are Protocols so that tests can replace each of them. ``kip848_client.runtime.net`` has the
real ones. Every method is called from the event loop's own thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from kip848_client.core.types import ANY_VERSION, TopicId, VersionLimits
from kip848_client.core.wire.messages.metadata import MetadataResponseTopic
from kip848_client.errors import TransportError

__all__ = [
    "Clock",
    "ConnectionBroken",
    "ConnectionWatch",
    "NotSent",
    "TopicView",
    "Transport",
    "WaitingTransport",
    "WatchedConnection",
]


class NotSent(TransportError):
    """The request was not sent: no connection could be opened."""


class ConnectionBroken(TransportError):
    """The request was sent and the connection broke: the broker may have processed it."""


class Clock(Protocol):
    """The monotonic clock of a client."""

    def now_ms(self) -> int:
        """Milliseconds since a fixed moment."""
        ...

    def left_s(self, then_ms: int) -> float:
        """Seconds until ``then_ms``, more precise than a millisecond; never negative."""
        ...


class Transport(Protocol):
    """Sends one request and returns its answer.

    The methods that send raise ``NotSent``, ``ConnectionBroken``, ``RequestTimedOut``,
    ``UnsupportedVersion`` (no common version), ``RemoteProtocolError`` (unreadable answer) and
    ``BrokerError`` (authentication refused). The caller handles error codes *inside* an answer.
    """

    async def any_broker(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        """Send a request to any broker, trying all known ones. After a second without an answer the
        next broker gets it as well, so several may process it.
        """
        ...

    async def broker(
        self,
        node_id: int,
        request: Any,
        *,
        versions: VersionLimits = ANY_VERSION,
        timeout_ms: int | None = None,
    ) -> Any:
        """Send a request to one broker, for instance a partition's leader."""
        ...

    async def fetch(
        self, node_id: int, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int
    ) -> Any:
        """Send a request to one broker on a connection only for fetches, because a request behind a
        waiting Fetch has to wait as long.
        """
        ...

    async def coordinator(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        """Send a request to the group's coordinator; raises ``CoordinatorUnavailable`` if it is
        unknown.
        """
        ...

    async def find_coordinator(self) -> None:
        """Look up the group's coordinator unless it is known; simultaneous calls share one lookup.

        Raises the exceptions of the sending methods, and ``BrokerError`` for errors of
        FindCoordinator.
        """
        ...

    def forget_coordinator(self) -> None:
        """Make the next ``find_coordinator`` look it up again."""
        ...

    def learn_brokers(self, brokers: Iterable[tuple[int, str, int]]) -> None:
        """Replace the list of the cluster's brokers: (node id, host, port)."""
        ...

    def add_brokers(self, brokers: Iterable[tuple[int, str, int]]) -> None:
        """Add addresses from a broker's answer (KIP-951), which may be newer than metadata."""
        ...

    async def begin_anew(self) -> None:
        """Forget all brokers and close all connections (KIP-1102): the next request goes to the
        bootstrap servers, whose names are resolved again.
        """
        ...


class WaitingTransport(Transport, Protocol):
    """A transport for members of classic groups."""

    async def coordinator_that_waits(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int
    ) -> Any:
        """Like ``coordinator``, on a separate connection for requests that wait for other members,
        because requests behind them have to wait as long.
        """
        ...


class TopicView(Protocol):
    """Known topic ids, names and partitions."""

    def name_of(self, topic_id: TopicId) -> str | None:
        """The name of a topic; an id never changes its name."""
        ...

    def id_of(self, topic: str) -> TopicId | None:
        """The newest known id of a name; a topic that was created again has another id."""
        ...

    def partitions_of(self, topic: str) -> frozenset[int] | None:
        """The partition numbers of a topic, or ``None`` if it is unknown."""
        ...

    def want(self, topics: Collection[str]) -> None:
        """Set the topics that the user wants. They are kept up to date; a missing one may be
        created by this, once.
        """
        ...

    def watch(self, topics: Collection[str]) -> None:
        """Also keep these topics up to date. They are never created."""
        ...

    def retain(self, topics: Collection[str]) -> None:
        """Stop watching all other topics."""
        ...

    async def resolve(self, topic_ids: Iterable[TopicId]) -> Mapping[TopicId, str]:
        """Request topics by id; returns the names that were found."""
        ...

    def refresh_soon(self) -> None:
        """Refresh all wanted and watched topics in the background."""
        ...

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        """Refresh all watched topics and ``topics``."""
        ...

    async def list_topics(self) -> tuple[MetadataResponseTopic, ...]:
        """All topics of the cluster that this principal may see."""
        ...


class WatchedConnection(Protocol):
    """Observer of the requests and answers of one connection."""

    def sent(self, size_bytes: int, *, is_answered: bool) -> None:
        """A request of ``size_bytes`` was written to the socket."""
        ...

    def received(self, size_bytes: int) -> None:
        """The answer to the oldest request arrived, with ``size_bytes``."""
        ...

    def closed(self) -> None:
        """The connection has ended."""
        ...


class ConnectionWatch(Protocol):
    """Observer of all connections of a client."""

    def servers(self, addresses: Sequence[tuple[str, int]]) -> None:
        """The bootstrap servers are known."""
        ...

    def brokers(self, nodes: Mapping[int, tuple[str, int]]) -> None:
        """The brokers' addresses, by node id."""
        ...

    def opened(self, host: str, port: int) -> WatchedConnection:
        """A connection was opened; the login follows."""
        ...

    def logged_in(self) -> None:
        """A login succeeded."""
        ...

    def refused(self) -> None:
        """A login was refused, or TLS failed."""
        ...

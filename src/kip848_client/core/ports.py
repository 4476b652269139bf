"""What the drivers need from the world outside: a transport, names of topics, records.

These are Protocols so that a test can stand in for each of them. ``kip848_client.runtime.net`` has
the real ones. Every method is called from the event loop's own thread.
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
    """The request never left this process: no connection could be opened."""


class ConnectionBroken(TransportError):
    """The request was sent and the connection broke: the broker may have acted on it."""


class Clock(Protocol):
    """One monotonic clock for everything in a client."""

    def now_ms(self) -> int:
        """Milliseconds since some fixed moment."""
        ...

    def left_s(self, then_ms: int) -> float:
        """Seconds until it is so late, to less than a millisecond; not below 0."""
        ...


class Transport(Protocol):
    """Sends one request and returns its answer.

    The methods that send raise ``NotSent``, ``ConnectionBroken``, ``RequestTimedOut``,
    ``UnsupportedVersion`` (no common version), ``RemoteProtocolError`` (unreadable answer) and
    ``BrokerError`` (authentication refused). Error codes *inside* an answer are the caller's.
    """

    async def any_broker(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        """Ask any broker that answers, trying each known one: the next one after a second, too. So
        several may be asked the same."""
        ...

    async def broker(
        self,
        node_id: int,
        request: Any,
        *,
        versions: VersionLimits = ANY_VERSION,
        timeout_ms: int | None = None,
    ) -> Any:
        """Ask one broker, e.g. a partition's leader."""
        ...

    async def fetch(
        self, node_id: int, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int
    ) -> Any:
        """Ask one broker on a connection that is used for fetches only: what follows a request
        that waits at the broker waits as long as it does."""
        ...

    async def coordinator(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        """Ask the group's coordinator; raises ``CoordinatorUnavailable`` when it is not known."""
        ...

    async def find_coordinator(self) -> None:
        """Look the group's coordinator up unless it is known; simultaneous calls share one lookup.

        Raises what the methods that send raise, and ``BrokerError`` for FindCoordinator's own.
        """
        ...

    def forget_coordinator(self) -> None:
        """The next ``find_coordinator`` must ask again."""
        ...

    def learn_brokers(self, brokers: Iterable[tuple[int, str, int]]) -> None:
        """Take the newest list of the cluster's brokers: (node id, host, port)."""
        ...

    def add_brokers(self, brokers: Iterable[tuple[int, str, int]]) -> None:
        """Take addresses that a broker told beside (KIP-951): they may be newer than metadata."""
        ...

    async def begin_anew(self) -> None:
        """Forget every broker and close every connection (KIP-1102): the next request goes to the
        bootstrap servers, whose names are resolved anew."""
        ...


class WaitingTransport(Transport, Protocol):
    """One for members of classic groups."""

    async def coordinator_that_waits(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int
    ) -> Any:
        """As ``coordinator``, on a connection of its own for requests that wait there for other
        members: what follows them waits as long."""
        ...


class TopicView(Protocol):
    """Topic ids, names and partitions, as far as they are known."""

    def name_of(self, topic_id: TopicId) -> str | None:
        """The name of a topic; an id never changes its name."""
        ...

    def id_of(self, topic: str) -> TopicId | None:
        """The newest id known for a name; a topic that was created again has another one."""
        ...

    def partitions_of(self, topic: str) -> frozenset[int] | None:
        """The partition numbers of a topic, ``None`` when it is not known."""
        ...

    def want(self, topics: Collection[str]) -> None:
        """The user asks for these topics, and for no others any more. They are kept up to date; one
        that does not exist may be created by that, once."""
        ...

    def watch(self, topics: Collection[str]) -> None:
        """Keep these topics up to date, too. They are never created."""
        ...

    def retain(self, topics: Collection[str]) -> None:
        """Watch nothing but these of what was watched."""
        ...

    async def resolve(self, topic_ids: Iterable[TopicId]) -> Mapping[TopicId, str]:
        """Ask for topics by id; returns the names that were found."""
        ...

    def refresh_soon(self) -> None:
        """Ask again for everything wanted and watched, in the background."""
        ...

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        """Ask again for everything watched, and for ``topics``."""
        ...

    async def list_topics(self) -> tuple[MetadataResponseTopic, ...]:
        """All topics of the cluster that this principal may see."""
        ...


class WatchedConnection(Protocol):
    """Who wants to know of each request and answer of one connection."""

    def sent(self, size_bytes: int, *, is_answered: bool) -> None:
        """A request was given to the socket, of so many bytes."""
        ...

    def received(self, size_bytes: int) -> None:
        """The answer to the oldest request came, of so many bytes."""
        ...

    def closed(self) -> None:
        """It has ended."""
        ...


class ConnectionWatch(Protocol):
    """Who wants to know of all connections of a client."""

    def servers(self, addresses: Sequence[tuple[str, int]]) -> None:
        """The bootstrap servers."""
        ...

    def brokers(self, nodes: Mapping[int, tuple[str, int]]) -> None:
        """Which broker is where."""
        ...

    def opened(self, host: str, port: int) -> WatchedConnection:
        """A connection was opened; the login follows."""
        ...

    def logged_in(self) -> None:
        """A login went well."""
        ...

    def refused(self) -> None:
        """A login was refused, or TLS failed."""
        ...

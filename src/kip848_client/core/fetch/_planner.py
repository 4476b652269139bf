"""What to fetch from which broker, when, and how much.

Theory of operation
-------------------
Each broker has a *ring*: the partitions to fetch from it, in the order in which they should be
served. A broker serves the partitions of a request in order until the answer is full. So a
partition that brought data moves to the end of the ring; the broker does the same in its session. A
partition enters and leaves the ring when it becomes fetchable or not (``refresh``), and changes
since the last request are recorded. So the cost of a request depends on what has changed, not on
what is assigned.

While a partition is full, its broker is asked for the others only after a moment, and such a
request waits no longer than the partition was full: once the application has emptied the partition,
its next fetch should not have to wait for that request to end.

At most one request per broker is open. It reserves the bytes that it may bring, and all
reservations and buffered bytes stay within one budget. A broker always sends the first batch whole,
so the bound is the budget plus one batch per broker. When the budget is used up, a broker with
nothing buffered is still asked for one batch: the budget may be taken by partitions that are not
being read at the moment.

When nothing is fetchable at a broker, nothing is sent: an empty session would be closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kip848_client.core.cluster import NO_EPOCH, NO_NODE, Leaders, MetadataQuestions
from kip848_client.core.fetch._commands import SendFetch
from kip848_client.core.fetch._model import FetchIntent, FetchSettings, Wanted
from kip848_client.core.fetch._partition import FULL, NO_LEADER, Partition, Phase
from kip848_client.core.fetch._replicas import Replicas
from kip848_client.core.fetch._sessions import FetchSession
from kip848_client.core.fetch._unread_slices import UnreadSlices
from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicIdPartition

__all__ = ["Node", "OpenFetch", "Planner"]

FIRST_WAIT_MS: Final = 100
"""How long a request may wait while other partitions wait for the next one, which cannot be sent
before this one ends."""
HOLD_MS: Final = 100
"""How long after a partition became full its broker gets no request: a reader empties it sooner,
and would have to wait for the end of a request for the others."""
_FIRST_WAITS_MS: Final = 10_000
"""How long after its start a partition shortens the waits of others."""


class OpenFetch(NamedTuple):
    """A request in flight."""

    number: int
    sent_ms: int
    reserved_bytes: int
    max_wait_ms: int


@dataclass(slots=True, eq=False)
class Node:
    """A broker to fetch from."""

    node: int
    session: FetchSession
    ring: dict[TopicIdPartition, Partition] = field(
        default_factory=dict[TopicIdPartition, Partition]
    )
    changed: dict[TopicIdPartition, None] = field(default_factory=dict[TopicIdPartition, None])
    """Partitions that may differ from the broker's session."""
    asked: dict[TopicIdPartition, None] = field(default_factory=dict[TopicIdPartition, None])
    """``changed`` as of the newest request."""
    generations: dict[TopicIdPartition, int] = field(default_factory=dict[TopicIdPartition, int])
    """The generation of each partition when it was last requested; an answer is for that one."""
    avoiding: dict[TopicIdPartition, Partition] = field(
        default_factory=dict[TopicIdPartition, Partition]
    )
    """Requested partitions that avoid a replica, or did so."""
    full: dict[Partition, int] = field(default_factory=dict[Partition, int])
    """Partitions not requested because enough of them is buffered, and since when."""
    fetch: OpenFetch | None = None
    rest_until_ms: int = 0
    throttled_until_ms: int = 0
    failures: int = 0
    """Consecutive failures; each makes the rest longer."""
    full_requests: int = 0
    """Number of requests that named every partition."""
    lost_since_ms: int | None = None
    """Since when the broker has not answered."""
    noticed: bool = False
    """Whether that was logged."""

    def ready_ms(self) -> int:
        """The earliest time of the next request."""
        full_ms = self.full_since_ms()
        held_until_ms = 0 if full_ms is None else full_ms + HOLD_MS
        return max(self.rest_until_ms, self.throttled_until_ms, held_until_ms)

    def full_since_ms(self) -> int | None:
        """When the last readable partition became full."""
        readable = (ms for each, ms in reversed(self.full.items()) if each.readable)
        return next(readable, None)


class Planner:
    """Plans the Fetch requests of all brokers."""

    def __init__(
        self,
        settings: FetchSettings,
        leaders: Leaders,
        buffer: UnreadSlices,
        metadata: MetadataQuestions,
    ) -> None:
        self.nodes: dict[int, Node] = {}
        """In the order in which to ask them if the budget does not suffice for all."""
        self.replicas = Replicas(leaders, settings.metadata_max_age_ms)
        self._settings = settings
        self._leaders = leaders
        self._buffer = buffer
        self._metadata = metadata
        self._open: dict[int, Node] = {}
        self._reserved_bytes = 0
        self._number = 0
        self._unserved: dict[Partition, int] = {}
        """Partitions expected to be in a request soon, and since when."""

    @property
    def reserved_bytes(self) -> int:
        """Bytes that open requests may bring."""
        return self._reserved_bytes

    # -- partitions to fetch -----------------------------------------------------------------

    def expect(self, now_ms: int, partition: Partition) -> None:
        """Expect a partition that has started, or will soon have another position: until it was in
        a request, others do not wait long."""
        self._unserved[partition] = now_ms

    def refresh(self, now_ms: int, partition: Partition) -> None:
        """Re-evaluate a changed partition: whether, where and from which offset to fetch it."""
        limit = self._settings.max_partition_bytes
        if partition.buffered_bytes >= 2 * limit:
            if partition.mark(FULL, on=True):
                self.node(partition.buffered_from).full[partition] = now_ms
        elif partition.buffered_bytes < limit and partition.mark(FULL, on=False):
            self._not_full(partition)
        node = NO_NODE
        if partition.phase is Phase.READY and not partition.why_not & ~NO_LEADER:
            leader = self._leaders.at(partition.key)
            if leader is not None:
                node = self.replicas.target(now_ms, partition, leader)
            partition.mark(NO_LEADER, on=node == NO_NODE)
            if node == NO_NODE:
                self._metadata.want(partition.tp[0], f"no leader of {shown(partition.tp)} is known")
        self._place(partition, node)

    def remove(self, partition: Partition) -> None:
        """Stop fetching a partition, or prepare for a new topic id."""
        self._place(partition, NO_NODE)
        self._unserved.pop(partition, None)
        self._not_full(partition)

    def _not_full(self, partition: Partition) -> None:
        for node in self.nodes.values():
            node.full.pop(partition, None)

    def served(self, partition: Partition) -> None:
        """Move a partition that brought data behind the others."""
        node = self.nodes.get(partition.node)
        if node is not None:
            key = partition.key
            del node.ring[key]
            node.ring[key] = partition

    def _place(self, partition: Partition, to: int) -> None:
        key = partition.key
        if partition.node != to:
            if partition.node != NO_NODE:
                before = self.nodes[partition.node]
                del before.ring[key]
                before.changed[key] = None
            partition.node = to
            if to != NO_NODE:
                self.node(to).ring[key] = partition
        if to != NO_NODE:
            self.nodes[to].changed[key] = None

    def node(self, number: int) -> Node:
        """Return the broker with this node id, created if needed."""
        node = self.nodes.get(number)
        if node is None:
            node = self.nodes[number] = Node(number, FetchSession(number))
        return node

    # -- requests ----------------------------------------------------------------------------

    def plan(self, now_ms: int) -> Iterable[SendFetch]:
        """Return all requests that can be sent now; they count as sent."""
        ready = [
            node
            for node in self.nodes.values()
            if node.fetch is None and node.ring and node.ready_ms() <= now_ms
        ]
        for count, node in enumerate(ready):
            size_bytes = self._grant(node, len(ready) - count)
            if size_bytes:
                yield self._send(now_ms, node, size_bytes)

    def due_ms(self, now_ms: int) -> int | None:
        """When the next resting broker may be asked again."""
        due = [
            node.ready_ms()
            for node in self.nodes.values()
            if node.fetch is None and node.ring and node.ready_ms() > now_ms
        ]
        return min(due, default=None)

    def is_open(self, number: int) -> bool:
        """Whether this request is in flight."""
        return number in self._open

    def ended(self, number: int) -> tuple[Node, OpenFetch] | None:
        """Close a request that was answered or lost; ``None`` if it is not open."""
        node = self._open.pop(number, None)
        if node is None or node.fetch is None:
            return None
        fetch, node.fetch = node.fetch, None
        self._reserved_bytes -= fetch.reserved_bytes
        return node, fetch

    def unsent(self, node: Node) -> None:
        """Handle a request that never reached the broker."""
        node.session.lost(sent=False)
        node.changed = {**node.asked, **node.changed}

    def clear(self) -> tuple[tuple[int, int], ...]:
        """Forget all brokers and open requests; returns the (node, session id) of each session."""
        sessions: list[tuple[int, int]] = []
        for node in self.nodes.values():
            for partition in node.ring.values():
                partition.node = NO_NODE
            session_id = node.session.close()
            if session_id is not None:
                sessions.append((node.node, session_id))
        self.nodes.clear()
        self._open.clear()
        self._reserved_bytes = 0
        return tuple(sessions)

    def _grant(self, node: Node, sharers: int) -> int:
        """How many bytes a request may bring; 0 for no request. Free bytes are shared among the
        brokers that can be asked now; if there are other brokers, some bytes are kept for them,
        because they may follow in a moment."""
        settings = self._settings
        limit = settings.max_partition_bytes
        asked = min(settings.max_bytes, len(node.ring) * limit)
        free = settings.buffer_bytes - self._buffer.size_bytes - self._reserved_bytes
        if len(self._leaders.nodes) > 1:
            sharers = max(sharers, 2)
        if free >= limit:
            return max(1, min(asked, max(limit, free // sharers)))
        if self._buffer.holds_of(node.node):
            return 0
        return max(1, min(asked, free))

    def _send(self, now_ms: int, node: Node, size_bytes: int) -> SendFetch:
        settings = self._settings
        max_wait_ms = settings.max_wait_ms
        if self._some_wait(now_ms, node):
            max_wait_ms = min(max_wait_ms, FIRST_WAIT_MS)
        full_ms = node.full_since_ms()
        if full_ms is not None:
            # a partition not read for so long may well take as long again
            max_wait_ms = min(max_wait_ms, now_ms - full_ms)
        anew = node.session.begins_anew
        changes = {} if anew else {key: self._wanted(node, key) for key in node.changed}
        node.asked, node.changed = node.changed, {}
        difference = node.session.plan_changes(now_ms, changes, lambda: self._everything(node))
        self._number += 1
        node.fetch = OpenFetch(self._number, now_ms, size_bytes, max_wait_ms)
        self._open[self._number] = node
        self._reserved_bytes += size_bytes
        self.nodes[node.node] = self.nodes.pop(node.node)
        avoiding = any(self.replicas.avoids(now_ms, each) for each in node.avoiding.values())
        intent = FetchIntent(
            session_id=difference.session_id,
            session_epoch=difference.session_epoch,
            add=difference.add,
            forget=difference.forget,
            max_wait_ms=max_wait_ms,
            min_bytes=min(settings.min_bytes, size_bytes),
            max_bytes=size_bytes,
            read_committed=settings.read_committed,
            rack="" if avoiding else settings.rack,
        )
        timeout_ms = max_wait_ms + settings.request_timeout_ms
        return SendFetch(self._number, node.node, intent, timeout_ms)

    def _some_wait(self, now_ms: int, node: Node) -> bool:
        """Whether a partition outside this request waits; those in the request no longer do."""
        unserved = self._unserved
        if unserved:
            for key in node.changed:
                partition = node.ring.get(key)
                if partition is not None:
                    unserved.pop(partition, None)
        while unserved:
            partition, since_ms = next(iter(unserved.items()))
            waits = partition.readable and partition.phase is not Phase.STOPPED
            if waits and now_ms - since_ms < _FIRST_WAITS_MS:
                return True
            del unserved[partition]
        return False

    def _everything(self, node: Node) -> list[Wanted]:
        """All partitions, for a request that opens a session: grouped by topic, as on the wire."""
        by_topic: dict[bytes, list[Wanted]] = {}
        node.generations.clear()
        node.avoiding.clear()
        for key, partition in node.ring.items():
            node.generations[key] = partition.generation
            if partition.avoided != NO_NODE:
                node.avoiding[key] = partition
            by_topic.setdefault(key[0], []).append(self._want(partition))
        # Topics take turns at being first: otherwise one that brings data would block those behind
        # it permanently, and a batch that is larger than the limit is sent for the first alone.
        topics = list(by_topic.values())
        turn = node.full_requests % len(topics) if topics else 0
        node.full_requests += 1
        return [wanted for each in (*topics[turn:], *topics[:turn]) for wanted in each]

    def _wanted(self, node: Node, key: TopicIdPartition) -> Wanted | None:
        partition = node.ring.get(key)
        if partition is None:
            node.generations.pop(key, None)
            node.avoiding.pop(key, None)
            return None
        node.generations[key] = partition.generation
        if partition.avoided == NO_NODE:
            node.avoiding.pop(key, None)
        else:
            node.avoiding[key] = partition
        return self._want(partition)

    def _want(self, partition: Partition) -> Wanted:
        topic_id, number = key = partition.key
        leader = self._leaders.at(key)
        epoch = NO_EPOCH if leader is None else leader.epoch
        limit = self._settings.max_partition_bytes
        at = partition.fetch_offset
        return Wanted(topic_id, number, at, epoch, partition.fetch_epoch, limit)

"""Decides what is sent to which broker, and when.

A partition is ready at its leader when it has a batch that may be sent. Ready partitions take
turns: each puts one batch into a request and goes to the end of the queue. A broker has up to
``in_flight_max`` unanswered requests; while they are outstanding, more partitions become ready, and
the next request carries more.

The batches of a partition are sent in order. Several are in flight at once only while no errors
occur, and only to one broker: after a failed batch the following ones would be refused anyway.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from kip848_client.core.cluster import NO_NODE, Leaders
from kip848_client.core.partition_names import shown
from kip848_client.core.produce._accumulator import Accumulator
from kip848_client.core.produce._batches import Batch
from kip848_client.core.produce._commands import SendProduce
from kip848_client.core.produce._interfaces import ProducerIdentity
from kip848_client.core.produce._model import ProducerId, ProduceSettings, SealedBatch
from kip848_client.core.produce._partition import Partition
from kip848_client.core.types import TopicPartition

__all__ = ["BATCHES_A_STEP", "Node", "OpenProduce", "Sender"]

BATCHES_A_STEP: Final = 128
_BYTES_A_STEP: Final = 1 << 20
"""How much is compressed per step. The next step follows at once, so that other tasks run
between."""
_REMEMBERED_MAX: Final = 5
"""The number of newest batches per producer and partition that a broker remembers, with their
offsets. No more than these are in flight at once."""


@dataclass(slots=True, eq=False)
class Node:
    """A broker that receives batches."""

    number: int
    ready: OrderedDict[TopicPartition, Partition] = field(
        default_factory=OrderedDict[TopicPartition, Partition]
    )
    """The ready partitions, in turn."""
    in_flight: int = 0
    rest_until_ms: int = 0
    failures: int = 0
    """Unanswered requests in a row; each makes the backoff longer."""


@dataclass(frozen=True, slots=True)
class OpenProduce:
    """A request in flight."""

    node: Node
    batches: tuple[Batch, ...]


class Sender:
    """Sends batches to all brokers. ``want_leaders`` takes a topic and the reason its leaders are
    needed; ``exhausted`` takes a producer id whose epochs a partition has used up."""

    def __init__(
        self,
        settings: ProduceSettings,
        accumulator: Accumulator,
        leaders: Leaders,
        want_leaders: Callable[[str, str], None],
        exhausted: Callable[[ProducerId], None] | None,
    ) -> None:
        self.nodes: dict[int, Node] = {}
        self._settings = settings
        self._accumulator = accumulator
        self._leaders = leaders
        self._want_leaders = want_leaders
        self._exhausted = exhausted
        self._at_once = settings.in_flight_max
        if settings.idempotent:
            self._at_once = min(self._at_once, _REMEMBERED_MAX)
        self._open: dict[int, OpenProduce] = {}
        self._number = 0
        self._leaderless: dict[Partition, int] = {}
        self._held: dict[Partition, None] = {}
        """Partitions that wait to be added to the transaction, or for another producer id or
        epoch."""
        self._resting: list[tuple[int, TopicPartition]] = []
        self._sealed = self._sealed_bytes = 0
        """What this step has compressed so far."""

    # -- queries -----------------------------------------------------------------------------

    @property
    def leaderless(self) -> Mapping[Partition, int]:
        """Partitions whose next batch waits for a leader, and since when."""
        return self._leaderless

    @property
    def on_the_wire(self) -> int:
        """How many requests are not answered yet."""
        return len(self._open)

    def batches_on_the_wire(self) -> set[Batch]:
        """The batches of the requests that are not answered yet."""
        return {batch for produce in self._open.values() for batch in produce.batches}

    def due_ms(self, now_ms: int) -> int | None:
        """When a broker or partition finishes its backoff; now, if one step was not enough."""
        if self._is_tired and any(map(self._is_able, self.nodes.values())):
            return now_ms
        due = self._resting[0][0] if self._resting else None
        for node in self.nodes.values():
            if self._is_able(node) and node.rest_until_ms > now_ms:
                due = node.rest_until_ms if due is None else min(due, node.rest_until_ms)
        return due

    @property
    def _is_tired(self) -> bool:
        """This step has compressed enough."""
        return self._sealed_bytes >= _BYTES_A_STEP or self._sealed >= BATCHES_A_STEP

    def _is_able(self, node: Node) -> bool:
        """Whether the broker has ready partitions and may receive another request."""
        return bool(node.ready) and node.in_flight < self._settings.in_flight_max

    # -- ready partitions --------------------------------------------------------------------

    def place(self, now_ms: int, partition: Partition) -> None:
        """Update whether, when and where a partition has a batch to send, after any change to
        it."""
        tp = partition.tp
        at = NO_NODE
        if partition.has_next and self._may_follow(partition):
            if partition.rest_until_ms > now_ms:
                if partition.alarm_ms != partition.rest_until_ms:
                    partition.alarm_ms = partition.rest_until_ms
                    heappush(self._resting, (partition.alarm_ms, tp))
            else:
                at = self._leader(now_ms, partition)
        if partition.ready_at != at:
            if partition.ready_at != NO_NODE:
                self.nodes[partition.ready_at].ready.pop(tp, None)
            partition.ready_at = at
            if at != NO_NODE:
                self.node(at).ready[tp] = partition

    def _may_follow(self, partition: Partition) -> bool:
        """Whether another batch may be sent after those in flight."""
        flying = partition.flying
        if not flying:
            return True
        if not self._settings.idempotent:
            return len(flying) < self._at_once
        sequences = partition.sequences
        is_known = sequences.acknowledged == sequences.producer.number
        return is_known and not partition.failures and len(flying) < self._at_once

    def _leader(self, now_ms: int, partition: Partition) -> int:
        topic = partition.tp[0]
        leader = self._leaders.leader_of(partition.tp)
        if leader is None:
            self._leaderless.setdefault(partition, now_ms)
            self._want_leaders(topic, f"no leader of {shown(partition.tp)} is known")
            return NO_NODE
        if partition.flying and partition.flying_to != leader[0]:
            return NO_NODE  # must not overtake a batch in flight to another broker
        return leader[0]

    def place_topic(self, now_ms: int, topic: str) -> None:
        """Update the partitions of a topic whose leaders may have changed."""
        topic_id = self._leaders.id_of(topic)
        if topic_id is None:
            return
        partitions = self._accumulator.partitions
        for number in self._leaders.partitions_of(topic_id):
            partition = partitions.get(TopicPartition(topic, number))
            if partition is None:
                continue
            leader = self._leaders.leader_of(partition.tp)
            if partition.left != NO_NODE and leader is not None and leader[0] != partition.left:
                partition.left = NO_NODE
                partition.rest_until_ms = now_ms  # this change ends its backoff
            if partition.has_next:
                self.place(now_ms, partition)

    def place_leaderless(self, now_ms: int) -> None:
        """Update the partitions without a leader after new metadata. Leaders that are still missing
        are requested again."""
        leaderless, self._leaderless = self._leaderless, {}
        for partition, since_ms in leaderless.items():
            self.place(now_ms, partition)
            if partition in self._leaderless:
                self._leaderless[partition] = since_ms

    def place_all(self, now_ms: int) -> None:
        """Update all partitions: nothing known about leaders is valid any more."""
        for partition in self._accumulator.partitions.values():
            if partition.has_next:
                self.place(now_ms, partition)

    def wake(self, now_ms: int) -> None:
        """Update the partitions whose backoff is over, and those that may be in the transaction by
        now."""
        resting = self._resting
        while resting and resting[0][0] <= now_ms:
            _, tp = heappop(resting)
            self.place(now_ms, self._accumulator.partitions[tp])
        held, self._held = self._held, {}
        for partition in held:
            self.place(now_ms, partition)

    def node(self, number: int) -> Node:
        """The broker of this number, created if necessary."""
        node = self.nodes.get(number)
        if node is None:
            node = self.nodes[number] = Node(number)
        return node

    def begin_step(self) -> None:
        """Reset the counters of what this step has compressed."""
        self._sealed = self._sealed_bytes = 0

    # -- requests ----------------------------------------------------------------------------

    def send(self, now_ms: int, identity: ProducerIdentity) -> Iterator[SendProduce]:
        """All requests that can be sent now; each counts as sent."""
        for node in tuple(self.nodes.values()):
            while self._is_able(node) and node.rest_until_ms <= now_ms:
                producer = identity.producer
                if producer is None or self._is_tired:
                    return
                batches = self._fill(now_ms, node, identity, producer)
                if batches:
                    yield self._request(node, batches, identity)

    def _fill(
        self, now_ms: int, node: Node, identity: ProducerIdentity, producer: ProducerId
    ) -> list[Batch]:
        """The batches of the next request, one per partition."""
        batches: dict[TopicPartition, Batch] = {}
        size_bytes = 0
        while node.ready:
            tp, partition = next(iter(node.ready.items()))
            if tp in batches or self._sealed >= BATCHES_A_STEP:
                break
            if not identity.may_send(tp, node.number):
                self._unready(node, partition)
                self._held[partition] = None
                continue
            head = partition.waiting[0] if partition.waiting else partition.open
            assert head is not None
            size_bytes += head.builder.size_bytes
            if batches and size_bytes > self._settings.request_bytes:
                break
            self._unready(node, partition)
            if not partition.flying:
                partition.sequences.rested(now_ms)
            batch = self._take(partition, node, producer, identity)
            if batch is None:
                size_bytes -= head.builder.size_bytes
                if not partition.flying:
                    self._held[partition] = None
                continue
            batches[tp] = batch
            self._sealed += 1
            partition.flying.append(batch)
            partition.flying_to = node.number
            self.place(now_ms, partition)
        return list(batches.values())

    def _unready(self, node: Node, partition: Partition) -> None:
        del node.ready[partition.tp]
        partition.ready_at = NO_NODE

    def _take(
        self, partition: Partition, node: Node, producer: ProducerId, identity: ProducerIdentity
    ) -> Batch | None:
        """The first batch, with its sequence numbers; ``None`` if it must wait."""
        if not partition.waiting:
            self._accumulator.close(partition, full=False)
        head = partition.waiting[0]
        if self._settings.idempotent:
            sequences = partition.sequences
            topic_id = self._leaders.id_of(partition.tp[0])
            if topic_id != partition.topic_id:
                # the topic was created again, so brokers do not know this producer there
                partition.topic_id = topic_id
                sequences.acknowledged = -1
            if self._exhausted is not None and sequences.is_exhausted(producer):
                self._exhausted(producer)
            ready = sequences.prepare(
                head, partition.waiting, producer, on_its_way=bool(partition.flying)
            )
            if not ready:
                return None
        partition.waiting.popleft()
        head.builder.seal()
        identity.sent(partition.tp, node.number)
        return head

    def _request(self, node: Node, batches: list[Batch], identity: ProducerIdentity) -> SendProduce:
        settings = self._settings
        self._number += 1
        node.in_flight += 1
        self._open[self._number] = OpenProduce(node, tuple(batches))
        transactional = settings.transactional_id is not None
        self._sealed_bytes += sum(each.builder.size_bytes for each in batches)
        sealed = tuple(
            SealedBatch(
                each.tp,
                self._leaders.id_of(each.tp[0]),
                each.builder.bytes_for(
                    each.producer, each.first_sequence, transactional=transactional
                ),
                each.records,
                each.builder.size_bytes,
                each.created_ms,
                each.was_sent,
            )
            for each in batches
        )
        for each in batches:
            each.was_sent = True
        return SendProduce(
            self._number,
            node.number,
            settings.acks,
            settings.transactional_id,
            identity.version,
            sealed,
            settings.request_timeout_ms,
        )

    def ended(self, number: int) -> OpenProduce | None:
        """A request was answered or lost. Returns ``None`` if it is not open."""
        produce = self._open.pop(number, None)
        if produce is None:
            return None
        produce.node.in_flight -= 1
        partitions = self._accumulator.partitions
        for batch in produce.batches:
            partitions[batch.tp].flying.remove(batch)
        return produce

"""What goes to which broker now.

A partition is ready at the broker that leads it when it has a batch that may be sent. Ready
partitions take turns: each puts one batch into a request, and goes to the end of the line. A broker
has up to ``in_flight_max`` requests that it has not answered; while they are out, ready partitions
gather, and the next request carries more.

The batches of a partition leave in order. Several are on their way at once only while all goes well
and only to one broker: what follows a batch that failed would be refused anyhow.
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
"""So much is compressed in a step. The next one follows at once, and others have their turn
between."""
_REMEMBERED_MAX: Final = 5
"""So many batches of a producer and a partition, the newest, a broker knows again, with their
offsets. More are not sent at once."""


@dataclass(slots=True, eq=False)
class Node:
    """A broker that batches are sent to."""

    number: int
    ready: OrderedDict[TopicPartition, Partition] = field(
        default_factory=OrderedDict[TopicPartition, Partition]
    )
    """In turn."""
    in_flight: int = 0
    rest_until_ms: int = 0
    failures: int = 0
    """Requests in a row that it did not answer: each makes it rest longer."""


@dataclass(frozen=True, slots=True)
class OpenProduce:
    """A request that is under way."""

    node: Node
    batches: tuple[Batch, ...]


class Sender:
    """All brokers. ``want_leaders`` takes a topic and why its leaders are wanted; ``exhausted``
    a producer id of which a partition has used up the epochs."""

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
        """Partitions that the transaction does not have yet, or that wait for another producer id
        or epoch."""
        self._resting: list[tuple[int, TopicPartition]] = []
        self._sealed = self._sealed_bytes = 0
        """In this step."""

    # -- looking -----------------------------------------------------------------------------

    @property
    def leaderless(self) -> Mapping[Partition, int]:
        """Partitions whose next batch waits for a leader, with the time since when."""
        return self._leaderless

    @property
    def on_the_wire(self) -> int:
        """Requests that are not answered yet."""
        return len(self._open)

    def batches_on_the_wire(self) -> set[Batch]:
        """Those in requests that are not answered yet."""
        return {batch for produce in self._open.values() for batch in produce.batches}

    def due_ms(self, now_ms: int) -> int | None:
        """When a broker or a partition has rested, or there is more to do than one step did."""
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
        """Whether there is something to send that its requests have room for."""
        return bool(node.ready) and node.in_flight < self._settings.in_flight_max

    # -- who is ready ------------------------------------------------------------------------

    def place(self, now_ms: int, partition: Partition) -> None:
        """Something about this partition has changed: whether, when and where it has a batch to
        send."""
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
        """Whether another batch may be sent, after those that are on their way."""
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
            return NO_NODE  # what is on its way to another broker must not be overtaken
        return leader[0]

    def place_topic(self, now_ms: int, topic: str) -> None:
        """Its leaders may be others now."""
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
                partition.rest_until_ms = now_ms  # it rested for that
            if partition.has_next:
                self.place(now_ms, partition)

    def place_leaderless(self, now_ms: int) -> None:
        """Metadata was told; leaders that it did not tell are wanted again."""
        leaderless, self._leaderless = self._leaderless, {}
        for partition, since_ms in leaderless.items():
            self.place(now_ms, partition)
            if partition in self._leaderless:
                self._leaderless[partition] = since_ms

    def place_all(self, now_ms: int) -> None:
        """Nothing that was known of leaders holds any more."""
        for partition in self._accumulator.partitions.values():
            if partition.has_next:
                self.place(now_ms, partition)

    def wake(self, now_ms: int) -> None:
        """Place those that have rested, and those that the transaction may have by now."""
        resting = self._resting
        while resting and resting[0][0] <= now_ms:
            _, tp = heappop(resting)
            self.place(now_ms, self._accumulator.partitions[tp])
        held, self._held = self._held, {}
        for partition in held:
            self.place(now_ms, partition)

    def node(self, number: int) -> Node:
        """The broker of this number."""
        node = self.nodes.get(number)
        if node is None:
            node = self.nodes[number] = Node(number)
        return node

    def begin_step(self) -> None:
        """What is compressed counts from now on."""
        self._sealed = self._sealed_bytes = 0

    # -- requests ----------------------------------------------------------------------------

    def send(self, now_ms: int, identity: ProducerIdentity) -> Iterator[SendProduce]:
        """All requests that can be sent now; they count as sent."""
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
        """The batches of the next request, one a partition."""
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
        """The batch that is first, with its numbers; ``None`` when it must wait."""
        if not partition.waiting:
            self._accumulator.close(partition, full=False)
        head = partition.waiting[0]
        if self._settings.idempotent:
            sequences = partition.sequences
            topic_id = self._leaders.id_of(partition.tp[0])
            if topic_id != partition.topic_id:
                # of a topic that was created again brokers do not know this producer
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
        """A request was answered or lost; ``None`` when it is not open."""
        produce = self._open.pop(number, None)
        if produce is None:
            return None
        produce.node.in_flight -= 1
        partitions = self._accumulator.partitions
        for batch in produce.batches:
            partitions[batch.tp].flying.remove(batch)
        return produce

"""The brokers: a ``ClusterCore`` that writes slowly, crashes, restarts, loads, and moves.

A real coordinator appends the records of a request to its log and answers when they are safe. Until
then its memory is ahead of its log, and a crash throws it back: no answer acknowledged what is
lost. So here each answer waits for the records before it, and a crash keeps the records that were
written by then. The new core is built from them alone, and must say of every group what the old one
said.

Where there are several brokers, the group's partition may also be led by another one from now on:
nothing is lost then, but clients find the former coordinator, or one that loads. These are the
core's own answers; the following are played.

While a coordinator loads it answers COORDINATOR_LOAD_IN_PROGRESS; when the group's partition has
moved, the former broker answers NOT_COORDINATOR and no broker can name a new one for a while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kip848_client.core.types import TopicId, TopicIdPartition
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.chronicle import Chronicle
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.groups import GroupSnapshot, StateRecord
from mock_coordinator.core.inputs import (
    ClientInfo,
    LeaderMoved,
    RequestReceived,
    TimerFired,
)
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.outputs import Output, Reply
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC
from mock_coordinator.sim.checkers import Tag
from mock_coordinator.sim.client_connection import pack, unpack_request
from mock_coordinator.sim.context import BROKER, SimContext, server_name
from mock_coordinator.sim.invariants import Violation
from mock_coordinator.sim.kernel import Timer
from mock_coordinator.sim.network import Connection, Packet

__all__ = ["BrokerActor"]

_OPERATOR: Final = ClientInfo("operator")


class ReplayDiffers(Exception):
    """What the records say is not what the coordinator knew. Named as a checker for messages."""


class BrokerActor:
    """One broker process after the other, on one disk."""

    def __init__(self, context: SimContext, config: BrokerConfig) -> None:
        self._context = context
        self._rng = context.kernel.rng("broker")
        ids = context.kernel.rng("uuid")
        self.core = ClusterCore.create(
            config,
            lambda: ids.randbytes(16),
            context.kernel.now_ms,
            brokers=context.options.brokers,
        )
        if context.record is not None:
            self.core.chronicled_by(Chronicle(context.record, self._topic_name))
        self._relocating: tuple[int, dict[str, GroupSnapshot]] | None = None
        self.up = True
        self._life = 0
        self._refuse: int | None = None
        self._timer: Timer | None = None
        self._journal = self.core.broker.disk.journal(0)
        self._journal.compacts = False  # a crash may cut it anywhere
        self._journal.watched_by(self._appended)
        self._written: list[StateRecord] = []
        self._booked = 0
        self._safe = 0
        self._writes: deque[tuple[int, int]] = deque()
        self._answers_ms = 0
        self._open: dict[tuple[int, int], tuple[Connection, Packet]] = {}
        """Requests that are not answered yet: fetches may wait."""
        self._copies = 0
        self._listen()

    def _topic_name(self, topic_id: TopicId) -> str | None:
        topic = self.core.broker.catalog.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def _listen(self) -> None:
        """Every node takes requests."""
        for node in self.core.broker.nodes:
            self._context.network.servers[server_name(node.node_id)] = partial(
                self.receive, node.node_id
            )

    # -- requests ----------------------------------------------------------------------------

    def receive(self, node_id: int, connection: Connection, packet: Packet) -> None:
        """A request arrived at a node."""
        request = unpack_request(packet)
        tag = packet.tag if isinstance(packet.tag, Tag) else None
        if self._refuse is not None:
            refusal = refusal_of(request, self._refuse)
            if refusal is not None:
                self._answer_later(connection, packet, refusal)
                return
        late = tag is not None and self._context.checkers.is_late(
            tag, again=packet.again, given_up=not connection.open
        )
        number = connection.number
        if packet.again:  # the sender of the copy keeps the answer
            self._copies += 1
            number = -self._copies
        else:
            self._open[number, packet.correlation] = connection, packet
        event = RequestReceived(
            number,
            packet.correlation,
            packet.version,
            ClientInfo(connection.client),
            request,
            node_id,
        )
        outputs = self.core.step(self._context.kernel.now_ms, event)
        self._after_step(tag, late=late)
        for output in outputs:
            if isinstance(output, Reply) and output.connection == number:
                self._watch(tag, request, output.response, late=late)
        self._send(outputs)
        self._set_timer()

    def _send(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            assert isinstance(output, Reply), output
            asked = self._open.pop((output.connection, output.correlation), None)
            if asked is not None:
                self._answer_later(*asked, output.response)

    def _watch(self, tag: Tag | None, request: object, response: Any, *, late: bool) -> None:
        if tag is not None and isinstance(request, OffsetCommitRequest):
            self._tell_commit(tag, request, response, late=late)
        if tag is None or not isinstance(request, ConsumerGroupHeartbeatRequest):
            return
        if response.error_code == ErrorCode.NOT_COORDINATOR:
            self._context.probes.reached("former coordinator asked")
        elif response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._context.probes.reached("new coordinator asked too early")
        self._context.checkers.heartbeat_served(
            self._context.kernel.now_ms, tag, response, late=late
        )
        if response.error_code:
            code, said = response.error_code, ""
        else:
            code, said = 0, f"e={response.member_epoch}"
        self._context.tell(
            BROKER,
            "heartbeat",
            f"{tag.member.name} #{tag.number} e={tag.epoch}{' LATE' if late else ''} -> "
            f"{said or f'!{code}'}{'' if response.assignment is None else ' +assignment'}",
        )

    def _tell_commit(
        self, tag: Tag, request: OffsetCommitRequest, response: OffsetCommitResponse, *, late: bool
    ) -> None:
        epoch = request.generation_id_or_member_epoch
        offsets = " ".join(
            f"{_shown_topic(topic)}-{p.partition_index}={p.committed_offset}"
            for topic in request.topics
            for p in topic.partitions
        )
        codes = {p.error_code for topic in response.topics for p in topic.partitions}
        shown = f"{tag.member.name} e={epoch}{' LATE' if late else ''} {offsets} -> {sorted(codes)}"
        self._context.tell(BROKER, "commit", shown)

    def _answer_later(self, connection: Connection, packet: Packet, response: Message) -> None:
        """Answer when everything written before is safe, in order."""
        kernel, life = self._context.kernel, self._life
        body = pack(response, packet.version, codec=self._context.options.codec)
        answer = Packet(packet.correlation, packet.api_key, packet.version, body, packet.tag)

        def send() -> None:
            if life == self._life:
                self._context.network.answer(connection, answer)

        kernel.at(max(self._answers_ms, kernel.now_ms), send)

    def operate(self, request: Message, version: int) -> Any:
        """An administrator's request, answered at once; ``None`` while the broker is down."""
        if not self.up:
            return None
        event = RequestReceived(0, 0, version, _OPERATOR, request)
        outputs: tuple[Output, ...] = self.core.step(self._context.kernel.now_ms, event)
        self._after_step(None)
        self._safe = self._booked
        self._set_timer()
        self._note()
        self._send([each for each in outputs if not _is_for_the_operator(each)])
        replies = [each for each in outputs if _is_for_the_operator(each)]
        assert isinstance(replies[0], Reply), "operators are answered at once"
        return replies[0].response

    def _note(self) -> None:
        """Have what was produced written into the truth."""
        for topic_id, partition, log in self._logs():
            history = self._context.truth.of(topic_id, partition)
            if history.end != log.high_watermark:
                history.look(log)

    def _logs(self) -> Iterator[tuple[TopicId, int, PartitionLog]]:
        for topic in self.core.broker.catalog.topics.values():
            for partition in range(0 if topic.internal else topic.partitions):
                log = self.core.broker.logs.of(topic, partition)
                assert log is not None, "it has this partition"
                yield topic.topic_id, partition, log

    def ends(self) -> Mapping[TopicIdPartition, int]:
        """Where the logs of the users' topics end."""
        return {(topic_id, index): log.high_watermark for topic_id, index, log in self._logs()}

    # -- time --------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        due_ms = self.core.deadline_ms if self.up else None
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due_ms is None else self._context.kernel.at(due_ms, self._fire)

    def _fire(self) -> None:
        outputs = self.core.step(self._context.kernel.now_ms, TimerFired())
        self._after_step(None)
        self._send(outputs)
        self._set_timer()

    def _appended(self, partition: int, records: Sequence[StateRecord]) -> None:
        assert partition == 0, "the simulation has one journal"
        self._written += records

    def _after_step(self, tag: Tag | None, *, late: bool = False) -> None:
        """Report what the step wrote, and begin to make it safe."""
        self._check_relocated()  # a load may end in any step, by its time or by a request
        records = self._written
        if len(records) == self._booked:
            return
        new = records[self._booked :]
        self._booked = len(records)
        now_ms = self._context.kernel.now_ms
        slowest = 0 if self._context.healed else self._context.options.write_ms_max
        self._answers_ms = max(self._answers_ms, now_ms + self._rng.randint(0, slowest))
        self._writes.append((self._answers_ms, self._booked))
        self._context.checkers.written(now_ms, new, tag, late=late)

    # -- crashes -----------------------------------------------------------------------------

    def crash(self, down_ms: int, load_ms: int) -> None:
        """The process dies and is started again after a while."""
        if not self.up:
            return
        self._context.tell(BROKER, "crash", f"down {down_ms} ms, loading {load_ms} ms")
        self._context.probes.reached("coordinator crash")
        if not self._is_quiet():
            self._context.probes.reached("crash during reconciliation")
        self._die()
        for node in self.core.broker.nodes:
            del self._context.network.servers[server_name(node.node_id)]
            self._context.network.reset_all(server_name(node.node_id))
        life = self._life
        self._context.kernel.after(
            down_ms, lambda: self._restart(life, load_ms, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        )

    def move(self, moving_ms: int, load_ms: int) -> None:
        """The group's partition goes to another broker: for a while there is no coordinator, then a
        new one loads. Connections stay."""
        if not self.up:
            return
        self._context.tell(BROKER, "move", f"nobody for {moving_ms} ms, loading {load_ms} ms")
        self._context.probes.reached("coordinator moved")
        self._die()
        self.up = True
        self._refuse = ErrorCode.NOT_COORDINATOR
        life = self._life
        self._context.kernel.after(
            moving_ms, lambda: self._restart(life, load_ms, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        )

    def relocate(self, node_id: int, load_ms: int) -> None:
        """Another node leads the groups' partition from now on; it loads, and nothing is lost."""
        catalog = self.core.broker.catalog
        if not self.up or self._refuse is not None or catalog.topic(OFFSETS_TOPIC) is None:
            return
        if self.core.broker.coordinator_node(0) == node_id:
            return
        self._context.tell(BROKER, "relocate", f"to node {node_id}, loading {load_ms} ms")
        self._context.probes.reached("coordinator relocated")
        if not self._is_quiet():
            self._context.probes.reached("relocated during reconciliation")
        if self._relocating is None:
            self._relocating = len(self._written), self._snapshots()
        self.core.groups.load_ms = load_ms
        moved = LeaderMoved(OFFSETS_TOPIC, 0, node_id)
        outputs = self.core.step(self._context.kernel.now_ms, moved)
        self.core.groups.load_ms = 0  # after a crash this actor lets the load take its time
        self._check_relocated()
        self._send(outputs)
        self._set_timer()

    def _check_relocated(self) -> None:
        """When a load is over, the groups are what they were before it. (Their coordinator may have
        done something at once, when it found members that are late; that is in the log then.)"""
        if self._relocating is None or self.core.groups.is_loading:
            return
        (written, before), self._relocating = self._relocating, None
        if len(self._written) == written and before != self._snapshots():
            raise Violation(ReplayDiffers, f"{before} became {self._snapshots()}")

    def _is_quiet(self) -> bool:
        snapshots = [self.core.groups.snapshot(g) for g in self.core.groups.group_ids]
        return all(s is None or s.state.value in ("Stable", "Empty") for s in snapshots)

    def _die(self) -> None:
        now_ms = self._context.kernel.now_ms
        while self._writes and self._writes[0][0] <= now_ms:
            self._safe = max(self._safe, self._writes.popleft()[1])
        self._writes.clear()
        self._open.clear()
        self._life += 1
        self.up = False
        if self._timer is not None:
            self._timer.cancel()
        records = self._written
        if self._safe < len(records):
            self._context.tell(BROKER, "forget", f"{len(records) - self._safe} records")
            self._context.probes.reached("crash loses records")
        known = self._safe == len(records) and not self.core.groups.is_loading
        before = self._snapshots() if known else None
        self._relocating = None
        del records[self._safe :]
        self._journal.truncate(self._safe)
        self.core = self.core.restarted(now_ms)
        self._booked = len(records)
        self._answers_ms = now_ms
        if before is not None and before != self._snapshots():
            raise Violation(ReplayDiffers, f"{before} became {self._snapshots()}")
        self._context.checkers.rewound(self._written)

    def _snapshots(self) -> dict[str, GroupSnapshot]:
        groups = self.core.groups
        taken = {group_id: groups.snapshot(group_id) for group_id in groups.group_ids}
        return {g: snapshot.without_timers() for g, snapshot in taken.items() if snapshot}

    def _restart(self, life: int, load_ms: int, refuse: int) -> None:
        if life != self._life:
            return
        self._context.tell(BROKER, "restart", f"{len(self._written)} records")
        now_ms = self._context.kernel.now_ms
        self.core = self.core.restarted(now_ms)  # sessions begin when the load is done
        self.up = True
        self._refuse = refuse
        self._listen()
        self._context.kernel.after(load_ms, lambda: self._loaded(life))

    def _loaded(self, life: int) -> None:
        if life == self._life and self._refuse is not None:
            self.core = self.core.restarted(self._context.kernel.now_ms)
            self._refuse = None
            self._context.tell(BROKER, "loaded")
            self._set_timer()

    def heal(self) -> None:
        """Be up and loaded from now on."""
        if self.up and self._refuse is None:
            return
        self._life += 1
        self._restart(self._life, 0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self._loaded(self._life)


def _is_for_the_operator(output: Output) -> bool:
    return isinstance(output, Reply) and output.connection == 0


def _shown_topic(topic: OffsetCommitRequestTopic) -> str:
    """The name, or in short the id, whichever the version has."""
    return topic.topic_id[-1:].hex() if any(topic.topic_id) else topic.name


# -- refusals --------------------------------------------------------------------------------


def refusal_of(request: object, code: int) -> Message | None:
    """What a broker answers that does not coordinate the group (yet); ``None``: it just serves."""
    for kind, refuse in _REFUSALS.items():
        if isinstance(request, kind):
            return refuse(request, code)
    return None


def _heartbeat(request: ConsumerGroupHeartbeatRequest, code: int) -> Message:
    del request
    return ConsumerGroupHeartbeatResponse(error_code=code)


def _commit(request: OffsetCommitRequest, code: int) -> Message:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _fetch(request: OffsetFetchRequest, code: int) -> Message:
    return OffsetFetchResponse(
        groups=tuple(
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
            for group in request.groups
        )
    )


def _find(request: FindCoordinatorRequest, code: int) -> Message | None:
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return None  # which broker it will be is known
    return FindCoordinatorResponse(
        coordinators=tuple(
            FindCoordinatorResponseCoordinator(
                key=key, node_id=-1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE
            )
            for key in request.coordinator_keys
        )
    )


_REFUSALS: Final[dict[type, Callable[[Any, int], Message | None]]] = {
    ConsumerGroupHeartbeatRequest: _heartbeat,
    OffsetCommitRequest: _commit,
    OffsetFetchRequest: _fetch,
    FindCoordinatorRequest: _find,
}

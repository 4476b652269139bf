"""The brokers of a world of fetching: a ``ClusterCore`` of several nodes behind the network.

What it answers is its own. Played here are the troubles that it does not know: a quota that is used
up, a request that fails as a whole, a partition that fails, a replica that lags behind, a bit that
is flipped on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kip848_client._types import TopicId
from kip848_client.error_codes import ErrorCode
from kip848_client.wire._fields import Message
from kip848_client.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
)
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.fetching.sessions import FetchKey, FetchSession
from mock_coordinator.core.inputs import (
    ClientInfo,
    Input,
    NodeStarted,
    NodeStopped,
    RequestReceived,
    TimerFired,
)
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.logs.record_batch import HEADER_BYTES, read_header
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.sim.client_connection import pack, unpack_request
from mock_coordinator.sim.fetching.context import FetchContext
from mock_coordinator.sim.kernel import Timer
from mock_coordinator.sim.network import Connection, Packet

__all__ = ["Brokers", "node_name"]

_OPERATOR: Final = ClientInfo("operator")
_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS: Final = ("a", "b", "c")
_CHECKED_FROM: Final = 21
"""In a batch: its attributes."""
_THROTTLE_MS_MAX: Final = 2_000
_REQUEST_CODES: Final = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
_PARTITION_CODES: Final = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.OFFSET_OUT_OF_RANGE,
)


def node_name(node_id: int) -> str:
    """Of a node in the network."""
    return f"node{node_id}"


@dataclass(slots=True)
class _Waiting:
    connection: Connection
    packet: Packet
    node_id: int
    request: Any


class Brokers:
    """All nodes."""

    def __init__(self, context: FetchContext) -> None:
        self._context = context
        self._rng = context.kernel.rng("brokers")
        ids = context.kernel.rng("uuid")
        options = context.options
        config = BrokerConfig(
            context.profile,
            {
                "max.incremental.fetch.session.cache.slots": str(options.session_slots),
                "transaction.state.log.num.partitions": "1",
                "offsets.topic.num.partitions": "1",
                "default.replication.factor": str(options.brokers),
                **({"replica.selector.class": _SELECTOR} if options.near else {}),
            },
        )
        self.core = ClusterCore.create(
            config,
            lambda: ids.randbytes(16),
            context.kernel.now_ms,
            brokers=options.brokers,
            racks=RACKS if options.near else (),
        )
        self._waiting: dict[tuple[int, int], _Waiting] = {}
        self._ghosts = 0
        self.longest_batch = 0
        """Of all that were ever in a log, in bytes."""
        self._timer: Timer | None = None
        for node in self.core.broker.nodes:
            self._listen(node.node_id)

    def _listen(self, node_id: int) -> None:
        receive = partial(self._receive, node_id)
        self._context.network.servers[node_name(node_id)] = receive

    # -- looking -----------------------------------------------------------------------------

    @property
    def topics(self) -> list[Topic]:
        """The users' topics, by name."""
        known = self.core.broker.catalog.topics
        return [known[name] for name in sorted(known) if not known[name].internal]

    def log(self, topic: Topic, partition: int) -> PartitionLog:
        """Of one partition."""
        log = self.core.broker.logs.of(topic, partition)
        assert log is not None, "it has this partition"
        return log

    def logs(self) -> Iterator[tuple[Topic, int, PartitionLog]]:
        """Of all partitions of the users' topics."""
        for topic in self.topics:
            for partition in range(topic.partitions):
                yield topic, partition, self.log(topic, partition)

    def session(self, node_id: int, session_id: int) -> FetchSession | None:
        """A session of a node, if it is there."""
        return self.core.fetches(node_id).sessions.get(session_id)

    def sessions(self) -> Iterator[tuple[int, ...]]:
        """The ids of all sessions, node by node."""
        for node_id in self.core.broker.nodes.ids:
            yield self.core.fetches(node_id).sessions.ids

    def leader(self, topic: Topic, partition: int) -> int | None:
        """Who leads a partition."""
        return self.core.broker.partition_state(topic, partition).leader

    def some_run(self) -> bool:
        """Whether there is a broker for what is created."""
        return any(node.up and not node.fenced for node in self.core.broker.nodes)

    def note(self) -> None:
        """Have what was appended written into the histories."""
        for topic, partition, log in self.logs():
            history = self._context.histories.of(topic.topic_id, partition)
            if history.end != log.high_watermark:
                history.look(log)
                longest = max(len(batch.data) for batch in log.batches)
                self.longest_batch = max(self.longest_batch, longest)

    # -- requests ----------------------------------------------------------------------------

    def _receive(self, node_id: int, connection: Connection, packet: Packet) -> None:
        request = unpack_request(packet)
        number = connection.number
        if packet.again:  # its answer goes nowhere
            self._ghosts += 1
            number = -self._ghosts
        else:
            waiting = _Waiting(connection, packet, node_id, request)
            self._waiting[number, packet.correlation] = waiting
            if isinstance(request, FetchRequest):
                self._context.judge.arrived(request, packet.version)
                refusal = self._refusal(node_id, request)
                if refusal is not None:
                    self._answer(number, packet.correlation, refusal)
                    return
        event = RequestReceived(
            number,
            packet.correlation,
            packet.version,
            ClientInfo(connection.client),
            request,
            node_id,
        )
        self.step(event)

    def step(self, event: Input) -> None:
        """Let something happen to the brokers, and send what they answer."""
        for output in self.core.step(self._context.kernel.now_ms, event):
            if isinstance(output, Reply):
                self._answer(output.connection, output.correlation, output.response)
        self.note()
        self._set_timer()

    def operate(self, request: Message, version: int) -> Any:
        """An administrator's or producer's request, answered at once by whoever can."""
        event = RequestReceived(0, 0, version, _OPERATOR, request)
        answers: list[Any] = []
        for output in self.core.step(self._context.kernel.now_ms, event):
            assert isinstance(output, Reply), output
            if output.connection == 0:
                answers.append(output.response)
            else:
                self._answer(output.connection, output.correlation, output.response)
        self.note()
        self._set_timer()
        return answers[0] if answers else None

    def _answer(self, number: int, correlation: int, response: Any) -> None:
        waiting = self._waiting.pop((number, correlation), None)
        if waiting is None:
            return
        packet = waiting.packet
        if isinstance(response, FetchResponse):
            response = self._spoilt(waiting, response)
        body = pack(response, packet.version, codec=self._context.options.codec)
        answer = Packet(correlation, packet.api_key, packet.version, body, packet.tag)
        self._context.network.answer(waiting.connection, answer)

    # -- time --------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        due_ms = self.core.deadline_ms
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if due_ms is not None:
            self._timer = self._context.kernel.at(due_ms, lambda: self.step(TimerFired()))

    # -- troubles ----------------------------------------------------------------------------

    def _refusal(self, node_id: int, request: FetchRequest) -> FetchResponse | None:
        """What a broker answers that does not even look at the request."""
        context = self._context
        if context.happens("refuse", context.options.refuse / 2):
            code = self._rng.choice(_REQUEST_CODES)
            context.tell(node_name(node_id), "refuses", code.name)
            context.probes.reached("a request refused as a whole")
            return FetchResponse(error_code=code, session_id=self._rng.choice((0, 7)))
        if request.session_epoch == 0 and context.happens("throttle", context.options.throttle):
            throttle_ms = self._throttle(node_id)
            context.probes.reached("a full fetch throttled")
            return FetchResponse(throttle_time_ms=throttle_ms)
        return None

    def _throttle(self, node_id: int) -> int:
        throttle_ms = self._rng.randint(1, _THROTTLE_MS_MAX)
        self._context.tell(node_name(node_id), "throttles", f"{throttle_ms} ms")
        return throttle_ms

    def _spoilt(self, waiting: _Waiting, response: FetchResponse) -> FetchResponse:
        """An answer as it leaves a troubled broker, after its true part was noted."""
        context, node_id = self._context, waiting.node_id
        if response.error_code or response.throttle_time_ms:
            return response
        asked = self._asked(waiting, response)
        self._lag(node_id, response)
        rows = [row for topic in response.responses for row in topic.partitions]
        if rows and context.happens("refuse", context.options.refuse / 2):
            self._refuse(node_id, self._rng.choice(rows))
        self._note_refusals(node_id, asked, response)
        incremental = waiting.request.session_epoch > 0
        if incremental and context.happens("throttle", context.options.throttle):
            throttle_ms = self._throttle(node_id)
            context.probes.reached("an incremental fetch throttled")
            response = replace(response, throttle_time_ms=throttle_ms, responses=())
            rows = []
        full = [row for row in rows if len(row.records or b"") > 80]
        if full and context.happens("corrupt", context.options.corrupt):
            row = self._rng.choice(full)
            row.records, at = self._flipped(row.records or b"")
            context.tell(node_name(node_id), "corrupts", f"{row.partition_index} at {at}")
        return response

    def _flipped(self, records: bytes) -> tuple[bytes, int]:
        """One bit is another one, in what a batch's checksum covers: base offset, length and leader
        epoch are not among that, because brokers set them."""
        starts: list[int] = []
        start = 0
        while start + HEADER_BYTES < len(records):
            starts.append(start)
            start += read_header(records, start).size_bytes
        start = self._rng.choice(starts)
        end = min(len(records), start + read_header(records, start).size_bytes)
        at = self._rng.randrange(start + _CHECKED_FROM, end)
        spoilt = bytearray(records)
        spoilt[at] ^= 1 << self._rng.randrange(8)
        return bytes(spoilt), at

    def _asked(self, waiting: _Waiting, response: FetchResponse) -> dict[FetchKey, int]:
        """The offset asked for of each partition, by what the broker knows."""
        session = self.core.fetches(waiting.node_id).sessions.get(response.session_id)
        if session is not None:
            return {key: wanted.fetch_offset for key, wanted in session.wanted.items()}
        return {
            FetchKey("", bytes(topic.topic_id), row.partition): row.fetch_offset
            for topic in waiting.request.topics
            for row in topic.partitions
        }

    def _lag(self, node_id: int, response: FetchResponse) -> None:
        context = self._context
        for topic in response.responses:
            known = self.core.broker.catalog.topic_by_id(topic.topic_id)
            for row in topic.partitions:
                if known is None or self.leader(known, row.partition_index) == node_id:
                    continue
                if row.error_code == 0 and context.happens("lag", context.options.lag):
                    context.probes.reached("OFFSET_OUT_OF_RANGE at a follower")
                    _fail(row, ErrorCode.OFFSET_OUT_OF_RANGE)

    def _refuse(self, node_id: int, row: FetchResponsePartitionData) -> None:
        code = self._rng.choice(_PARTITION_CODES)
        self._context.tell(node_name(node_id), "refuses", f"{row.partition_index} {code.name}")
        self._context.probes.reached("a partition refused")
        _fail(row, code)
        if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._rng.random() < 0.5:
            # who lags behind names a leader of former times
            row.current_leader = FetchResponseLeaderIdAndEpoch(leader_id=node_id, leader_epoch=0)

    def _note_refusals(
        self, node_id: int, asked: dict[FetchKey, int], response: FetchResponse
    ) -> None:
        """What gives a client the right to go elsewhere."""
        judge = self._context.judge
        for topic in response.responses:
            topic_id = TopicId(bytes(topic.topic_id))
            known = self.core.broker.catalog.topic_by_id(topic_id)
            for row in topic.partitions:
                offset = asked.get(FetchKey("", topic_id, row.partition_index), -1)
                leads = known is not None and self.leader(known, row.partition_index) == node_id
                if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and leads:
                    self._context.probes.reached("OFFSET_OUT_OF_RANGE at the leader")
                    judge.out_of_range((topic_id, row.partition_index), offset)
                if row.diverging_epoch.epoch >= 0:
                    self._context.probes.reached("a diverging epoch")
                    end = row.diverging_epoch.end_offset
                    judge.diverged((topic_id, row.partition_index), end)
                if row.preferred_read_replica >= 0:
                    self._context.probes.reached("a preferred replica")

    # -- nodes -------------------------------------------------------------------------------

    def stop(self, node_id: int, noticed_after_ms: int) -> None:
        """A node dies; the others notice it after a while."""
        if not self.core.broker.nodes[node_id].up:
            return
        self._context.tell(node_name(node_id), "stop", f"noticed after {noticed_after_ms} ms")
        self._context.probes.reached("a broker stopped")
        self.step(NodeStopped(node_id, noticed_after_ms))
        del self._context.network.servers[node_name(node_id)]
        self._context.network.reset_all(node_name(node_id))
        self._waiting = {k: w for k, w in self._waiting.items() if w.node_id != node_id}

    def start(self, node_id: int) -> None:
        """It runs again."""
        if self.core.broker.nodes[node_id].up:
            return
        self._context.tell(node_name(node_id), "start")
        self._listen(node_id)
        self.step(NodeStarted(node_id))

    def evict(self) -> None:
        """A session has to make room."""
        node_id = self._rng.choice(self.core.broker.nodes.ids)
        sessions = self.core.fetches(node_id).sessions
        if sessions.ids:
            self._context.probes.reached("a session evicted")
            self._context.tell(node_name(node_id), "evicts")
            sessions.close(self._rng.choice(sessions.ids))

    def heal(self) -> None:
        """Be up from now on."""
        for node_id in self.core.broker.nodes.ids:
            self.start(node_id)


def _fail(row: FetchResponsePartitionData, code: ErrorCode) -> None:
    row.error_code = code
    row.high_watermark = row.last_stable_offset = row.log_start_offset = -1
    row.diverging_epoch = type(row.diverging_epoch)()
    row.preferred_read_replica = -1
    row.aborted_transactions = None
    row.records = b""

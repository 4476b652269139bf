"""The brokers of a world of fetching: a ``ClusterCore`` of several nodes behind the network.

What it answers is its own. Played here are the troubles that it does not know: a quota that is used
up, a request that fails as a whole, a partition that fails, a replica that lags behind, a bit that
is flipped on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.fetching.sessions import FetchKey, FetchSession
from mock_coordinator.core.inputs import (
    ClientInfo,
)
from mock_coordinator.core.logs.record_batch import HEADER_BYTES, read_header
from mock_coordinator.sim.fetching.context import FetchContext
from mock_coordinator.sim.fetching.options import FetchOptions
from mock_coordinator.sim.nodes import Nodes, Waiting, node_name

__all__ = ["Brokers"]

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


class Brokers(Nodes[FetchOptions]):
    """All nodes."""

    def __init__(self, context: FetchContext) -> None:
        self._context = context
        self._rng = context.kernel.rng("brokers")
        options = context.options
        settings = {
            "max.incremental.fetch.session.cache.slots": str(options.session_slots),
            "transaction.state.log.num.partitions": "1",
            "offsets.topic.num.partitions": "1",
            **({"replica.selector.class": _SELECTOR} if options.near else {}),
        }
        self.longest_batch = 0
        """Of all that were ever in a log, in bytes."""
        super().__init__(context, settings, RACKS if options.near else ())

    # -- looking -----------------------------------------------------------------------------

    def session(self, node_id: int, session_id: int) -> FetchSession | None:
        """A session of a node, if it is there."""
        return self.core.fetches(node_id).sessions.get(session_id)

    def sessions(self) -> Iterator[tuple[int, ...]]:
        """The ids of all sessions, node by node."""
        for node_id in self.core.broker.nodes.ids:
            yield self.core.fetches(node_id).sessions.ids

    def note(self) -> None:
        """Have what was appended written into the truth."""
        for topic, partition, log in self.logs():
            history = self._context.truth.of(topic.topic_id, partition)
            if history.end != log.high_watermark:
                history.look(log)
                longest = max(len(batch.data) for batch in log.batches)
                self.longest_batch = max(self.longest_batch, longest)

    # -- troubles ----------------------------------------------------------------------------

    def refusal(self, waiting: Waiting) -> FetchResponse | None:
        """What a broker answers that does not even look at a fetch."""
        node_id, request = waiting.node_id, waiting.request
        if not isinstance(request, FetchRequest):
            return None
        self._context.checks.arrived(request, waiting.packet.version)
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

    def spoilt(self, waiting: Waiting, response: Any) -> Any:
        """A fetch's answer as it leaves a troubled broker, after its true part was noted."""
        if not isinstance(response, FetchResponse) or waiting.packet.again:
            return response
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

    def _asked(self, waiting: Waiting, response: FetchResponse) -> dict[FetchKey, int]:
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
        checks = self._context.checks
        for topic in response.responses:
            topic_id = TopicId(bytes(topic.topic_id))
            known = self.core.broker.catalog.topic_by_id(topic_id)
            for row in topic.partitions:
                offset = asked.get(FetchKey("", topic_id, row.partition_index), -1)
                leads = known is not None and self.leader(known, row.partition_index) == node_id
                if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and leads:
                    self._context.probes.reached("OFFSET_OUT_OF_RANGE at the leader")
                    checks.out_of_range((topic_id, row.partition_index), offset)
                if row.diverging_epoch.epoch >= 0:
                    self._context.probes.reached("a diverging epoch")
                    end = row.diverging_epoch.end_offset
                    checks.diverged((topic_id, row.partition_index), end)
                if row.preferred_read_replica >= 0:
                    self._context.probes.reached("a preferred replica")

    # -- nodes -------------------------------------------------------------------------------

    def evict(self) -> None:
        """A session has to make room."""
        node_id = self._rng.choice(self.core.broker.nodes.ids)
        sessions = self.core.fetches(node_id).sessions
        if sessions.ids:
            self._context.probes.reached("a session evicted")
            self._context.tell(node_name(node_id), "evicts")
            sessions.close(self._rng.choice(sessions.ids))


def _fail(row: FetchResponsePartitionData, code: ErrorCode) -> None:
    row.error_code = code
    row.high_watermark = row.last_stable_offset = row.log_start_offset = -1
    row.diverging_epoch = type(row.diverging_epoch)()
    row.preferred_read_replica = -1
    row.aborted_transactions = None
    row.records = b""

"""Fetch (key 1): reads batches, waits for more when there are too few, keeps fetch sessions.

Theory of operation
===================

A request becomes a ``FetchPlan``: the partitions to read, in order, with those that do not exist
set aside. The plan is read at once. If that yields ``min_bytes``, or an error, or nothing is to be
waited for, the response is built; otherwise the plan is parked by the core and asked again, with
``ready``, after records were appended to one of its partitions, and read for good when it is ready
or its time is up. Nothing is kept from the first reading, so a parked fetch answers with what is
there when it answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kip848_client._types import TopicId, TopicIdPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchResponseAbortedTransaction,
    FetchResponseEpochEndOffset,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
)
from mock_coordinator.core.fetching.sessions import FetchKey, FetchSession, FetchSessions, Wanted
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.state.leadership import current_leader, endpoints, leader_problem
from mock_coordinator.core.topics.catalog import Topic

__all__ = ["FetchPlan", "Fetches"]

_SESSIONS_SINCE: Final = 7
_IDS_SINCE: Final = 13
_FINAL_EPOCH: Final = -1
_INITIAL_EPOCH: Final = 0
_ANY_REPLICA_SINCE: Final = 11
"""From here on consumers may read from any replica, not the leader alone (KIP-392)."""
_LEADER_TOLD_SINCE: Final = 16
_RACK_AWARE: Final = "RackAwareReplicaSelector"
"""The class of Kafka's that sends consumers to a replica in their rack (KIP-392)."""
_OLD_LEADER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""Refusals that say who leads now (KIP-951)."""


@dataclass(slots=True)
class FetchPlan:
    """One fetch request, understood. ``deadline_ms`` is when it is answered in any case."""

    version: int
    isolation_level: int
    min_bytes: int
    max_bytes: int
    deadline_ms: int
    from_replica: bool
    wanted: dict[FetchKey, Wanted]
    session: FetchSession | None
    incremental: bool
    opens_session: bool = False
    """A session is to be opened with the answer."""
    may_read: Callable[[str], bool] | None = None
    """Whether the client may read a topic of this name; ``None``: everything."""
    rack: str = ""
    """Where the client is."""

    @property
    def by_id(self) -> bool:
        """Whether topics are named by id (version 13 and later)."""
        return self.version >= _IDS_SINCE


@dataclass(slots=True)
class _Reading:
    """What the partitions of a plan say now."""

    found: dict[FetchKey, FetchResponsePartitionData]
    missing: dict[FetchKey, FetchResponsePartitionData]
    readable_bytes: int = 0
    complete: bool = False


class Fetches:
    """Serves fetches for one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self._slots: Final = broker.config.integer("max.incremental.fetch.session.cache.slots")
        selector = broker.config.text("replica.selector.class") or ""
        self._rack_aware: Final = selector.endswith(_RACK_AWARE)
        self._sessions = FetchSessions(self._slots)

    @property
    def sessions(self) -> FetchSessions:
        """The open sessions. Look, or close one."""
        return self._sessions

    def forget_sessions(self) -> None:
        """The broker was stopped: sessions live in its memory alone."""
        self._sessions = FetchSessions(self._slots)

    def start(
        self,
        now_ms: int,
        version: int,
        request: FetchRequest,
        may_read: Callable[[str], bool] | None = None,
    ) -> FetchResponse | FetchPlan:
        """The response if there is one already, else the plan to be parked until ``ready``."""
        plan = self._plan(now_ms, version, request)
        if isinstance(plan, ErrorCode):
            return FetchResponse(error_code=plan)
        plan.may_read = may_read
        reading = self._read(plan)
        if reading.found and plan.isolation_level not in (0, 1):
            return _failed(version, request)
        wait = request.max_wait_ms > 0 and bool(reading.found)
        if reading.complete or reading.readable_bytes >= plan.min_bytes or not wait:
            return self._respond(now_ms, plan, reading)
        return plan

    def ready(self, plan: FetchPlan) -> bool:
        """Whether a parked plan has enough to be answered before its time."""
        reading = self._read(plan)
        return reading.complete or reading.readable_bytes >= plan.min_bytes

    def finish(self, now_ms: int, plan: FetchPlan) -> FetchResponse:
        """The response to a parked plan, with whatever is there now."""
        return self._respond(now_ms, plan, self._read(plan))

    def partitions_of(self, plan: FetchPlan) -> tuple[TopicIdPartition, ...]:
        """The existing partitions whose growth can complete the plan."""
        found: list[TopicIdPartition] = []
        for key in plan.wanted:
            topic = self._topic(plan, key)
            if topic is not None:
                found.append((topic.topic_id, key.partition))
        return tuple(found)

    # -- understanding the request ---------------------------------------------------------------

    def _plan(self, now_ms: int, version: int, request: FetchRequest) -> FetchPlan | ErrorCode:
        broker_limit = self._broker.config.integer("fetch.max.bytes")
        max_bytes = min(request.max_bytes, broker_limit)
        replica = request.replica_id if version < 15 else request.replica_state.replica_id
        plan = FetchPlan(
            version=version,
            isolation_level=request.isolation_level,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            deadline_ms=now_ms + max(request.max_wait_ms, 0),
            from_replica=replica >= 0,
            rack=request.rack_id,
            wanted=_wanted(request),
            session=None,
            incremental=False,
        )
        if version < _SESSIONS_SINCE:
            return plan
        refusal = self._join_session(now_ms, plan, request)
        return plan if refusal is None else refusal

    def _join_session(
        self, now_ms: int, plan: FetchPlan, request: FetchRequest
    ) -> ErrorCode | None:
        if request.session_epoch in (_FINAL_EPOCH, _INITIAL_EPOCH):
            self._sessions.close(request.session_id)
            plan.opens_session = request.session_epoch == _INITIAL_EPOCH
            return None
        session = self._sessions.resume(request.session_id, request.session_epoch, by_id=plan.by_id)
        if isinstance(session, ErrorCode):
            return session
        session.update(plan.wanted, _forgotten(request))
        session.used(now_ms)
        plan.wanted = session.wanted
        if not plan.wanted:
            self._sessions.close(session.session_id)
            return None
        plan.session = session
        plan.incremental = True
        return None

    # -- reading ---------------------------------------------------------------------------------

    def _topic(self, plan: FetchPlan, key: FetchKey) -> Topic | None:
        catalog = self._broker.catalog
        return catalog.topic_by_id(key.topic_id) if plan.by_id else catalog.topic(key.topic)

    def _read(self, plan: FetchPlan) -> _Reading:
        reading = _Reading({}, {})
        room = plan.max_bytes
        for key, wanted in plan.wanted.items():
            topic = self._topic(plan, key)
            log = None if topic is None else self._broker.logs.of(topic, key.partition)
            if topic is None or log is None or not _may_read(plan, topic.name):
                reading.missing[key] = _missing(plan, key, topic)
                continue
            first = reading.readable_bytes == 0
            problem = leader_problem(
                self._broker,
                topic,
                key.partition,
                log,
                epoch=wanted.leader_epoch,
                any_replica=plan.version >= _ANY_REPLICA_SINCE,
            )
            data = _read_partition(plan, key, wanted, log, room, problem, at_least_one=first)
            self._prefer_replica(plan, topic, key.partition, data)
            if plan.version >= _LEADER_TOLD_SINCE and data.error_code in _OLD_LEADER:
                leader, epoch = current_leader(self._broker, topic, key.partition)
                data.current_leader = FetchResponseLeaderIdAndEpoch(
                    leader_id=leader, leader_epoch=epoch
                )
            reading.found[key] = data
            size = len(data.records or b"")
            room = max(0, room - size)
            reading.readable_bytes += size
            if data.error_code or data.diverging_epoch.epoch >= 0:
                reading.complete = True
            reading.complete = reading.complete or data.preferred_read_replica >= 0
        return reading

    def _prefer_replica(
        self, plan: FetchPlan, topic: Topic, partition: int, data: FetchResponsePartitionData
    ) -> None:
        """The leader sends a consumer to an in-sync replica in its rack, and gives it no
        records."""
        if not self._rack_aware or not plan.rack or plan.from_replica or data.error_code:
            return
        if data.diverging_epoch.epoch >= 0 or not self._broker.leads(topic, partition):
            return
        state = self._broker.partition_state(topic, partition)
        near = [r for r in state.isr if self._broker.nodes[r].rack == plan.rack]
        if near and state.leader not in near:
            data.preferred_read_replica = near[0]
            data.records = b""

    # -- answering -------------------------------------------------------------------------------

    def _open_session(self, now_ms: int, plan: FetchPlan) -> None:
        plan.opens_session = False
        session_id = int.from_bytes(self._broker.new_uuid()[:4], "big") & 0x7FFFFFFF
        plan.session = self._sessions.create(
            now_ms, session_id, plan.wanted, by_id=plan.by_id, privileged=plan.from_replica
        )

    def _respond(self, now_ms: int, plan: FetchPlan, reading: _Reading) -> FetchResponse:
        if plan.opens_session:
            self._open_session(now_ms, plan)
        # neighbours of one topic make one row; a topic that is named again later has another
        topics: list[tuple[tuple[str, bytes], list[FetchResponsePartitionData]]] = []
        for key, data in (*reading.found.items(), *reading.missing.items()):
            news = plan.session is None or plan.session.tell(key, data)
            if news or not plan.incremental:
                named = (key.topic, key.topic_id)
                if not topics or topics[-1][0] != named:
                    topics.append((named, []))
                topics[-1][1].append(data)
        return FetchResponse(
            session_id=0 if plan.session is None else plan.session.session_id,
            responses=tuple(
                FetchResponseFetchableTopicResponse(
                    topic=name, topic_id=topic_id, partitions=tuple(partitions)
                )
                for (name, topic_id), partitions in topics
            ),
            node_endpoints=tuple(
                FetchResponseNodeEndpoint(
                    node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
                )
                for node in endpoints(
                    self._broker,
                    (
                        data.current_leader.leader_id
                        for _, partitions in topics
                        for data in partitions
                        if data.error_code in _OLD_LEADER and not plan.from_replica
                    ),
                )
            ),
        )


def _failed(version: int, request: FetchRequest) -> FetchResponse:
    """The answer to a request that the broker fails on where it would begin to read."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    return FetchResponse(
        error_code=code if version >= _SESSIONS_SINCE else ErrorCode.NONE,
        session_id=request.session_id,
        responses=tuple(
            FetchResponseFetchableTopicResponse(
                topic=topic.topic,
                partitions=tuple(
                    FetchResponsePartitionData(
                        partition_index=asked.partition,
                        error_code=code,
                        high_watermark=-1,
                        records=b"",
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
            if version < _IDS_SINCE
        ),
    )


def _may_read(plan: FetchPlan, topic: str) -> bool:
    return plan.may_read is None or plan.may_read(topic)


def _missing(plan: FetchPlan, key: FetchKey, topic: Topic | None) -> FetchResponsePartitionData:
    """A partition that is not there, or not for this client."""
    if topic is None and plan.by_id:
        error = ErrorCode.UNKNOWN_TOPIC_ID
    elif not _may_read(plan, key.topic if topic is None else topic.name):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    else:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return FetchResponsePartitionData(
        partition_index=key.partition, error_code=error, high_watermark=-1, records=b""
    )


def _wanted(request: FetchRequest) -> dict[FetchKey, Wanted]:
    wanted: dict[FetchKey, Wanted] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            key = FetchKey(topic.topic, bytes(topic.topic_id), partition.partition)
            wanted[key] = Wanted(
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
            )
    return wanted


def _forgotten(request: FetchRequest) -> tuple[FetchKey, ...]:
    return tuple(
        FetchKey(topic.topic, bytes(TopicId(topic.topic_id)), partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    )


def _read_partition(
    plan: FetchPlan,
    key: FetchKey,
    wanted: Wanted,
    log: PartitionLog,
    room: int,
    problem: ErrorCode | None,
    *,
    at_least_one: bool,
) -> FetchResponsePartitionData:
    error = _refusal(plan, wanted, log, min(wanted.max_bytes, room), problem)
    if error is not None:
        return FetchResponsePartitionData(
            partition_index=key.partition,
            error_code=error,
            high_watermark=-1,
            aborted_transactions=None,
            records=b"",
        )
    data = FetchResponsePartitionData(
        partition_index=key.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=() if plan.isolation_level == 1 else None,
        records=b"",
    )
    if wanted.last_fetched_epoch >= 0:
        epoch, end = log.end_of_epoch(wanted.last_fetched_epoch)
        if end < wanted.fetch_offset:  # the client has records that this leader never had (KIP-595)
            data.diverging_epoch = FetchResponseEpochEndOffset(epoch=epoch, end_offset=end)
            return data
    data.records = log.read(
        wanted.fetch_offset,
        min(wanted.max_bytes, room),
        isolation_level=plan.isolation_level,
        at_least_one=at_least_one,
    )
    if plan.isolation_level == 1 and wanted.fetch_offset < log.last_stable_offset:
        data.aborted_transactions = tuple(
            FetchResponseAbortedTransaction(
                producer_id=aborted.producer_id, first_offset=aborted.first_offset
            )
            for aborted in log.aborted_transactions(wanted.fetch_offset, len(data.records))
        )
    return data


def _refusal(
    plan: FetchPlan, wanted: Wanted, log: PartitionLog, max_bytes: int, problem: ErrorCode | None
) -> ErrorCode | None:
    """Why a partition cannot be read, in the order in which a leader looks."""
    if plan.from_replica:  # none of this partition's
        if wanted.leader_epoch >= 0:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if problem is not None:
        return problem
    if wanted.last_fetched_epoch >= 0:
        unknown = log.end_of_epoch(wanted.last_fetched_epoch) == (-1, -1)
        if unknown or wanted.fetch_offset < log.log_start_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
    elif not log.log_start_offset <= wanted.fetch_offset <= log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if max_bytes < 0 and wanted.fetch_offset < log.high_watermark:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None

"""Fetch (key 1): reads batches, waits for more if there are too few, keeps fetch sessions.

Theory of operation
===================

A request becomes a ``FetchPlan``: the partitions to read, in order, and the names of their topics.
A topic id is resolved once, now or earlier in the session. The plan is read at once. If that yields
``min_bytes``, or an error, or if there is nothing to wait for, the response is built. Otherwise the
core parks the plan, checks it with ``ready`` after each append to one of its partitions, and reads
it again when it is ready or its time is up. Nothing is kept from the first read, so a parked fetch
returns what exists when it is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, TypeVar

from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, TopicIdPartition
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.fetching.partition_read import read_partition, refused
from mock_coordinator.core.fetching.sessions import (
    FetchKey,
    FetchSession,
    FetchSessions,
    Wanted,
    has_a_shard,
)
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.state.leadership import current_leader, endpoints, leader_problem
from mock_coordinator.core.topics.catalog import Topic

__all__ = ["FetchPlan", "Fetches"]

_Any = TypeVar("_Any")

_SESSIONS_SINCE: Final = 7
_IDS_SINCE: Final = 13
_FINAL_EPOCH: Final = -1
_INITIAL_EPOCH: Final = 0
_DIVERGING_SINCE: Final = 12
_ANY_REPLICA_SINCE: Final = 11
"""From here on consumers may read from any replica, not the leader alone (KIP-392)."""
_LEADER_TOLD_SINCE: Final = 16
_RACK_AWARE: Final = "RackAwareReplicaSelector"
"""The class of Kafka's that sends consumers to a replica in their rack (KIP-392)."""
_OLD_LEADER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""Errors that name the current leader (KIP-951)."""


@dataclass(slots=True)
class FetchPlan:
    """What a fetch request asks for. It is answered at ``deadline_ms`` at the latest."""

    version: int
    request: FetchRequest
    isolation_level: int
    min_bytes: int
    max_bytes: int
    deadline_ms: int
    from_replica: bool
    wanted: dict[FetchKey, Wanted]
    session: FetchSession | None = None
    names: Mapping[FetchKey, str | None] = field(default_factory=dict)
    """Names of the topics; ``None`` for an unknown id."""
    next_epoch: int = 0
    """The session's next epoch, unless another request uses the session first; 0 for a request that
    is not incremental."""
    opens_session: bool = False
    """Whether the response opens a session."""
    may_read: Callable[[str], bool] | None = None
    """Whether the client may read a topic of this name; ``None``: everything."""
    rack: str = ""
    """The client's rack."""

    @property
    def by_id(self) -> bool:
        """Whether topics are named by id (version 13 and later)."""
        return self.version >= _IDS_SINCE

    @property
    def incremental(self) -> bool:
        """Whether the response belongs to an existing session."""
        return self.next_epoch > 0


@dataclass(slots=True)
class _Reading:
    """What the partitions of a plan have now."""

    found: dict[FetchKey, FetchResponsePartitionData] = field(default_factory=dict)
    unknown: dict[FetchKey, FetchResponsePartitionData] = field(default_factory=dict)
    """Partitions of unknown topic ids."""
    missing: dict[FetchKey, FetchResponsePartitionData] = field(default_factory=dict)
    """Partitions that do not exist, or that the client may not read."""
    readable_bytes: int = 0
    complete: bool = False

    @property
    def answers(self) -> dict[FetchKey, FetchResponsePartitionData]:
        """All of them, in the order of the response."""
        return {**self.found, **self.unknown, **self.missing}


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
        if plan is ErrorCode.UNKNOWN_SERVER_ERROR:
            return _failed(version, request, plan)
        if isinstance(plan, ErrorCode):
            return FetchResponse(error_code=plan)
        plan.may_read = may_read
        reading = self._read(plan)
        if reading.found and plan.isolation_level not in (0, 1):
            return _failed(version, request, ErrorCode.UNKNOWN_SERVER_ERROR)
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
        for key, name in plan.names.items():
            topic = None if name is None else self._broker.catalog.topic(name)
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
            request=request,
            isolation_level=request.isolation_level,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            deadline_ms=now_ms + max(request.max_wait_ms, 0),
            from_replica=replica >= 0,
            rack=request.rack_id,
            wanted=_wanted(request),
        )
        refusal = None
        if version >= _SESSIONS_SINCE:
            refusal = self._join_session(now_ms, plan, request)
        if plan.session is None:
            plan.names = {key: self._name(key) for key in plan.wanted}
        return plan if refusal is None else refusal

    def _join_session(
        self, now_ms: int, plan: FetchPlan, request: FetchRequest
    ) -> ErrorCode | None:
        if not has_a_shard(request.session_id):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if request.session_epoch in (_FINAL_EPOCH, _INITIAL_EPOCH):
            self._sessions.close(request.session_id)
            plan.opens_session = request.session_epoch == _INITIAL_EPOCH
            whole = _before_zero_id(plan.wanted) == plan.wanted
            if plan.opens_session and not whole and self._stumbles(plan):
                return ErrorCode.UNKNOWN_SERVER_ERROR
            return None
        session = self._sessions.resume(request.session_id, request.session_epoch, by_id=plan.by_id)
        if isinstance(session, ErrorCode):
            return session
        if not self._update(session, plan, request):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if not session.wanted:
            # it is over, and what this request names is served without it
            self._sessions.close(session.session_id)
            return None
        session.used(now_ms)
        session.advance()
        plan.session = session
        plan.next_epoch = session.epoch
        plan.wanted = session.wanted
        plan.names = session.names(self._name)
        return None

    def _stumbles(self, plan: FetchPlan) -> bool:
        """Whether a topic that has neither name nor id, in a session, is more than the broker can
        take."""
        return plan.by_id and self._broker.profile.zero_ids_fail_sessions

    def _update(self, session: FetchSession, plan: FetchPlan, request: FetchRequest) -> bool:
        """Add, change and forget; returns whether all of it could be done. What came before the
        topic over which the broker stumbled is."""
        forgotten = dict.fromkeys(_forgotten(request))
        if not self._stumbles(plan):
            session.update(plan.wanted, forgotten)
            return True
        wanted = _before_zero_id(plan.wanted)
        if wanted != plan.wanted:
            session.update(wanted, ())
            return False
        known = _before_zero_id(forgotten)
        session.update(wanted, known)
        return known == forgotten or not session.wanted  # in an empty one it looks for nothing

    def _name(self, key: FetchKey) -> str | None:
        """The name of a topic; ``None`` for an unknown id."""
        if key.topic:
            return key.topic
        topic = self._broker.catalog.topic_by_id(TopicId(key.topic_id))
        return None if topic is None else topic.name

    # -- reading ---------------------------------------------------------------------------------

    def _read(self, plan: FetchPlan) -> _Reading:
        reading = _Reading()
        room = plan.max_bytes
        for key, wanted in plan.wanted.items():
            name = plan.names[key]
            topic = None if name is None else self._broker.catalog.topic(name)
            log = None if topic is None else self._broker.logs.of(topic, key.partition)
            if name is None:
                reading.unknown[key] = _missing(key, ErrorCode.UNKNOWN_TOPIC_ID)
            elif plan.may_read is not None and not plan.may_read(name):
                reading.missing[key] = _missing(key, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif topic is None or log is None:
                reading.missing[key] = _missing(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                data = self._read_log(plan, key, wanted, topic, log, room, reading)
                reading.found[key] = data
                size = len(data.records or b"")
                room = max(0, room - size)
                reading.readable_bytes += size
                reading.complete = reading.complete or _ends_waiting(plan, wanted, data)
        return reading

    def _read_log(
        self,
        plan: FetchPlan,
        key: FetchKey,
        wanted: Wanted,
        topic: Topic,
        log: PartitionLog,
        room: int,
        reading: _Reading,
    ) -> FetchResponsePartitionData:
        problem = self._problem(plan, key, wanted, topic, log)
        if problem is None:
            data = read_partition(
                key.partition,
                wanted,
                log,
                isolation_level=plan.isolation_level,
                max_bytes=min(wanted.max_bytes, room),
                at_least_one=reading.readable_bytes == 0,
            )
        else:
            data = refused(key.partition, problem)
        self._prefer_replica(plan, topic, key.partition, data)
        if plan.version >= _LEADER_TOLD_SINCE and data.error_code in _OLD_LEADER:
            leader, epoch = current_leader(self._broker, topic, key.partition)
            data.current_leader = FetchResponseLeaderIdAndEpoch(
                leader_id=leader, leader_epoch=epoch
            )
        return data

    def _problem(
        self, plan: FetchPlan, key: FetchKey, wanted: Wanted, topic: Topic, log: PartitionLog
    ) -> ErrorCode | None:
        """Why this broker does not look into the log, in the order in which it finds out."""
        problem = leader_problem(
            self._broker,
            topic,
            key.partition,
            log,
            epoch=wanted.leader_epoch,
            any_replica=plan.version >= _ANY_REPLICA_SINCE,
        )
        hosted = problem != ErrorCode.NOT_LEADER_OR_FOLLOWER
        if hosted and plan.by_id and topic.topic_id != key.topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if plan.from_replica:  # none of this partition's
            if wanted.leader_epoch >= 0:
                return ErrorCode.UNKNOWN_LEADER_EPOCH
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return problem

    def _prefer_replica(
        self, plan: FetchPlan, topic: Topic, partition: int, data: FetchResponsePartitionData
    ) -> None:
        """The leader sends a consumer to an in-sync replica in its rack, and gives it no
        records."""
        if not self._rack_aware or not plan.rack or plan.from_replica or data.error_code:
            return
        if _diverges(data) or not self._broker.leads(topic, partition):
            return
        state = self._broker.partition_state(topic, partition)
        near = [r for r in state.isr if self._broker.nodes[r].rack == plan.rack]
        if near and state.leader not in near:
            data.preferred_read_replica = near[0]
            data.records = b""

    # -- answering -------------------------------------------------------------------------------

    def _open_session(self, now_ms: int, plan: FetchPlan, reading: _Reading) -> None:
        plan.opens_session = False
        chance = int.from_bytes(self._broker.new_uuid()[:4], "big")
        answers = reading.answers
        plan.session = self._sessions.create(
            now_ms,
            self._sessions.new_id(chance),
            {key: plan.wanted[key] for key in answers},
            by_id=plan.by_id,
            privileged=plan.from_replica,
        )
        if plan.session is not None:
            for key, data in answers.items():
                plan.session.opened(key, plan.names[key], data)

    def _respond(self, now_ms: int, plan: FetchPlan, reading: _Reading) -> FetchResponse:
        if plan.opens_session:
            self._open_session(now_ms, plan, reading)
        session = plan.session if plan.incremental else None
        if session is not None and session.epoch != plan.next_epoch:
            # while this one waited, another request went on with the session
            return FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id
            )
        told = {
            key: data
            for key, data in reading.answers.items()
            if session is None or session.tell(key, data)
        }
        if plan.version < _DIVERGING_SINCE and any(_diverges(data) for data in told.values()):
            # in a session that a newer version shares: the answer cannot be written
            return _failed(plan.version, plan.request, ErrorCode.UNSUPPORTED_VERSION)
        # neighbours of one topic make one row; a topic that is named again later has another
        topics: list[tuple[tuple[str, bytes], list[FetchResponsePartitionData]]] = []
        for key, data in told.items():
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


def _failed(version: int, request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """The answer to a request that the broker fails on, wherever that is."""
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


def _before_zero_id(keys: dict[FetchKey, _Any]) -> dict[FetchKey, _Any]:
    """What comes before the first topic with the zero id."""
    return dict(takewhile(lambda each: each[0].topic_id != ZERO_TOPIC_ID, keys.items()))


def _missing(key: FetchKey, error: ErrorCode) -> FetchResponsePartitionData:
    """A partition that is not there, or not for this client."""
    return FetchResponsePartitionData(
        partition_index=key.partition, error_code=error, high_watermark=-1, records=b""
    )


def _diverges(data: FetchResponsePartitionData) -> bool:
    return data.diverging_epoch.epoch >= 0


def _ends_waiting(plan: FetchPlan, wanted: Wanted, data: FetchResponsePartitionData) -> bool:
    """Whether a partition's answer must not wait for records, its own or others'."""
    if data.error_code or _diverges(data) or data.preferred_read_replica >= 0:
        return True
    # a read_committed client beyond what is decided: Kafka takes that for a log that was cut
    return plan.isolation_level == 1 and wanted.fetch_offset > data.last_stable_offset


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

"""Metadata (key 3): the brokers, topics by name or by id, and topic creation on first mention."""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.types import ZERO_TOPIC_ID
from kip848_client.core.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.map_orders import scala_map_order, string_hash, string_map_order
from mock_coordinator.core.state.broker import NO_OPERATIONS, Broker
from mock_coordinator.core.state.internal_topics import (
    create_offsets_topic,
    create_transactions_topic,
)
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.core.topics.topic_names import (
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    colliding_name,
    name_problem,
)

__all__ = ["metadata", "partition_now"]

CLUSTER_OPERATIONS: Final = 8096
"""Bits of all operations on a cluster, which without an authorizer everybody may do (KIP-430)."""
TOPIC_OPERATIONS: Final = 3576
"""Bits of all operations on a topic."""

_IDS_SINCE: Final = 12
"""Topics may be asked for by id from this version on; before, an id is a malformed request."""


def metadata(call: ApiCall[MetadataRequest]) -> MetadataResponse:
    """The cluster and the topics asked for; ``None``, or in version 0 an empty list, means all."""
    broker, now_ms, version, request = call.broker, call.now_ms, call.version, call.request
    asked = request.topics
    wants_all = asked is None or (version == 0 and not asked)
    entries: tuple[MetadataRequestTopic, ...] = () if wants_all or asked is None else asked
    malformed = _malformed(version, entries)
    if malformed is not None:
        return malformed
    if wants_all:
        topics = [_described(broker, topic) for topic in broker.catalog.topics.values()]
    elif any(bytes(entry.topic_id) != ZERO_TOPIC_ID for entry in entries):
        topics = _by_id(broker, entries)
    else:
        may_create = version < 4 or request.allow_auto_topic_creation
        topics = _by_name(broker, now_ms, entries, may_create=may_create)
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None:  # a topic that does not exist may be used nevertheless
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    cluster_operations = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(
                node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in broker.nodes.alive
        ),
        cluster_id=broker.disk.cluster_id,
        controller_id=broker.nodes.controller_id,
        topics=tuple(topics),
        cluster_authorized_operations=CLUSTER_OPERATIONS if cluster_operations else NO_OPERATIONS,
    )


def _malformed(version: int, entries: tuple[MetadataRequestTopic, ...]) -> MetadataResponse | None:
    """The answer to topics that are named in a way the version does not have."""
    if version < _IDS_SINCE:
        wrong = any(e.name is None or bytes(e.topic_id) != ZERO_TOPIC_ID for e in entries)
        code = ErrorCode.INVALID_REQUEST
    else:
        wrong = any(e.name is None and bytes(e.topic_id) == ZERO_TOPIC_ID for e in entries)
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    if not wrong:
        return None
    return MetadataResponse(
        topics=tuple(
            MetadataResponseTopic(error_code=code, name=e.name or "", topic_id=e.topic_id)
            for e in entries
        )
    )


def _by_id(
    broker: Broker, entries: tuple[MetadataRequestTopic, ...]
) -> list[MetadataResponseTopic]:
    """As soon as one topic is named by id, names are not looked at."""
    ids = dict.fromkeys(bytes(e.topic_id) for e in entries if bytes(e.topic_id) != ZERO_TOPIC_ID)
    known: list[MetadataResponseTopic] = []
    unknown: list[MetadataResponseTopic] = []
    for topic_id in ids:
        topic = broker.catalog.topic_by_id(topic_id)
        if topic is not None:
            known.append(_described(broker, topic))
        else:
            unknown.append(
                MetadataResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
                )
            )
    return known + unknown


def _by_name(
    broker: Broker, now_ms: int, entries: tuple[MetadataRequestTopic, ...], *, may_create: bool
) -> list[MetadataResponseTopic]:
    asked = (entry.name for entry in entries if entry.name is not None)
    names = scala_map_order(asked, string_hash)
    before = tuple(broker.catalog.topics)
    known: list[MetadataResponseTopic] = []
    unknown: dict[str, MetadataResponseTopic] = {}
    for name in names:
        topic = broker.catalog.topic(name)
        if topic is not None:
            known.append(_described(broker, topic))
            continue
        # the topic exists from now on, but this answer still says that it does not, as Kafka's does
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name_problem(name) is not None:
            code = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif may_create and broker.config.boolean("auto.create.topics.enable"):
            _auto_create(broker, now_ms, name, before)
        internal = name in INTERNAL_TOPICS
        unknown[name] = MetadataResponseTopic(error_code=code, name=name, is_internal=internal)
    missing = string_map_order(unknown) if broker.profile.missing_topics_hashed else unknown
    return [*known, *(unknown[name] for name in missing)]


def _auto_create(broker: Broker, now_ms: int, name: str, before: tuple[str, ...]) -> None:
    if name == OFFSETS_TOPIC:
        create_offsets_topic(broker, now_ms)
    elif name == TRANSACTIONS_TOPIC:
        create_transactions_topic(broker, now_ms)
    elif colliding_name(name, before) is None:
        broker.catalog.create(
            name,
            broker.config.integer("num.partitions"),
            broker.new_topic_id(),
            internal=name in INTERNAL_TOPICS,
            created_ms=now_ms,
        )


def _described(broker: Broker, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=tuple(
            MetadataResponsePartition(**partition_now(broker, topic, index))
            for index in range(topic.partitions)
        ),
    )


def partition_now(broker: Broker, topic: Topic, index: int) -> dict[str, Any]:
    """What every answer about a partition says of its leader and replicas, by field."""
    state = broker.partition_state(topic, index)
    leaderless = state.leader is None
    return {
        "error_code": ErrorCode.LEADER_NOT_AVAILABLE if leaderless else ErrorCode.NONE,
        "partition_index": index,
        "leader_id": -1 if state.leader is None else state.leader,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
        "offline_replicas": tuple(r for r in state.replicas if broker.nodes[r].fenced),
    }

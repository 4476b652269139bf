"""CreateTopics (key 19), with the checks and words of Kafka's controller, in its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kip848_client.core.types import TopicId, parse_topic_id
from kip848_client.core.wire.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicConfigs,
    CreateTopicsResponseCreatableTopicResult,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.apis.configs.described_configs import described_topic
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.settings.tables.topic import TOPIC_ID_SETTING
from mock_coordinator.core.settings.topic_config import topic_config_problem
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.core.topics.topic_names import INTERNAL_TOPICS, colliding_name, name_problem

__all__ = ["MAX_PARTITIONS_PER_REQUEST", "check_replicas", "create_topics"]

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
_MAX_RECORDS: Final = 10_000
"""What one request may write into the cluster's metadata: a record for each topic, for each of its
settings and for each of its partitions."""


_METADATA_TOPIC: Final = "__cluster_metadata"
"""The controllers' own log, which looks like a topic and is none."""


def create_topics(call: ApiCall[CreateTopicsRequest]) -> CreateTopicsResponse:
    """Create each topic that passes; the response says for each what happened."""
    broker, now_ms, request = call.broker, call.now_ms, call.request
    counts: dict[str, int] = {}
    for asked in request.topics:
        counts[asked.name] = counts.get(asked.name, 0) + 1
    once = [asked for asked in request.topics if counts[asked.name] == 1]
    try:
        _check_request(broker, once, request.timeout_ms)
        results = _create_all(broker, now_ms, once, validate_only=request.validate_only)
    except Refused as refused:  # then everything is, as often as it was named
        return CreateTopicsResponse(
            topics=tuple(_refusal(asked.name, refused) for asked in request.topics)
        )
    twice = Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += [_refusal(name, twice) for name, times in counts.items() if times > 1]
    return CreateTopicsResponse(topics=tuple(results))


def _create_all(
    broker: Broker,
    now_ms: int,
    topics: Sequence[CreateTopicsRequestCreatableTopic],
    *,
    validate_only: bool,
) -> list[CreateTopicsResponseCreatableTopicResult]:
    """What becomes of each. Raises ``Refused`` when they are too much together."""
    before = tuple(broker.catalog.topics)  # Kafka's controller looks no further for collisions
    results: list[CreateTopicsResponseCreatableTopicResult] = []
    accepted: list[tuple[int, Topic, list[tuple[int, ...]] | None, int]] = []
    taken: set[TopicId] = set()
    records = 0
    for asked in topics:
        try:
            topic = _checked(broker, now_ms, asked, before)
            _check_id(topic, taken)
        except Refused as refused:
            results.append(_refusal(asked.name, refused))
            continue
        replicas, factor = _placement(broker, asked)
        taken.add(topic.topic_id)
        accepted.append((len(results), topic, replicas, factor))
        results.append(_created(broker, topic, factor))
        records += 1 + len(topic.config) + topic.partitions
        if records > _MAX_RECORDS:
            raise Refused(
                ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
            )
    for at, topic, replicas, factor in () if validate_only else accepted:
        made = broker.catalog.create(
            topic.name,
            topic.partitions,
            topic.topic_id,
            config=topic.config,
            internal=topic.internal,
            created_ms=now_ms,
        )
        broker.disk.leaders.place(made, replicas, factor)
        results[at] = _created(broker, made, factor)
    return results


def _check_id(topic: Topic, taken: set[TopicId]) -> None:
    if topic.topic_id in taken:
        text = f"{TOPIC_ID_SETTING}: two topics of the request want the same"
        raise Refused(ErrorCode.INVALID_CONFIG, text)


def _refusal(name: str, refused: Refused) -> CreateTopicsResponseCreatableTopicResult:
    return CreateTopicsResponseCreatableTopicResult(
        name=name, error_code=refused.code, error_message=refused.message, configs=()
    )


def _check_request(
    broker: Broker, topics: Sequence[CreateTopicsRequestCreatableTopic], timeout_ms: int
) -> None:
    """What is wrong with the request as a whole."""
    if timeout_ms <= 0 and topics:
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, None)
    default = broker.config.integer("num.partitions")
    partitions = 0
    for asked in topics:
        count = default if asked.num_partitions == -1 else asked.num_partitions
        partitions += len(asked.assignments) if asked.assignments else max(count, 0)
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        raise Refused(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def _checked(
    broker: Broker, now_ms: int, asked: CreateTopicsRequestCreatableTopic, before: Sequence[str]
) -> Topic:
    """The topic as it will be. Raises ``Refused``."""
    if asked.name == _METADATA_TOPIC:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Creation of internal topic {_METADATA_TOPIC} is prohibited.",
        )
    problem = name_problem(asked.name)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    other = colliding_name(asked.name, before)
    if other is not None:
        raise Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{asked.name}' collides with existing topic: {other}",
        )
    if broker.catalog.topic(asked.name) is not None:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{asked.name}' already exists.")
    given, topic_id = _config(broker, asked)
    partitions = _partitions(broker, asked)
    return Topic(
        asked.name,
        topic_id,
        partitions,
        given,
        internal=asked.name in INTERNAL_TOPICS,
        created_ms=now_ms,
    )


def _config(
    broker: Broker, asked: CreateTopicsRequestCreatableTopic
) -> tuple[dict[str, str], TopicId]:
    given: dict[str, str] = {}
    missing: list[str] = []
    for config in asked.configs:
        if config.value is None:
            missing.append(config.name)
        else:
            given[config.name] = config.value
    if missing:
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(missing)}",
        )
    topic_id = _topic_id(broker, given)
    problem = topic_config_problem(broker.profile, given)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, problem)
    return given, topic_id


def _topic_id(broker: Broker, given: dict[str, str]) -> TopicId:
    """The id that the client chose with ``mock.topic.id`` (which is taken out), or a fresh one."""
    text = given.pop(TOPIC_ID_SETTING, None)
    if text is None:
        return broker.new_topic_id()
    try:
        topic_id = parse_topic_id(text)
    except ValueError as err:
        raise Refused(ErrorCode.INVALID_CONFIG, f"{TOPIC_ID_SETTING}: {err}") from err
    if topic_id == bytes(16) or broker.catalog.topic_by_id(topic_id) is not None:
        raise Refused(
            ErrorCode.INVALID_CONFIG, f"{TOPIC_ID_SETTING}: {text} is zero or another topic's id"
        )
    return topic_id


def _partitions(broker: Broker, asked: CreateTopicsRequestCreatableTopic) -> int:
    if asked.assignments:
        _check_assignments(broker, asked)
        return len(asked.assignments)
    if asked.replication_factor < -1 or asked.replication_factor == 0:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if asked.num_partitions < -1 or asked.num_partitions == 0:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if asked.replication_factor > len(broker.nodes):
        cordoned = broker.profile.log_dirs_can_be_cordoned
        more = " or some brokers have all their log directories cordoned" if cordoned else ""
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {asked.replication_factor} time(s): The target "
            f"replication factor of {asked.replication_factor} cannot be reached because only "
            f"{len(broker.nodes)} broker(s) are registered{more}.",
        )
    if asked.num_partitions == -1:
        return broker.config.integer("num.partitions")
    return asked.num_partitions


def _placement(
    broker: Broker, asked: CreateTopicsRequestCreatableTopic
) -> tuple[list[tuple[int, ...]] | None, int]:
    """Where the partitions of a checked topic go, when that was said, and how often each."""
    if asked.assignments:
        given = sorted(asked.assignments, key=lambda assignment: assignment.partition_index)
        return [tuple(a.broker_ids) for a in given], len(given[0].broker_ids)
    if asked.replication_factor == -1:
        return None, min(broker.config.integer("default.replication.factor"), len(broker.nodes))
    return None, asked.replication_factor


def _check_assignments(broker: Broker, asked: CreateTopicsRequestCreatableTopic) -> None:
    for value, what in (
        (asked.replication_factor, "replication factor"),
        (asked.num_partitions, "numPartitions"),
    ):
        if value != -1:
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
    seen: dict[int, None] = {}
    factor = len(asked.assignments[0].broker_ids)
    for assignment in asked.assignments:
        index = assignment.partition_index
        if index in seen:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_replicas(broker, assignment.broker_ids, factor)
        seen[index] = None
    if sorted(seen) != list(range(len(seen))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )


def check_replicas(broker: Broker, replicas: Sequence[int], factor: int | None = None) -> None:
    """Whether a partition may be placed on these brokers. Raises ``Refused``.

    ``factor`` is how many replicas the partitions before it have.
    """
    if not replicas:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        )
    for position, replica in enumerate(sorted(replicas)):
        if broker.nodes.get(replica) is None:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {replica}, but no such broker "
                "is registered.",
            )
        if position and replica == sorted(replicas)[position - 1]:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes the broker {replica} more than once.",
            )
    if factor is not None and len(replicas) != factor:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{factor} replica(s).",
        )


def _created(broker: Broker, topic: Topic, factor: int) -> CreateTopicsResponseCreatableTopicResult:
    return CreateTopicsResponseCreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=topic.partitions,
        replication_factor=factor,
        configs=tuple(
            CreateTopicsResponseCreatableTopicConfigs(
                name=config.name,
                value=config.value,
                read_only=False,
                config_source=config.source,
                is_sensitive=False,
            )
            for config in described_topic(broker.config, topic, as_given=True)
        ),
    )

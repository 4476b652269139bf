"""What administrators ask for: topics made, grown, deleted and looked at, settings read and
changed; most of it refusable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kip848_client.core.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopicRequest,
)
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsAssignment,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
)
from tests.differential._group_configs import ALTER_OPERATIONS
from tests.differential._sequence_state import ABSENT_TOPIC, SequenceState
from tests.differential._steps import Ask

__all__ = ["ADMIN", "AdminModel"]

_TOPIC: Final = 2
_BROKER: Final = 4
_LOGGER: Final = 8
_TIMEOUT_MS: Final = 10_000
_EXCESSIVE: Final = 20_000
"""More partitions at a time than Kafka 4.4 allows."""
_SETTINGS: Final = {
    "cleanup.policy": (
        "compact",
        "delete",
        "compact,delete",
        "none",
        "",
        "compact,",
        "delete,delete",
    ),
    "leader.replication.throttled.replicas": ("0:1", "*", "*,*", "0:1,1:1", "x", ""),
    "preallocate": ("TRUE", "no"),
    "min.cleanable.dirty.ratio": ("0.50", "1e3", "x"),
    "retention.ms": ("1000", "-1", "-2", "soon"),
    "segment.bytes": ("1048576", "13", "-1"),
    "max.message.bytes": ("1000", "-5"),
    "min.insync.replicas": ("1", "0", "2"),
    "compression.type": ("gzip", "zstd", "lzw"),
    "message.timestamp.type": ("LogAppendTime", "CreateTime", "Never"),
    "no.such.setting": ("1",),
    "flush.messages": ("5", "0"),
}


@dataclass(slots=True)
class AdminModel:
    """The sequence's topics, by name: id and partitions; and the ids of those that are gone."""

    topics: dict[str, tuple[bytes, int]] = field(default_factory=dict[str, tuple[bytes, int]])
    gone: list[bytes] = field(default_factory=list[bytes])
    names: int = 0


AdminChooser = Callable[[SequenceState, AdminModel], Ask]


def _name(state: SequenceState, model: AdminModel) -> str:
    """A topic's name: one that exists, mostly."""
    rng = state.rng
    if model.topics and rng.random() < 0.85:
        return rng.choice(sorted(model.topics))
    return rng.choice([ABSENT_TOPIC, f"{state.prefix}-topic-0"])


def _configs(state: SequenceState) -> tuple[CreateTopicsRequestCreatableTopicConfig, ...]:
    rng = state.rng
    if rng.random() < 0.6:
        return ()
    names = rng.sample(list(_SETTINGS), rng.choice([1, 1, 2]))
    return tuple(
        CreateTopicsRequestCreatableTopicConfig(
            name=name, value=rng.choice([*_SETTINGS[name], None])
        )
        for name in names
    )


def create_topics(state: SequenceState, model: AdminModel) -> Ask:
    rng = state.rng
    wanted: list[CreateTopicsRequestCreatableTopic] = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        model.names += 1
        name = f"{state.prefix}-topic-{model.names}"
        if rng.random() < 0.2:
            name = rng.choice(
                ["", ".", "..", "a b", "x" * 250, "__consumer_offsets", *model.topics]
            )
        topic = CreateTopicsRequestCreatableTopic(
            name=name,
            num_partitions=rng.choice([1, 2, 3, -1, 0, -7]),
            replication_factor=rng.choice([1, 1, 1, -1, 2, 0, -4]),
            configs=_configs(state),
        )
        if rng.random() < 0.15:
            topic.num_partitions, topic.replication_factor = rng.choice([(-1, -1), (1, 1)])
            topic.assignments = tuple(
                CreateTopicsRequestCreatableReplicaAssignment(
                    partition_index=number, broker_ids=rng.choice([(1,), (1,), (7,), (), (1, 1)])
                )
                for number in rng.choice([(0,), (0, 1), (1, 2), (0, 0)])
            )
        wanted.append(topic)
    message = CreateTopicsRequest(topics=tuple(wanted), timeout_ms=_TIMEOUT_MS)
    message.validate_only = rng.random() < 0.15
    _, high = state.offered["CreateTopics"]  # older versions do not say which id a topic has got
    return state.ask("create-topics", message, None if message.validate_only else high)


def create_partitions(state: SequenceState, model: AdminModel) -> Ask:
    rng = state.rng
    name = _name(state, model)
    more = rng.choice([1, 1, 2, 0, -1, _EXCESSIVE])
    count = model.topics.get(name, (b"", 1))[1] + more
    assignments = None
    if rng.random() < 0.2:
        assignments = tuple(
            CreatePartitionsRequestCreatePartitionsAssignment(broker_ids=each)
            for each in rng.choice([((1,),), ((7,),), ((1,), (1,)), ((),)])
        )
    topic = CreatePartitionsRequestCreatePartitionsTopic(
        name=name, count=count, assignments=assignments
    )
    topics = (topic,) if rng.random() < 0.95 else (topic, topic)
    only_asked = rng.random() < 0.2
    message = CreatePartitionsRequest(
        topics=topics,
        timeout_ms=_TIMEOUT_MS,
        # before 4.4 a broker would really make them, and do nothing else for a minute
        validate_only=only_asked or more == _EXCESSIVE,
    )
    return state.ask("create-partitions", message)


def delete_topics(state: SequenceState, model: AdminModel) -> Ask:
    rng = state.rng
    version = state.version("DeleteTopics")
    name = _name(state, model)
    if version < 6:
        message = DeleteTopicsRequest(topic_names=(name,), timeout_ms=_TIMEOUT_MS)
    else:
        wanted = DeleteTopicsRequestDeleteTopicState(name=name)
        if rng.random() < 0.4:
            topic_id = model.topics.get(name, (b"\x09" * 16, 0))[0]
            wanted = DeleteTopicsRequestDeleteTopicState(
                name=None, topic_id=rng.choice([topic_id, *model.gone])
            )
        message = DeleteTopicsRequest(topics=(wanted,), timeout_ms=_TIMEOUT_MS)
    return state.ask("delete-topics", message, version)


def describe_configs(state: SequenceState, model: AdminModel) -> Ask:
    rng = state.rng
    kind = rng.choice([_TOPIC, _TOPIC, _TOPIC, _BROKER, 0, 99])
    names = {_TOPIC: _name(state, model), _BROKER: rng.choice(["1", "", "7", "x"])}
    keys = tuple(rng.sample(list(_SETTINGS), 3))
    if kind == _BROKER:  # all of them would show where the broker is
        keys = ("group.consumer.max.size", "log.retention.ms", "num.partitions", "no.such.setting")
    resource = DescribeConfigsRequestDescribeConfigsResource(
        resource_type=kind,
        resource_name=names.get(kind, "x"),
        configuration_keys=None if kind == _TOPIC and rng.random() < 0.4 else keys,
    )
    message = DescribeConfigsRequest(resources=(resource,), include_synonyms=rng.random() < 0.5)
    return state.ask("describe-configs", message)


def alter_configs(state: SequenceState, model: AdminModel) -> Ask:
    rng = state.rng
    kind = rng.choice([_TOPIC, _TOPIC, _TOPIC, _TOPIC, 0, 99])
    chosen = rng.sample(list(_SETTINGS), rng.choice([1, 1, 2]))
    if rng.random() < 0.05:
        chosen.append(chosen[0])
    changes = tuple(
        IncrementalAlterConfigsRequestAlterableConfig(
            name=name,
            config_operation=rng.choice([*ALTER_OPERATIONS, 9]),
            value=rng.choice([*_SETTINGS[name], None]),
        )
        for name in chosen
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=_name(state, model), configs=changes
    )
    message = IncrementalAlterConfigsRequest(
        resources=(resource,), validate_only=rng.random() < 0.15
    )
    return state.ask("alter-configs", message)


def metadata(state: SequenceState, model: AdminModel) -> Ask:
    rng = state.rng
    version = max(4, state.version("Metadata"))  # before 4 it would create what does not exist
    name = _name(state, model)
    topic = MetadataRequestTopic(name=name)
    if version >= 12 and rng.random() < 0.4:
        topic_id = model.topics.get(name, (b"\x09" * 16, 0))[0]
        topic = MetadataRequestTopic(name=None, topic_id=rng.choice([topic_id, *model.gone]))
    fields: dict[str, Any] = {"topics": (topic,), "allow_auto_topic_creation": False}
    if version >= 8:
        fields["include_topic_authorized_operations"] = rng.random() < 0.3
    return state.ask("metadata", MetadataRequest(**fields), version)


def topic_partitions(state: SequenceState, model: AdminModel) -> Ask:
    rng = state.rng
    names = {_name(state, model) for _ in range(rng.choice([1, 2]))}
    message = DescribeTopicPartitionsRequest(
        topics=tuple(
            DescribeTopicPartitionsRequestTopicRequest(name=name) for name in sorted(names)
        ),
        response_partition_limit=rng.choice([2000, 1, 2]),
    )
    return state.ask("topic-partitions", message)


ADMIN: Final[tuple[tuple[float, AdminChooser], ...]] = (
    (6, create_topics),
    (3, create_partitions),
    (2, delete_topics),
    (4, describe_configs),
    (4, alter_configs),
    (3, metadata),
    (1.5, topic_partitions),
)
"""(weight, chooser)."""

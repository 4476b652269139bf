"""Topics and settings between an admin's terms and the wire's: pure translation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kip848_client._types import format_topic_id
from kip848_client.admin._model import (
    ConfigEntry,
    ConfigSource,
    NewTopic,
    PartitionDescription,
    TopicDescription,
)
from kip848_client.admin._rounds import Refusal, refusal, refusal_if_any
from kip848_client.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from kip848_client.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kip848_client.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
    DeleteTopicsResponse,
)

__all__ = [
    "GROUP",
    "TOPIC",
    "alter_configs_request",
    "altered_configs",
    "created",
    "creation_request",
    "deleted",
    "deletion_request",
    "describe_configs_request",
    "described_configs",
    "described_topic",
    "described_topics",
    "grown",
    "growth_request",
    "topics_request",
]

TOPIC: Final = 2
GROUP: Final = 32
"""Kafka's numbers for what has settings."""

_DEFAULT: Final = -1
_SET: Final = 0
_DELETE: Final = 1
_NO_LEADER: Final = -1


def topics_request(topics: Iterable[str] | None) -> MetadataRequest:
    """Ask for these topics, or for all; nothing is created by that."""
    return MetadataRequest(
        topics=None
        if topics is None
        else tuple(MetadataRequestTopic(name=each) for each in topics),
        allow_auto_topic_creation=False,
    )


def described_topics(answer: MetadataResponse) -> dict[str, TopicDescription | Refusal]:
    """Topics by name."""
    return {
        each.name: (
            refusal(each.error_code, None, "Metadata")
            if each.error_code
            else described_topic(each.name, each)
        )
        for each in answer.topics
        if each.name is not None
    }


def described_topic(name: str, topic: MetadataResponseTopic) -> TopicDescription:
    """A topic. (A partition's own error is that it has no leader, or lacks replicas.)"""
    return TopicDescription(
        name=name,
        topic_id=format_topic_id(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(
            PartitionDescription(
                partition=each.partition_index,
                leader=None if each.leader_id == _NO_LEADER else each.leader_id,
                leader_epoch=each.leader_epoch,
                replicas=each.replica_nodes,
                in_sync_replicas=each.isr_nodes,
                offline_replicas=each.offline_replicas,
            )
            for each in sorted(topic.partitions, key=lambda each: each.partition_index)
        ),
    )


def creation_request(
    topics: Iterable[NewTopic], timeout_ms: int, *, validate_only: bool
) -> CreateTopicsRequest:
    """Create topics."""
    return CreateTopicsRequest(
        topics=tuple(
            CreateTopicsRequestCreatableTopic(
                name=each.name,
                num_partitions=_DEFAULT if each.partitions is None else each.partitions,
                replication_factor=(
                    _DEFAULT if each.replication_factor is None else each.replication_factor
                ),
                configs=tuple(
                    CreateTopicsRequestCreatableTopicConfig(name=name, value=value)
                    for name, value in each.configs
                ),
            )
            for each in topics
        ),
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def created(answer: CreateTopicsResponse) -> dict[str, Refusal | None]:
    """``None`` for each topic that is there now."""
    return {
        each.name: refusal_if_any(each.error_code, each.error_message, "CreateTopics")
        for each in answer.topics
    }


def deletion_request(topics: Iterable[str], timeout_ms: int) -> DeleteTopicsRequest:
    """Delete topics by name (version 6)."""
    return DeleteTopicsRequest(
        topics=tuple(DeleteTopicsRequestDeleteTopicState(name=each) for each in topics),
        timeout_ms=timeout_ms,
    )


def deleted(answer: DeleteTopicsResponse) -> dict[str, Refusal | None]:
    """``None`` for each topic that is gone."""
    return {
        each.name: refusal_if_any(each.error_code, each.error_message, "DeleteTopics")
        for each in answer.responses
        if each.name is not None
    }


def growth_request(
    counts: Mapping[str, int], timeout_ms: int, *, validate_only: bool
) -> CreatePartitionsRequest:
    """Let topics have so many partitions."""
    return CreatePartitionsRequest(
        topics=tuple(
            CreatePartitionsRequestCreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in counts.items()
        ),
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def grown(answer: CreatePartitionsResponse) -> dict[str, Refusal | None]:
    """``None`` for each topic that has them."""
    return {
        each.name: refusal_if_any(each.error_code, each.error_message, "CreatePartitions")
        for each in answer.results
    }


def describe_configs_request(kind: int, names: Iterable[str]) -> DescribeConfigsRequest:
    """Ask for all settings of these topics or groups."""
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsRequestDescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for name in names
        ),
    )


def described_configs(
    answer: DescribeConfigsResponse,
) -> dict[str, tuple[ConfigEntry, ...] | Refusal]:
    """The settings of each, by name."""
    return {
        each.resource_name: (
            refusal(each.error_code, each.error_message, "DescribeConfigs")
            if each.error_code
            else tuple(
                ConfigEntry(
                    name=entry.name,
                    value=entry.value,
                    source=ConfigSource(entry.config_source),
                    is_read_only=entry.read_only,
                    is_sensitive=entry.is_sensitive,
                )
                for entry in sorted(each.configs, key=lambda entry: entry.name)
            )
        )
        for each in answer.results
    }


def alter_configs_request(
    kind: int, changes: Mapping[str, Mapping[str, str | None]], *, validate_only: bool
) -> IncrementalAlterConfigsRequest:
    """Set settings, or, where the value is ``None``, give them back to their default."""
    return IncrementalAlterConfigsRequest(
        resources=tuple(
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    IncrementalAlterConfigsRequestAlterableConfig(
                        name=key,
                        config_operation=_DELETE if value is None else _SET,
                        value=value,
                    )
                    for key, value in settings.items()
                ),
            )
            for name, settings in changes.items()
        ),
        validate_only=validate_only,
    )


def altered_configs(answer: IncrementalAlterConfigsResponse) -> dict[str, Refusal | None]:
    """``None`` for each whose settings are changed."""
    return {
        each.resource_name: refusal_if_any(
            each.error_code, each.error_message, "IncrementalAlterConfigs"
        )
        for each in answer.responses
    }

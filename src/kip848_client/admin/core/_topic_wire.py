"""Translation of topics and settings between the admin's types and messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kip848_client.admin.core._model import (
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    NewTopic,
    PartitionDescription,
    TopicDescription,
)
from kip848_client.admin.core._retry_rounds import Refusal, refusal_if_any
from kip848_client.core.types import format_topic_id
from kip848_client.core.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestTopicRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
)
from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition as _Partition,
)
from kip848_client.core.wire.messages.topics import (
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
from kip848_client.errors import refusal

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
    "described_topics",
    "grown",
    "growth_request",
    "page_request",
    "topics_request",
]

TOPIC: Final = 2
GROUP: Final = 32
"""Kafka's resource types of settings."""

_DEFAULT: Final = -1
_SET: Final = 0
_DELETE: Final = 1
_NO_LEADER: Final = -1


def topics_request() -> MetadataRequest:
    """Build the request for all topics."""
    return MetadataRequest(topics=None, allow_auto_topic_creation=False)


def page_request(
    topics: Iterable[str], cursor: DescribeTopicPartitionsResponseCursor | None
) -> DescribeTopicPartitionsRequest:
    """Build the request for these topics, starting where the previous page ended."""
    return DescribeTopicPartitionsRequest(
        topics=tuple(DescribeTopicPartitionsRequestTopicRequest(name=each) for each in topics),
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequestCursor(
            topic_name=cursor.topic_name, partition_index=cursor.partition_index
        ),
    )


def described_topics(
    pages: Iterable[DescribeTopicPartitionsResponse],
) -> dict[str, TopicDescription | Refusal]:
    """Return topics by name; a topic may be on several pages. (A partition's own error means that
    it has no leader, or lacks replicas.)"""
    found: dict[str, TopicDescription | Refusal] = {}
    for each in (topic for page in pages for topic in page.topics):
        if each.name is None:
            continue
        if each.error_code:
            found[each.name] = refusal(each.error_code, None, "DescribeTopicPartitions")
            continue
        begun = found.get(each.name)
        before = begun.partitions if isinstance(begun, TopicDescription) else ()
        added = sorted(each.partitions, key=lambda one: one.partition_index)
        found[each.name] = TopicDescription(
            name=each.name,
            topic_id=format_topic_id(each.topic_id),
            is_internal=each.is_internal,
            partitions=(*before, *map(_partition, added)),
        )
    return found


def _partition(each: _Partition) -> PartitionDescription:
    return PartitionDescription(
        partition=each.partition_index,
        leader=None if each.leader_id == _NO_LEADER else each.leader_id,
        leader_epoch=each.leader_epoch,
        replicas=each.replica_nodes,
        in_sync_replicas=each.isr_nodes,
        offline_replicas=each.offline_replicas,
        eligible_leader_replicas=each.eligible_leader_replicas,
        last_known_eligible_leader_replicas=each.last_known_elr,
    )


def creation_request(
    topics: Iterable[NewTopic], timeout_ms: int, *, validate_only: bool
) -> CreateTopicsRequest:
    """Build the request to create topics."""
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
    """Return ``None`` per created topic, or the refusal."""
    return {
        each.name: refusal_if_any(each.error_code, each.error_message, "CreateTopics")
        for each in answer.topics
    }


def deletion_request(topics: Iterable[str], timeout_ms: int) -> DeleteTopicsRequest:
    """Build the request to delete topics by name (version 6)."""
    return DeleteTopicsRequest(
        topics=tuple(DeleteTopicsRequestDeleteTopicState(name=each) for each in topics),
        timeout_ms=timeout_ms,
    )


def deleted(answer: DeleteTopicsResponse) -> dict[str, Refusal | None]:
    """Return ``None`` per deleted topic, or the refusal."""
    return {
        each.name: refusal_if_any(each.error_code, each.error_message, "DeleteTopics")
        for each in answer.responses
        if each.name is not None
    }


def growth_request(
    counts: Mapping[str, int], timeout_ms: int, *, validate_only: bool
) -> CreatePartitionsRequest:
    """Build the request to set the number of partitions."""
    return CreatePartitionsRequest(
        topics=tuple(
            CreatePartitionsRequestCreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in counts.items()
        ),
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def grown(answer: CreatePartitionsResponse) -> dict[str, Refusal | None]:
    """Return ``None`` per changed topic, or the refusal."""
    return {
        each.name: refusal_if_any(each.error_code, each.error_message, "CreatePartitions")
        for each in answer.results
    }


def describe_configs_request(kind: int, names: Iterable[str]) -> DescribeConfigsRequest:
    """Build the request for all settings of these topics or groups."""
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsRequestDescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for name in names
        ),
        include_synonyms=True,
    )


def described_configs(
    answer: DescribeConfigsResponse,
) -> dict[str, tuple[ConfigEntry, ...] | Refusal]:
    """Return the settings by topic or group."""
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
                    synonyms=tuple(
                        ConfigSynonym(each.name, each.value, ConfigSource(each.source))
                        for each in entry.synonyms
                    ),
                )
                for entry in sorted(each.configs, key=lambda entry: entry.name)
            )
        )
        for each in answer.results
    }


def alter_configs_request(
    kind: int, changes: Mapping[str, Mapping[str, str | None]], *, validate_only: bool
) -> IncrementalAlterConfigsRequest:
    """Build the request to set settings, or to restore the default if the value is ``None``."""
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
    """Return ``None`` per changed topic or group, or the refusal."""
    return {
        each.resource_name: refusal_if_any(
            each.error_code, each.error_message, "IncrementalAlterConfigs"
        )
        for each in answer.responses
    }

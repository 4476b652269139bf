"""Rules for changes of topics: CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.types import ZERO_TOPIC_ID
from kip848_client.core.wire.messages.delete_records import (
    DeleteRecordsResponseDeleteRecordsPartitionResult,
    DeleteRecordsResponseDeleteRecordsTopicResult,
)
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsResponseCreatePartitionsTopicResult,
    CreateTopicsResponseCreatableTopicResult,
    DeleteTopicsResponseDeletableTopicResult,
)
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.authorization.requester import (
    Admission,
    Admitted,
    Requester,
    admitted_in_part,
    divided,
)
from mock_coordinator.core.security.acls import Operation

__all__ = [
    "admit_create_partitions",
    "admit_create_topics",
    "admit_delete_records",
    "admit_delete_topics",
]

_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_TOPIC_STATES_SINCE: Final = 6
_CONFIGS_SINCE: Final = 5
_METADATA_TOPIC: Final = "__cluster_metadata"


def _repeated(names: Iterable[str]) -> frozenset[str]:
    seen: set[str] = set()
    twice: set[str] = set()
    for name in names:
        (twice if name in seen else seen).add(name)
    return frozenset(twice)


def admit_create_topics(requester: Requester, request: Any) -> Admission:
    """CREATE on the cluster or the topic. Settings are shown with DESCRIBE_CONFIGS only. Names
    that come twice are refused before anything else."""
    twice = _repeated(topic.name for topic in request.topics)
    may_all = requester.may_cluster(Operation.CREATE)

    def held_back(topic: Any) -> bool:
        if may_all or topic.name in twice or topic.name == _METADATA_TOPIC:
            return False
        return not requester.may_topic(Operation.CREATE, topic.name)

    denied = [
        CreateTopicsResponseCreatableTopicResult(
            name=topic.name, error_code=_DENIED, error_message="Authorization failed."
        )
        for topic in request.topics
        if held_back(topic)
    ]

    def complete(response: Any) -> Any:
        for result in response.topics:
            if result.error_code or requester.version < _CONFIGS_SINCE:
                continue
            if not requester.may_topic(Operation.DESCRIBE_CONFIGS, result.name):
                result.topic_config_error_code = _DENIED
                result.num_partitions = result.replication_factor = -1
                result.configs = ()
        return replace(response, topics=(*response.topics, *denied))

    kept = tuple(topic for topic in request.topics if not held_back(topic))
    return Admitted(replace(request, topics=kept), complete)


def admit_delete_topics(requester: Requester, request: Any) -> Admission:
    """DESCRIBE to learn whether the topic exists, DELETE to delete it."""
    if requester.version < _TOPIC_STATES_SINCE:
        return _delete_by_name(requester, request)
    entries = [(topic.name, bytes(topic.topic_id)) for topic in request.topics]
    known = {entry: _entry_name(requester, entry) for entry in entries}
    twice = _repeated(name for name in known.values() if name is not None)
    denied: list[DeleteTopicsResponseDeletableTopicResult] = []
    kept: list[Any] = []
    for topic, entry in zip(request.topics, entries, strict=True):
        name = known[entry]
        if name is None or name in twice or len(entries) != len(known):
            kept.append(topic)
            continue
        by_id = entry[1] != ZERO_TOPIC_ID
        if not requester.may_topic(Operation.DESCRIBE, name):
            denied.append(_not_deleted(None if by_id else name, entry[1]))
        elif _may_delete(requester, name):
            kept.append(topic)
        else:
            denied.append(_not_deleted(name, entry[1]))
    return admitted_in_part(request, "topics", kept, "responses", denied)


def _delete_by_name(requester: Requester, request: Any) -> Admission:
    names = request.topic_names
    twice = _repeated(names)
    denied = tuple(
        _not_deleted(name, ZERO_TOPIC_ID)
        for name in names
        if name not in twice
        and not (requester.may_topic(Operation.DESCRIBE, name) and _may_delete(requester, name))
    )
    refused = {result.name for result in denied}
    kept = tuple(name for name in names if name not in refused)
    return admitted_in_part(request, "topic_names", kept, "responses", denied)


def _may_delete(requester: Requester, name: str) -> bool:
    """A principal that may describe a topic gets the error that it does not exist."""
    if requester.broker.catalog.topic(name) is None:
        return True
    return requester.may_topic(Operation.DELETE, name)


def _entry_name(requester: Requester, entry: tuple[str | None, bytes]) -> str | None:
    name, topic_id = entry
    return requester.name_of(topic_id) if topic_id != ZERO_TOPIC_ID else name


def _not_deleted(name: str | None, topic_id: bytes) -> DeleteTopicsResponseDeletableTopicResult:
    return DeleteTopicsResponseDeletableTopicResult(
        name=name, topic_id=topic_id, error_code=_DENIED, error_message=default_message(_DENIED)
    )


def admit_create_partitions(requester: Requester, request: Any) -> Admission:
    """ALTER on the topic; names that come twice are refused before."""
    twice = _repeated(topic.name for topic in request.topics)
    denied = tuple(
        CreatePartitionsResponseCreatePartitionsTopicResult(
            name=topic.name, error_code=_DENIED, error_message=None
        )
        for topic in request.topics
        if topic.name not in twice and not requester.may_topic(Operation.ALTER, topic.name)
    )
    refused = {result.name for result in denied}
    kept = tuple(topic for topic in request.topics if topic.name not in refused)
    return admitted_in_part(request, "topics", kept, "results", denied)


def admit_delete_records(requester: Requester, request: Any) -> Admission:
    """DELETE on the topic."""
    kept, refused = divided(
        request.topics, lambda topic: requester.may_topic(Operation.DELETE, topic.name)
    )
    denied = tuple(
        DeleteRecordsResponseDeleteRecordsTopicResult(
            name=topic.name,
            partitions=tuple(
                DeleteRecordsResponseDeleteRecordsPartitionResult(
                    partition_index=partition.partition_index,
                    low_watermark=-1,
                    error_code=_DENIED,
                )
                for partition in topic.partitions
            ),
        )
        for topic in refused
    )
    return admitted_in_part(request, "topics", kept, "topics", denied)

"""Creating, enlarging and deleting topics by requests, on whatever answers them."""

from __future__ import annotations

from collections.abc import Mapping

from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
)
from tests.support.wire_connection import Requester

__all__ = ["create_topic", "delete_topic", "grow_topic"]

_TIMEOUT_MS = 10_000


def create_topic(
    target: Requester, name: str, partitions: int, configs: Mapping[str, str]
) -> TopicId:
    """Returns the id that the topic got."""
    topic = CreateTopicsRequestCreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=tuple(
            CreateTopicsRequestCreatableTopicConfig(name=key, value=value)
            for key, value in configs.items()
        ),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)
    answer = target.request(request, 7).topics[0]
    assert answer.error_code == 0, answer
    return TopicId(answer.topic_id)


def grow_topic(target: Requester, name: str, partitions: int) -> None:
    topic = CreatePartitionsRequestCreatePartitionsTopic(
        name=name, count=partitions, assignments=None
    )
    request = CreatePartitionsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)
    answer = target.request(request, 3).results[0]
    assert answer.error_code == 0, answer


def delete_topic(target: Requester, name: str) -> None:
    topic = DeleteTopicsRequestDeleteTopicState(name=name)
    request = DeleteTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)
    answer = target.request(request, 6).responses[0]
    assert answer.error_code == 0, answer

"""Translates metadata between the cores' types and wire messages. Pure.

Every driver of a core that knows leaders uses it. Nothing here raises, whatever a broker answers:
empty parts are left out, or passed to the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kip848_client.core.cluster._commands import LearnLeaders
from kip848_client.core.cluster._events import LeadersLearnt
from kip848_client.core.cluster._model import NO_NODE, PartitionLeader, TopicLeaders
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId
from kip848_client.core.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kip848_client.error_codes import ErrorCode

__all__ = [
    "METADATA_VERSIONS",
    "leaders_learnt",
    "learnt_together",
    "metadata_request",
    "questions_of",
]

METADATA_VERSIONS: Final = (12, 13)
"""From 12 on, topics can be requested by id alone."""


def questions_of(command: LearnLeaders) -> tuple[LearnLeaders, ...]:
    """The command split into separate requests. A broker that finds an id in a request ignores the
    names in it; topics that may be created are requested separately, so that no others are
    created."""
    nothing: frozenset[str] = frozenset()
    by_id = replace(command, topics=nothing, to_create=nothing)
    by_name = replace(
        command,
        topic_ids=frozenset(),
        topics=command.topics - command.to_create,
        to_create=nothing,
    )
    creating = replace(command, topic_ids=frozenset(), topics=command.to_create)
    questions = [each for each in (by_id, by_name, creating) if each.topic_ids or each.topics]
    return tuple(questions) or (by_name,)


def metadata_request(command: LearnLeaders) -> MetadataRequest:
    """The Metadata request (v12 or v13) for these topics. It creates none, unless all of them may
    be created."""
    by_id = [MetadataRequestTopic(topic_id=each, name=None) for each in sorted(command.topic_ids)]
    by_name = [
        MetadataRequestTopic(topic_id=ZERO_TOPIC_ID, name=each) for each in sorted(command.topics)
    ]
    creates = bool(command.topics) and command.topics == command.to_create
    return MetadataRequest(topics=(*by_id, *by_name), allow_auto_topic_creation=creates)


def leaders_learnt(
    response: MetadataResponse, command: LearnLeaders | None = None
) -> LeadersLearnt:
    """The leaders in a Metadata response (v10 or newer). ``command``: the request it answers;
    ``None`` for a request of another part of the client.

    A topic requested by id may come without its name, if it does not exist or access is denied.
    """
    asked = frozenset() if command is None else command.topic_ids
    return LeadersLearnt(
        0 if command is None else command.number,
        tuple(_topic(each) for each in response.topics),
        frozenset(
            TopicId(each.topic_id)
            for each in response.topics
            if each.error_code == ErrorCode.UNKNOWN_TOPIC_ID and each.topic_id in asked
        ),
        frozenset(broker.node_id for broker in response.brokers),
    )


def learnt_together(number: int, answers: Sequence[LeadersLearnt]) -> LeadersLearnt:
    """The answers to all ``questions_of`` a command as one. There is at least one."""
    return LeadersLearnt(
        number,
        tuple(topic for each in answers for topic in each.topics),
        frozenset().union(*(each.gone for each in answers)),
        answers[-1].nodes,
    )


def _topic(told: MetadataResponseTopic) -> TopicLeaders:
    return TopicLeaders(
        told.name or "",
        TopicId(told.topic_id),
        {
            each.partition_index: PartitionLeader(
                max(each.leader_id, NO_NODE), each.leader_epoch, each.isr_nodes
            )
            for each in told.partitions
        },
        told.error_code,
    )

"""Metadata between the cores' terms and the wire's: pure translation.

Every driver of a core that knows leaders translates through here. Nothing in here raises, whatever
a broker answers: what says nothing is left out, or is the core's to judge.
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
"""From 12 on topics can be asked for by id alone."""


def questions_of(command: LearnLeaders) -> tuple[LearnLeaders, ...]:
    """What to ask, in a request each: a broker that finds an id in a request does not look at the
    names in it, and what may be created is asked for apart, so that nothing else is."""
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
    """The Metadata request (v12 or v13) that asks for these topics. It creates none, unless all of
    them may be created."""
    by_id = [MetadataRequestTopic(topic_id=each, name=None) for each in sorted(command.topic_ids)]
    by_name = [
        MetadataRequestTopic(topic_id=ZERO_TOPIC_ID, name=each) for each in sorted(command.topics)
    ]
    creates = bool(command.topics) and command.topics == command.to_create
    return MetadataRequest(topics=(*by_id, *by_name), allow_auto_topic_creation=creates)


def leaders_learnt(
    response: MetadataResponse, command: LearnLeaders | None = None
) -> LeadersLearnt:
    """What a Metadata response (v10 or newer) says of leaders. ``command`` asked for it; ``None``:
    somebody else did.

    A topic that was asked for by id may come without its name, when it is not there or not for us.
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
    """The answers to all ``questions_of`` a command as one; there is at least one."""
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

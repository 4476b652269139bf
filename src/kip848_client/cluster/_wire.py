"""Metadata between the cores' terms and the wire's: pure translation.

Every driver of a core that knows leaders translates through here. Nothing in here raises, whatever
a broker answers: what says nothing is left out, or is the core's to judge.
"""

from __future__ import annotations

from typing import Final

from kip848_client._types import ZERO_TOPIC_ID, TopicId
from kip848_client.cluster._commands import LearnLeaders
from kip848_client.cluster._events import LeadersLearnt
from kip848_client.cluster._model import NO_NODE, PartitionLeader, TopicLeaders
from kip848_client.error_codes import ErrorCode
from kip848_client.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

__all__ = ["METADATA_VERSIONS", "leaders_learnt", "metadata_request"]

METADATA_VERSIONS: Final = (12, 13)
"""From 12 on topics can be asked for by id alone."""


def metadata_request(command: LearnLeaders) -> MetadataRequest:
    """The Metadata request (v12 or v13) that asks for these topics. It creates none: a topic that
    was deleted would come back by our asking."""
    by_id = [MetadataRequestTopic(topic_id=each, name=None) for each in sorted(command.topic_ids)]
    by_name = [
        MetadataRequestTopic(topic_id=ZERO_TOPIC_ID, name=each) for each in sorted(command.topics)
    ]
    return MetadataRequest(topics=(*by_id, *by_name), allow_auto_topic_creation=False)


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

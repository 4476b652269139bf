"""Prepare and Install between the group core's terms and the wire's: pure translation, both ways
(docs/reference/draft-protocols.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kip848_client.core.client_assignors import (
    AssignorMetadata,
    GroupMember,
    GroupTopic,
    PreparedGroup,
)
from kip848_client.core.group import (
    AssignmentInstalled,
    AssignmentPrepared,
    InstallAssignment,
    PrepareAssignment,
)
from kip848_client.core.types import GroupId, MemberId, TopicId, TopicPartition
from kip848_client.core.wire.messages.client_assignors import (
    AssignmentTopicPartitions,
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentRequestMember,
    ConsumerGroupInstallAssignmentResponse,
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
    ConsumerGroupPrepareAssignmentResponseMember,
)
from kip848_client.core.wire.messages.metadata import MetadataResponse
from kip848_client.errors import refusal

__all__ = [
    "install_outcome",
    "install_request",
    "prepare_outcome",
    "prepare_request",
    "topic_partitions",
    "with_racks",
]

_INSTALL: Final = "ConsumerGroupInstallAssignment"
_PREPARE: Final = "ConsumerGroupPrepareAssignment"


def prepare_request(
    group_id: GroupId, member_id: MemberId, command: PrepareAssignment
) -> ConsumerGroupPrepareAssignmentRequest:
    """Build the request for the command."""
    return ConsumerGroupPrepareAssignmentRequest(
        group_id=group_id, member_id=member_id, member_epoch=command.member_epoch
    )


def prepare_outcome(
    number: int, response: ConsumerGroupPrepareAssignmentResponse
) -> AssignmentPrepared:
    """Translate the response: the group by topic names, or the refusal. Topics that no longer exist
    are left out."""
    if response.error_code != 0:
        refused = refusal(response.error_code, response.error_message, _PREPARE)
        return AssignmentPrepared(number, refusal=refused)
    names = {TopicId(each.topic_id): each.topic_name for each in response.topics}
    topics = {
        each.topic_name: GroupTopic(TopicId(each.topic_id), each.num_partitions)
        for each in response.topics
    }
    members = {each.member_id: _member(each, names) for each in response.members}
    group = PreparedGroup(response.group_epoch, response.assignor_name, members, topics)
    return AssignmentPrepared(number, group)


def with_racks(group: PreparedGroup, metadata: MetadataResponse) -> PreparedGroup:
    """Return the group with the racks of replicas from metadata."""
    rack_of = {each.node_id: each.rack for each in metadata.brokers}
    racks: dict[TopicId, dict[int, frozenset[str]]] = {}
    for topic in metadata.topics:
        racks[TopicId(topic.topic_id)] = {
            each.partition_index: frozenset(
                rack for rack in map(rack_of.get, each.replica_nodes) if rack
            )
            for each in topic.partitions
        }
    topics = {
        name: replace(topic, racks=racks.get(topic.topic_id, {}))
        for name, topic in group.topics.items()
    }
    return replace(group, topics=topics)


def _member(
    given: ConsumerGroupPrepareAssignmentResponseMember, names: Mapping[TopicId, str]
) -> GroupMember:
    subscribed = (names.get(TopicId(each)) for each in given.subscribed_topic_ids)
    said = given.assignor
    return GroupMember(
        member_epoch=given.member_epoch,
        topics=tuple(sorted(name for name in subscribed if name is not None)),
        target=topic_partitions(
            ((TopicId(each.topic_id), each.partitions) for each in given.topic_partitions), names
        ),
        metadata=AssignorMetadata(bytes(said.metadata_bytes), said.metadata_version, said.reason),
        instance_id=given.instance_id,
        rack_id=given.rack_id,
    )


def topic_partitions(
    assignment: Iterable[tuple[TopicId, tuple[int, ...]]], names: Mapping[TopicId, str]
) -> tuple[TopicPartition, ...]:
    """Return partitions by topic name, sorted; topics without a known name are left out."""
    return tuple(
        sorted(
            TopicPartition(names[topic_id], partition)
            for topic_id, partitions in assignment
            if topic_id in names
            for partition in partitions
        )
    )


def install_request(
    group_id: GroupId, member_id: MemberId, command: InstallAssignment
) -> ConsumerGroupInstallAssignmentRequest:
    """Build the request for the command."""
    return ConsumerGroupInstallAssignmentRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=command.member_epoch,
        group_epoch=command.group_epoch,
        error=command.result.error,
        members=tuple(
            ConsumerGroupInstallAssignmentRequestMember(
                member_id=row.member_id,
                partitions=tuple(
                    AssignmentTopicPartitions(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in row.partitions
                ),
                metadata_version=row.version,
                metadata_bytes=row.data,
            )
            for row in command.result.rows
        ),
    )


def install_outcome(
    number: int, response: ConsumerGroupInstallAssignmentResponse
) -> AssignmentInstalled:
    """Translate the response: installed, or the refusal."""
    if response.error_code == 0:
        return AssignmentInstalled(number)
    return AssignmentInstalled(
        number, refusal(response.error_code, response.error_message, api=_INSTALL)
    )

"""Translation of groups between the admin's types and messages. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from kip848_client.admin.core._connect_wire import classic_workers
from kip848_client.admin.core._model import (
    GROUP_TYPES,
    AssignorMessage,
    GroupDescription,
    GroupListing,
    MemberDescription,
    Node,
)
from kip848_client.admin.core._retry_rounds import Refusal, refusal_if_any
from kip848_client.core.connect import PROTOCOL_TYPE
from kip848_client.core.types import TopicPartition
from kip848_client.core.wire._codec import decode_at
from kip848_client.core.wire._fields import array, data, string
from kip848_client.core.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupDescribeResponseMember,
)
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
    ListGroupsResponse,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import WireError, refusal

__all__ = [
    "OF_ANOTHER_TYPE",
    "classic_groups",
    "consumer_groups",
    "deleted_groups",
    "listed_groups",
]

OF_ANOTHER_TYPE: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
"""The errors of a describe API for a group that may have another type."""

_CONSUMER_PROTOCOL: Final = "consumer"
_VERSION_BYTES: Final = 2
_TYPES: Final = {each.lower(): each for each in GROUP_TYPES}
"""Brokers use lower case, tools do not."""
_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


@dataclass(slots=True, kw_only=True)
class _AssignedTopic:
    topic: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class _Assignment:
    """ConsumerProtocolAssignment. All of its versions begin with these fields."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = 4

    assigned_partitions: tuple[_AssignedTopic, ...] = array(_AssignedTopic)
    user_data: bytes | None = data(default=None, nullable="0+")


def listed_groups(answer: ListGroupsResponse) -> tuple[GroupListing, ...]:
    """Return the groups of one broker."""
    return tuple(
        GroupListing(
            group_id=each.group_id,
            type=_TYPES.get(each.group_type.lower(), each.group_type),
            state=each.group_state,
            protocol_type=each.protocol_type,
        )
        for each in answer.groups
    )


def consumer_groups(
    answer: ConsumerGroupDescribeResponse, coordinator: Node
) -> dict[str, GroupDescription | Refusal]:
    """Return KIP-848 groups, or the refusals."""
    return {
        each.group_id: (
            refusal(each.error_code, each.error_message, "ConsumerGroupDescribe")
            if each.error_code
            else _consumer_group(each, coordinator)
        )
        for each in answer.groups
    }


def _consumer_group(
    group: ConsumerGroupDescribeResponseDescribedGroup, coordinator: Node
) -> GroupDescription:
    members = (_consumer_member(each, group.is_client_assignor) for each in group.members)
    return GroupDescription(
        group_id=group.group_id,
        type="Consumer",
        state=group.group_state,
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=tuple(sorted(members, key=lambda each: each.member_id)),
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.assignment_epoch,
        is_client_assignor=group.is_client_assignor,
    )


def _consumer_member(
    member: ConsumerGroupDescribeResponseMember, is_client_assignor: bool
) -> MemberDescription:
    kind = member.member_type
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_partitions(member.assignment),
        target_assignment=_partitions(member.target_assignment),
        epoch=member.member_epoch,
        rack=member.rack_id,
        subscribed_topics=tuple(sorted(member.subscribed_topic_names)),
        subscribed_pattern=member.subscribed_topic_regex or None,
        is_classic=kind == _CLASSIC_MEMBER if kind in (_CLASSIC_MEMBER, _CONSUMER_MEMBER) else None,
        said=_said(member.assignment) if is_client_assignor else None,
        target_said=_said(member.target_assignment) if is_client_assignor else None,
    )


def _said(assignment: ConsumerGroupDescribeResponseAssignment) -> AssignorMessage:
    return AssignorMessage(
        assignment.error, assignment.metadata_version, bytes(assignment.metadata_bytes)
    )


def _partitions(
    assignment: ConsumerGroupDescribeResponseAssignment,
) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )
    )


def classic_groups(
    answer: DescribeGroupsResponse, coordinator: Node
) -> dict[str, GroupDescription | Refusal]:
    """Return classic groups, or the refusals."""
    return {each.group_id: _classic_group(each, coordinator) for each in answer.groups}


def _classic_group(
    group: DescribeGroupsResponseDescribedGroup, coordinator: Node
) -> GroupDescription | Refusal:
    code, message = group.error_code, group.error_message
    if not code and group.group_state == "Dead" and not group.members:
        # Before version 6 this state meant that the group does not exist.
        code, message = ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} not found."
    if code:
        return refusal(code, message, "DescribeGroups")
    if group.protocol_type == PROTOCOL_TYPE:
        return classic_workers(group, coordinator)
    consumers = group.protocol_type == _CONSUMER_PROTOCOL
    members = (_classic_member(each, consumers) for each in group.members)
    return GroupDescription(
        group_id=group.group_id,
        type="Classic",
        state=group.group_state,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=tuple(sorted(members, key=lambda each: each.member_id)),
        protocol_type=group.protocol_type,
    )


def _classic_member(
    member: DescribeGroupsResponseDescribedGroupMember, consumers: bool
) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_classic_assignment(member.member_assignment) if consumers else (),
        is_classic=True,
    )


def _classic_assignment(raw: bytes) -> tuple[TopicPartition, ...]:
    """Parse a classic assignment. Empty if the bytes do not follow the consumer protocol: members
    may send any bytes."""
    if len(raw) <= _VERSION_BYTES:
        return ()
    try:
        found, end = decode_at(_Assignment, 0, raw, _VERSION_BYTES)
    except WireError:
        return ()
    if end > len(raw):
        return ()
    return tuple(
        sorted(
            TopicPartition(topic.topic, partition)
            for topic in found.assigned_partitions
            for partition in topic.partitions
        )
    )


def deleted_groups(answer: DeleteGroupsResponse) -> dict[str, Refusal | None]:
    """Return ``None`` per deleted group, or the refusal."""
    return {
        each.group_id: refusal_if_any(each.error_code, each.error_message, "DeleteGroups")
        for each in answer.results
    }

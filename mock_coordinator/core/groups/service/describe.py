"""ConsumerGroupDescribe (API 69) and DescribeGroups (API 15): descriptions for administrators.

DescribeGroups is for classic groups. A consumer group, or one that does not exist, is reported as
Dead: without an error up to version 5, with GROUP_ID_NOT_FOUND from version 6 on (KIP-1043).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from kip848_client.core.assignors import string_set_order
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupDescribeRequest,
    ConnectGroupDescribeResponseDescribedGroup,
)
from kip848_client.core.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupDescribeResponseMember,
    ConsumerGroupDescribeResponseTopicPartitions,
)
from kip848_client.core.wire.messages.groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.assignment.target_assignment import (
    assignor_of_target,
    client_assignor,
)
from mock_coordinator.core.groups.records.assignor_values import AssignmentMetadata
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup, GroupState
from mock_coordinator.core.groups.state.environment import Environment
from mock_coordinator.core.groups.state.errors import group_id_not_found, not_a_consumer_group
from mock_coordinator.core.groups.state.groups_state import Group
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = [
    "ALL_GROUP_OPERATIONS",
    "CLASSIC_MEMBER",
    "MODERN_MEMBER",
    "describe_classic_groups",
    "describe_consumer_groups",
    "described_groups",
]

Described = TypeVar(
    "Described",
    ConsumerGroupDescribeResponseDescribedGroup,
    ConnectGroupDescribeResponseDescribedGroup,
)

CLASSIC_MEMBER: Final = 0
MODERN_MEMBER: Final = 1
"""MemberType of a member that came through JoinGroup, and of one that heartbeats (KIP-1099)."""
_ERROR_VERSION: Final = 6

ALL_GROUP_OPERATIONS: Final = 0b1101_0100_1000
"""What everybody may do to a group without an authorizer, as bits: READ (3), DELETE (6),
DESCRIBE (8), DESCRIBE_CONFIGS (10), ALTER_CONFIGS (11)."""


def describe_consumer_groups(
    env: Environment, _received: RequestReceived, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """ConsumerGroupDescribe."""
    groups = described_groups(env, request, _described, ConsumerGroupDescribeResponseDescribedGroup)
    return ConsumerGroupDescribeResponse(groups=groups)


def described_groups(
    env: Environment,
    request: ConsumerGroupDescribeRequest | ConnectGroupDescribeRequest,
    describe: Callable[[Environment, str, Group], Described],
    kind: type[Described],
) -> tuple[Described, ...]:
    """Refusals are answers per group, and ids that are empty come first."""
    groups: list[Described] = []
    for group_id in sorted(request.group_ids, key=bool):
        try:
            described = describe(env, group_id, _found(env, group_id))
        except Refused as err:
            described = kind(group_id=group_id, error_code=err.code, error_message=err.message)
        else:
            if request.include_authorized_operations:
                described.authorized_operations = ALL_GROUP_OPERATIONS
        groups.append(described)
    return tuple(groups)


def _found(env: Environment, group_id: str) -> Group:
    if not group_id:
        raise Refused(ErrorCode.INVALID_GROUP_ID)
    group = env.state.described().get(group_id)
    if group is None:
        raise group_id_not_found(group_id)
    return group


def _described(
    env: Environment, group_id: str, group: Group
) -> ConsumerGroupDescribeResponseDescribedGroup:
    if not isinstance(group, ConsumerGroup):
        raise not_a_consumer_group(group_id)
    return ConsumerGroupDescribeResponseDescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor_of_target(env, group),
        is_client_assignor=bool(client_assignor(env, group)),
        members=tuple(_member(env, group, group.members[member_id]) for member_id in group.order),
    )


def _member(
    env: Environment, group: ConsumerGroup, member: Member
) -> ConsumerGroupDescribeResponseMember:
    subscription = member.subscription
    shown = {topic_id: set(partitions) for topic_id, partitions in member.assigned.items()}
    if env.profile.describe_shows_pending_revocation:
        for topic_id, partitions in member.pending_revocation.items():
            shown.setdefault(topic_id, set()).update(partitions)
    target = group.target_of(member.member_id)
    described = ConsumerGroupDescribeResponseMember(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        member_epoch=member.epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=tuple(string_set_order(subscription.subscribed_topic_names)),
        subscribed_topic_regex=subscription.subscribed_topic_regex,
        assignment=_named(env, {topic_id: sorted(owned) for topic_id, owned in shown.items()}),
        target_assignment=_named(
            env, {topic_id: sorted(partitions) for topic_id, partitions in target.items()}
        ),
        member_type=MODERN_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )
    if env.config.client_assignors:
        _say(described.assignment, member.current.metadata)
        _say(described.target_assignment, group.metadata_of(member.member_id))
    return described


def _say(assignment: ConsumerGroupDescribeResponseAssignment, said: AssignmentMetadata) -> None:
    """Add what a client-side assignor says beside the partitions; nothing for the broker's."""
    assignment.error = said.error
    assignment.metadata_version = said.version
    assignment.metadata_bytes = said.data


def _named(
    env: Environment, partitions: dict[TopicId, list[int]]
) -> ConsumerGroupDescribeResponseAssignment:
    """With topic names; topics that were deleted are left out."""
    named: list[ConsumerGroupDescribeResponseTopicPartitions] = []
    for topic_id, numbers in partitions.items():
        topic = env.catalog.topic_by_id(topic_id)
        if topic is not None:
            named.append(
                ConsumerGroupDescribeResponseTopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=tuple(numbers)
                )
            )
    return ConsumerGroupDescribeResponseAssignment(topic_partitions=tuple(named))


def describe_classic_groups(
    env: Environment, received: RequestReceived, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """DescribeGroups."""
    version = received.version
    groups: list[DescribeGroupsResponseDescribedGroup] = []
    for group_id in request.groups:
        described = _described_classic(env, version, group_id)
        if request.include_authorized_operations and not described.error_code:
            described.authorized_operations = ALL_GROUP_OPERATIONS
        groups.append(described)
    return DescribeGroupsResponse(groups=tuple(groups))


def _described_classic(
    env: Environment, version: int, group_id: str
) -> DescribeGroupsResponseDescribedGroup:
    group = env.state.described().get(group_id)
    if isinstance(group, ClassicGroup):
        return _classic(group)
    dead = DescribeGroupsResponseDescribedGroup(group_id=group_id, group_state=GroupState.DEAD)
    if version >= _ERROR_VERSION:
        dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        dead.error_message = (
            f"Group {group_id} not found."
            if group is None
            else f"Group {group_id} is not a classic group."
        )
    return dead


def _classic(group: ClassicGroup) -> DescribeGroupsResponseDescribedGroup:
    """The group with its members; with their metadata for the protocol only while it is Stable,
    because otherwise they may have no protocol in common."""
    live = group.live
    stable = live.state is GroupState.STABLE
    return DescribeGroupsResponseDescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=(live.protocol or "") if stable else "",
        members=tuple(
            DescribeGroupsResponseDescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(live.protocol) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in live.in_order()
        ),
    )

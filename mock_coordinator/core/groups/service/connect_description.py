"""ConnectGroupDescribe (draft API 10485): descriptions of Connect groups for administrators.

The metadata of workers and assignors is returned as bytes. Their content (URLs, delays) is for the
workers and the administrator to decode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kip848_client.core.connect import write_items
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupDescribeRequest,
    ConnectGroupDescribeResponse,
    ConnectGroupDescribeResponseAssignment,
    ConnectGroupDescribeResponseDescribedGroup,
    ConnectGroupDescribeResponseMember,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.client_assignors.prepare import offers_of, worker_assignor
from mock_coordinator.core.groups.client_assignors.selection import candidates
from mock_coordinator.core.groups.records.assignor_values import AssignmentMetadata
from mock_coordinator.core.groups.service.describe import (
    CLASSIC_MEMBER,
    MODERN_MEMBER,
    described_groups,
)
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.environment import Environment
from mock_coordinator.core.groups.state.groups_state import Group
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = ["describe_connect_groups"]


def describe_connect_groups(
    env: Environment, _received: RequestReceived, request: ConnectGroupDescribeRequest
) -> ConnectGroupDescribeResponse:
    """ConnectGroupDescribe."""
    groups = described_groups(env, request, _described, ConnectGroupDescribeResponseDescribedGroup)
    return ConnectGroupDescribeResponse(groups=groups)


def _described(
    _env: Environment, group_id: str, group: Group
) -> ConnectGroupDescribeResponseDescribedGroup:
    if not isinstance(group, ConnectGroup):
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a connect group.")
    assignor = next(iter(candidates(offers_of(group.members, group.eldest), group.eldest)), "")
    return ConnectGroupDescribeResponseDescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        assignor_error=group.target_error,
        computed_by=group.computed_by,
        computing=group.computing,
        members=tuple(_member(group, member, assignor) for member in group.members.values()),
        deferred=write_items(group.deferred),
    )


def _member(
    group: ConnectGroup, member: Member, assignor: str
) -> ConnectGroupDescribeResponseMember:
    subscription = member.subscription
    described = ConnectGroupDescribeResponseMember(
        member_id=member.member_id,
        instance_id=subscription.instance_id,
        member_epoch=member.epoch,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        member_type=MODERN_MEMBER if member.classic is None else CLASSIC_MEMBER,
        member_state=member.state,
        assignment=_assignment(member.assigned, member.current.metadata),
        revoking=write_items(member.pending_revocation),
        target_assignment=_assignment(
            group.target_of(member.member_id), group.metadata_of(member.member_id)
        ),
    )
    if assignor:
        offer = worker_assignor(member, assignor)
        described.version, described.metadata = offer.metadata_version, offer.metadata
    return described


def _assignment(
    held: Mapping[TopicId, Iterable[int]], said: AssignmentMetadata
) -> ConnectGroupDescribeResponseAssignment:
    return ConnectGroupDescribeResponseAssignment(
        items=write_items(held), error=said.error, version=said.version, metadata=said.data
    )

"""Description of a classic group, for DescribeGroups (API 15)."""

from __future__ import annotations

from kip848_client.core.wire.messages.groups import (
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
)
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.consumer_group import GroupState

__all__ = ["described_group"]


def described_group(group: ClassicGroup) -> DescribeGroupsResponseDescribedGroup:
    """The group with its members; what they said for the protocol only while it is Stable, because
    otherwise there may be none that they have in common."""
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

"""ListGroups (API 16): all groups of all types, by state and type (KIP-518, KIP-848)."""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.groups import (
    ListGroupsRequest,
    ListGroupsResponse,
    ListGroupsResponseListedGroup,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Environment
from mock_coordinator.core.inputs import RequestReceived

__all__ = ["list_groups"]

_CONSUMER: Final = "consumer"


def list_groups(
    env: Environment, _received: RequestReceived, request: ListGroupsRequest
) -> ListGroupsResponse:
    """Answer one ListGroups. Filters ignore case; an unknown value selects nothing, none at all
    selects everything."""
    states = frozenset(text.strip().lower() for text in request.states_filter)
    types = frozenset(text.lower() for text in request.types_filter)
    return ListGroupsResponse(
        groups=tuple(
            ListGroupsResponseListedGroup(
                group_id=group.group_id,
                protocol_type=(
                    _CONSUMER if isinstance(group, ConsumerGroup) else group.protocol_type
                ),
                group_state=group.state,
                group_type=group.type,
            )
            for group in env.state.described().values()
            if (not states or group.state.lower() in states) and (not types or group.type in types)
        )
    )

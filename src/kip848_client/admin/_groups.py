"""Listing, describing and deleting groups."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from kip848_client.admin._failures import all_of
from kip848_client.admin._request_router import RequestRouter
from kip848_client.admin.core._connect_wire import connect_groups
from kip848_client.admin.core._group_wire import (
    OF_ANOTHER_TYPE,
    classic_groups,
    consumer_groups,
    deleted_groups,
    listed_groups,
)
from kip848_client.admin.core._model import GroupDescription, GroupListing
from kip848_client.admin.core._retry_rounds import Refusal
from kip848_client.core.wire.messages.connect_group import ConnectGroupDescribeRequest
from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, UnsupportedVersion, refusal

__all__ = ["delete_groups", "describe_groups", "list_groups"]


async def list_groups(
    router: RequestRouter, states: tuple[str, ...], types: tuple[str, ...], deadline_ms: int
) -> tuple[GroupListing, ...]:
    """List groups: each broker returns the groups that it coordinates."""

    async def ask(
        node: int, _: tuple[int, ...]
    ) -> Mapping[int, tuple[GroupListing, ...] | Refusal]:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        answer = await router.to(node, request, deadline_ms)
        if answer.error_code:
            return {node: refusal(answer.error_code, None, "ListGroups")}
        return {node: listed_groups(answer)}

    done, failed = await router.of_each(ask, deadline_ms)
    by_broker = all_of("listing the groups of brokers", done, failed)
    # A group that moves meanwhile is listed twice.
    found = {each.group_id: each for groups in by_broker.values() for each in groups}
    return tuple(found[name] for name in sorted(found))


async def describe_groups(
    router: RequestRouter, groups: tuple[str, ...], deadline_ms: int
) -> dict[str, GroupDescription]:
    """First describe groups as consumer groups of KIP-848. Then ask for the others as classic
    groups, and then as Connect groups, which only a broker with the draft protocols has."""

    async def ask(node: int, targets: tuple[str, ...]) -> Mapping[str, GroupDescription | Refusal]:
        coordinator = router.node(node)
        found: dict[str, GroupDescription | Refusal] = {}
        try:
            request = ConsumerGroupDescribeRequest(group_ids=targets)
            found = consumer_groups(await router.to(node, request, deadline_ms), coordinator)
        except UnsupportedVersion:
            pass  # a broker without KIP-848: all its groups are classic
        others = tuple(each for each in targets if _is_of_another_type(found.get(each)))
        if others:
            classic = await router.to(node, DescribeGroupsRequest(groups=others), deadline_ms)
            found |= classic_groups(classic, coordinator)
        others = tuple(each for each in others if _is_of_another_type(found.get(each)))
        if others:
            connect = ConnectGroupDescribeRequest(group_ids=others)
            with contextlib.suppress(UnsupportedVersion):
                workers = connect_groups(await router.to(node, connect, deadline_ms), coordinator)
                found |= {
                    group: each for group, each in workers.items() if not _is_of_another_type(each)
                }
        return found

    done, failed = await router.of_coordinators(groups, ask, deadline_ms)
    described = all_of("describing groups", done, failed)
    return {group: described[group] for group in groups}


def _is_of_another_type(found: GroupDescription | Refusal | None) -> bool:
    if found is None:
        return True
    return isinstance(found, BrokerError) and found.code in OF_ANOTHER_TYPE


async def delete_groups(router: RequestRouter, groups: tuple[str, ...], deadline_ms: int) -> None:
    """Delete groups: each coordinator deletes its own."""

    async def ask(node: int, targets: tuple[str, ...]) -> Mapping[str, Refusal | None]:
        request = DeleteGroupsRequest(groups_names=targets)
        return deleted_groups(await router.to(node, request, deadline_ms))

    done, failed = await router.of_coordinators(
        groups, ask, deadline_ms, {ErrorCode.GROUP_ID_NOT_FOUND: None}
    )
    all_of("deleting groups", done, failed)

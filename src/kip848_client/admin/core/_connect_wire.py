"""Translation of groups of Kafka Connect workers between the admin's types and messages. Pure.

Workers and assignors exchange metadata as bytes (``kip848_client.core.connect``). It is parsed here
if possible; a user's own assignor may use a format that we do not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kip848_client.admin.core._model import (
    AssignorMessage,
    ConnectDescription,
    GroupDescription,
    MemberDescription,
    Node,
    WorkerDescription,
    WorkerItem,
    WorkerState,
)
from kip848_client.admin.core._retry_rounds import Refusal
from kip848_client.core.connect import PROTOCOL_TYPE, Items, WorkerAssignment, WorkerMetadata
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupDescribeResponse,
    ConnectGroupDescribeResponseAssignment,
    ConnectGroupDescribeResponseDescribedGroup,
    ConnectGroupDescribeResponseMember,
    ConnectGroupItems,
)
from kip848_client.core.wire.messages.groups import (
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
)
from kip848_client.errors import WireError, refusal

__all__ = ["classic_workers", "connect_groups"]

_CLASSIC_MEMBER: Final = 0
_STATES: Final = {0: WorkerState.STABLE, 1: WorkerState.UNREVOKED, 2: WorkerState.UNRELEASED}
_UNREAD: Final = WorkerAssignment(version=-1)
_EAGER: Final = 0


# -- groups of type connect ------------------------------------------------------------------------


def connect_groups(
    answer: ConnectGroupDescribeResponse, coordinator: Node
) -> dict[str, GroupDescription | Refusal]:
    """Descriptions of groups of type connect, or the error of each group."""
    return {
        each.group_id: (
            refusal(each.error_code, each.error_message, "ConnectGroupDescribe")
            if each.error_code
            else _connect_group(each, coordinator)
        )
        for each in answer.groups
    }


def _connect_group(
    group: ConnectGroupDescribeResponseDescribedGroup, coordinator: Node
) -> GroupDescription:
    told = [_assignment(bytes(each.target_assignment.metadata)) for each in group.members]
    urls = {each.member_id: _metadata(bytes(each.metadata)) for each in group.members}
    leader = urls.get(group.computed_by or "")
    return GroupDescription(
        group_id=group.group_id,
        type="Connect",
        state=group.group_state,
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=_by_id(map(_connect_member, group.members)),
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.assignment_epoch,
        protocol_type=PROTOCOL_TYPE,
        is_client_assignor=True,
        connect=ConnectDescription(
            leader=group.computed_by,
            leader_url=None if leader is None else leader.url,
            deferred=_rows(group.deferred),
            delay_ms=max((each.delay_ms for each in told), default=0) if group.deferred else 0,
            assignor_error=group.assignor_error,
            computing=group.computing,
        ),
    )


def _connect_member(member: ConnectGroupDescribeResponseMember) -> MemberDescription:
    metadata = _metadata(bytes(member.metadata))
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=(),
        target_assignment=(),
        epoch=member.member_epoch,
        is_classic=member.member_type == _CLASSIC_MEMBER,
        said=_said(member.assignment),
        target_said=_said(member.target_assignment),
        worker=WorkerDescription(
            url=None if metadata is None else metadata.url,
            config_offset=None if metadata is None else metadata.config_offset,
            assignment=_rows(member.assignment.items),
            revoking=_rows(member.revoking),
            target_assignment=_rows(member.target_assignment.items),
            state=_STATES.get(member.member_state, WorkerState.UNKNOWN),
            metadata_version=member.version,
        ),
    )


def _said(assignment: ConnectGroupDescribeResponseAssignment) -> AssignorMessage:
    return AssignorMessage(assignment.error, assignment.version, bytes(assignment.metadata))


def _rows(rows: Iterable[ConnectGroupItems]) -> tuple[WorkerItem, ...]:
    found = [WorkerItem(each.connector) for each in rows if each.runs_connector]
    found += [
        WorkerItem(each.connector, task, each.generation) for each in rows for task in each.tasks
    ]
    return _sorted(found)


# -- classic groups of the protocol type connect ---------------------------------------------------


def classic_workers(
    group: DescribeGroupsResponseDescribedGroup, coordinator: Node
) -> GroupDescription:
    """A classic group of workers: of Kafka Connect, or of our ``Worker`` on real Kafka."""
    told = [_assignment(bytes(each.member_assignment)) for each in group.members]
    led = next((each for each in told if each.leader), _UNREAD)
    return GroupDescription(
        group_id=group.group_id,
        type="Classic",
        state=group.group_state,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=_by_id(map(_classic_member, group.members)),
        protocol_type=group.protocol_type,
        is_client_assignor=True,
        connect=ConnectDescription(
            leader=led.leader or None,
            leader_url=led.leader_url or None,
            delay_ms=led.delay_ms,
            assignor_error=led.error,
        ),
    )


def _classic_member(member: DescribeGroupsResponseDescribedGroupMember) -> MemberDescription:
    metadata = _metadata(bytes(member.member_metadata))
    told = _assignment(bytes(member.member_assignment))
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=(),
        is_classic=True,
        worker=WorkerDescription(
            url=None if metadata is None else metadata.url,
            config_offset=None if metadata is None else metadata.config_offset,
            assignment=_running(metadata, told),
            metadata_version=None if metadata is None else metadata.version,
        ),
    )


def _running(metadata: WorkerMetadata | None, told: WorkerAssignment) -> tuple[WorkerItem, ...]:
    """An eager worker gets its full assignment, other workers get changes."""
    items = set(_items(told.assigned))
    if told.version != _EAGER and metadata is not None and metadata.allocation is not None:
        items |= {*_items(metadata.allocation.assigned)} - {*_items(told.revoked)}
    return _sorted(items)


def _items(items: Items | None) -> tuple[WorkerItem, ...]:
    if items is None:
        return ()
    return (*map(WorkerItem, items.connectors), *(WorkerItem(*each) for each in items.tasks))


# -- both ------------------------------------------------------------------------------------------


def _metadata(raw: bytes) -> WorkerMetadata | None:
    try:
        return WorkerMetadata.decode(raw)
    except WireError:
        return None


def _assignment(raw: bytes) -> WorkerAssignment:
    try:
        return WorkerAssignment.decode(raw)
    except WireError:
        return _UNREAD


def _sorted(items: Iterable[WorkerItem]) -> tuple[WorkerItem, ...]:
    """A connector comes before its tasks."""
    return tuple(
        sorted(
            items,
            key=lambda each: (
                each.connector,
                -1 if each.task is None else each.task,
                -1 if each.generation is None else each.generation,
            ),
        )
    )


def _by_id(members: Iterable[MemberDescription]) -> tuple[MemberDescription, ...]:
    return tuple(sorted(members, key=lambda each: each.member_id))

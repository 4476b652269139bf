"""A classic group of workers becomes a Connect group when a worker of the new protocol joins it
(the Connect proposal, "Migration To the New Protocol").

Theory of operation
===================

As for consumer groups (``upgrade``): the generation becomes the group epoch, every worker becomes a
classic member at that epoch, and the items that it runs are its assignment and its target. Requests
that wait in the classic group get REBALANCE_IN_PROGRESS, and their workers join again.

No record has all items that a worker runs. The worker reported its items when it joined, and then
got items to start and to stop; both are in the record of the generation. Items that it must stop
are being revoked until it joins without them, so that no other worker gets them before.

Unlike an upgrade in Kafka this is all or nothing: if the heartbeat that causes it is refused,
nothing has happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kip848_client.core.assignors import string_map_order
from kip848_client.core.connect import (
    NO_ITEMS,
    PROTOCOL_TYPE,
    Items,
    WorkerAssignment,
    connector_of,
    item_name,
)
from kip848_client.core.types import TopicId
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import WireError
from mock_coordinator.core.groups.classic.rebalance import Rebalance
from mock_coordinator.core.groups.migration.policy import allows_upgrade
from mock_coordinator.core.groups.records.assignor_values import NO_METADATA
from mock_coordinator.core.groups.records.connect_protocol import as_resources, said_to, spoken
from mock_coordinator.core.groups.records.connect_records import (
    ConnectTargetEpoch,
    WorkerSubscription,
)
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    ClassicMemberMetadata,
    CurrentAssignment,
    GroupEpoch,
    GroupMetadata,
    StateRecord,
)
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.classic_live import LiveMember
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.errors import not_a_connect_group
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.refused import Refused

__all__ = ["WorkerUpgrade", "upgrade_workers"]

_FIRST_EPOCH: Final = 1


@dataclass(frozen=True, slots=True)
class WorkerUpgrade:
    """A conversion: ``group`` is the Connect group after ``records`` are applied, and ``over`` ends
    the waiting requests and the timers of the classic group."""

    group: ConnectGroup
    records: list[StateRecord]
    over: Decision[None]


def upgrade_workers(env: Environment, now_ms: int, classic: ClassicGroup) -> WorkerUpgrade:
    """Convert a classic group that has members.

    Raises ``Refused`` GROUP_ID_NOT_FOUND, with the reason.
    """
    _require_upgradable(env, classic)
    live, group_id = classic.live, classic.group_id
    group = ConnectGroup(group_id, max(live.generation, _FIRST_EPOCH))
    for member_id in string_map_order(live.members):
        member = _member(group, live.members[member_id])
        _require_free(group, member)
        target = {resource: tuple(parts) for resource, parts in member.assigned.items()}
        group.adopt(member, target)
    step = Rebalance(env, now_ms, group_id, live)
    step.refuse_all(ErrorCode.REBALANCE_IN_PROGRESS)
    over = step.decision(None)
    over.live = None
    for member in group.members.values():
        over.timers += _timers(now_ms, group_id, member)
    return WorkerUpgrade(group, _records(group), over)


def _require_upgradable(env: Environment, classic: ClassicGroup) -> None:
    live = classic.live
    if live.protocol_type != PROTOCOL_TYPE:
        raise not_a_connect_group(classic.group_id)
    reason = None
    if not allows_upgrade(env.config):
        reason = "online upgrade is disabled (group.consumer.migration.policy)."
    elif len(live.members) >= env.config.integer("group.consumer.max.size"):
        reason = "the group would exceed group.consumer.max.size."
    elif live.static_members:
        reason = "it has static members, which Kafka Connect does not have."
    if reason is not None:
        raise _refused(classic.group_id, reason)


def _refused(group_id: str, reason: str) -> Refused:
    return Refused(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to connect group because {reason}",
    )


def _member(group: ConnectGroup, old: LiveMember) -> Member:
    epoch = group.epoch
    try:
        worker = spoken(old.protocols)
        told = WorkerAssignment.decode(old.assignment) if old.assignment else None
    except WireError as err:
        reason = f"the bytes of member {old.member_id} cannot be read: {err}."
        raise _refused(group.group_id, reason) from err
    runs, stops, metadata = worker.allocation, NO_ITEMS, NO_METADATA
    if told is not None and not told.error:
        revoked = told.revoked or NO_ITEMS
        stops = _common(revoked, runs)
        runs = _without(runs + (told.assigned or NO_ITEMS), revoked)
        metadata = said_to(told.version, told)
    return Member(
        old.member_id,
        WorkerSubscription(
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            classic=ClassicMemberMetadata(old.session_timeout_ms, old.protocols),
            joined_epoch=epoch,
        ),
        CurrentAssignment(
            member_epoch=epoch,
            previous_member_epoch=epoch,
            state=MemberState.UNREVOKED_PARTITIONS if stops else MemberState.STABLE,
            assigned=_held(runs, epoch),
            pending_revocation=_held(stops, epoch),
            metadata=metadata,
        ),
    )


def _common(some: Items, others: Items) -> Items:
    return Items(
        tuple(each for each in some.connectors if each in others.connectors),
        tuple(each for each in some.tasks if each in others.tasks),
    )


def _without(items: Items, gone: Items) -> Items:
    return Items(
        tuple(each for each in items.connectors if each not in gone.connectors),
        tuple(each for each in items.tasks if each not in gone.tasks),
    )


def _held(items: Items, epoch: int) -> dict[TopicId, dict[int, int]]:
    return {
        resource: dict.fromkeys(parts, epoch) for resource, parts in as_resources(items).items()
    }


def _require_free(group: ConnectGroup, member: Member) -> None:
    """In classic rounds two workers may come to have an item for a while."""
    for held in (member.assigned, member.pending_revocation):
        for resource, parts in held.items():
            for part in parts:
                other = group.holders.get(resource, {}).get(part)
                if other is not None:
                    name = item_name(connector_of(resource)[0], part)
                    raise _refused(
                        group.group_id, f"both {other} and {member.member_id} have {name}."
                    )


def _timers(now_ms: int, group_id: str, member: Member) -> list[TimerChange]:
    session_ms = member.classic.session_timeout_ms if member.classic else 0
    session = Timer(TimerKind.SESSION, group_id, member.member_id)
    timers = [TimerChange(session, now_ms + session_ms)]
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        stopping = Timer(TimerKind.REBALANCE, group_id, member.member_id)
        timeout_ms = max(member.subscription.rebalance_timeout_ms, 0)
        timers.append(TimerChange(stopping, now_ms + timeout_ms, member.epoch))
    return timers


def _records(group: ConnectGroup) -> list[StateRecord]:
    """What makes the group so."""
    group_id, members, types = group.group_id, group.members.values(), group.records
    return [
        GroupMetadata(group_id),
        *(types.member(group_id, each.member_id, each.subscription) for each in members),
        types.epoch(group_id, GroupEpoch(group.epoch)),
        *(
            types.target(
                group_id,
                each.member_id,
                group.target_of(each.member_id),
                each.current.metadata,
            )
            for each in members
        ),
        types.target_epoch(group_id, ConnectTargetEpoch(group.assignment_epoch)),
        *(types.current(group_id, each.member_id, each.current) for each in members),
    ]

"""ConnectGroupHeartbeat: a worker joins, stays, acknowledges or leaves.

The steps are those of a consumer heartbeat (``groups.consumer.heartbeat``), without topics and
without a target to compute here. Three things are particular to Connect groups. A reason is an
event: a heartbeat that has one raises the group epoch, even if the previous one had the same, and
the reason is kept until a target has been computed that took it into account. A worker that offers
no assignor in common with the others is refused, because no other could compute. And an assignment
is repeated until the worker reports that it has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kip848_client.core.connect import OwnedItems, write_items
from kip848_client.core.types import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatResponse,
    ConnectGroupHeartbeatResponseAssignment,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.assignment.current_assignment import away
from mock_coordinator.core.groups.client_assignors.sender import require_computable
from mock_coordinator.core.groups.connect.fencing import fence_workers
from mock_coordinator.core.groups.connect.update import WorkerUpdate
from mock_coordinator.core.groups.connect.validation import (
    offered_assignors,
    reported_items,
    validate_connect_heartbeat,
)
from mock_coordinator.core.groups.membership.identity import (
    identify,
    leaving_member,
    require_room,
)
from mock_coordinator.core.groups.migration.worker_upgrade import upgrade_workers
from mock_coordinator.core.groups.records.assignor_values import ClientAssignor
from mock_coordinator.core.groups.records.connect_records import (
    ConnectGroupEpoch,
    ConnectWorkerMetadata,
)
from mock_coordinator.core.groups.records.state_records import (
    GroupEpoch,
    GroupMetadata,
    OwnedPartitions,
)
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.connect_group import ConnectGroup, subscription_of
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.groups.state.errors import not_a_connect_group
from mock_coordinator.core.groups.state.member import Member, same_owned
from mock_coordinator.core.groups.state.timers import TimerKind
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = ["decide_connect_heartbeat", "note_confirmation"]


def decide_connect_heartbeat(
    env: Environment, now_ms: int, client: ClientInfo, request: ConnectGroupHeartbeatRequest
) -> Decision[ConnectGroupHeartbeatResponse]:
    """Decide one heartbeat. Raises ``Refused`` when it is refused; nothing is changed here."""
    validate_connect_heartbeat(request)
    owned = reported_items(request)
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        return _leave(env, now_ms, request)
    return _Heartbeat(env, now_ms, request=request, client=client, owned=owned).decide()


def note_confirmation(
    group: ConnectGroup,
    request: ConnectGroupHeartbeatRequest,
    before: OwnedPartitions,
    member: Member,
) -> None:
    """Once a heartbeat is answered: whether the worker has yet to report what it was assigned.

    ``before`` is what it had been assigned so far, ``member`` what has become of it.
    """
    if _reports(reported_items(request), member):
        group.unconfirmed.discard(member.member_id)
    elif not same_owned(before, member.assigned):
        group.unconfirmed.add(member.member_id)


def _leave(
    env: Environment, now_ms: int, request: ConnectGroupHeartbeatRequest
) -> Decision[ConnectGroupHeartbeatResponse]:
    """A heartbeat with epoch -1 or -2.

    Raises ``Refused``: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    group = _existing(env, request.group_id)
    member = leaving_member(group, request.member_id, request.instance_id)
    response = ConnectGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.member_epoch == STATIC_LEAVE_EPOCH:
        current = away(env.profile, member.current)
        record = group.records.current(group.group_id, member.member_id, current)
        return Decision(response, [record])
    return fence_workers(env, now_ms, group, (member,)).answering(response)


def _existing(env: Environment, group_id: str) -> ConnectGroup:
    group = env.state.groups.get(group_id)
    if group is None:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Connect group {group_id} not found.")
    if not isinstance(group, ConnectGroup):
        raise not_a_connect_group(group_id)
    return group


def _reports(owned: Iterable[OwnedItems] | None, member: Member) -> bool:
    """Whether this reports exactly the items that the worker is assigned."""
    if owned is None:
        return False
    assigned = {resource: tuple(sorted(parts)) for resource, parts in member.assigned.items()}
    return {each.topic_id: each.partitions for each in owned} == assigned


@dataclass(slots=True)
class _Heartbeat(WorkerUpdate):
    """One heartbeat with epoch >= 0 on its way through the steps."""

    request: ConnectGroupHeartbeatRequest = field(kw_only=True)
    client: ClientInfo = field(kw_only=True)
    owned: tuple[OwnedItems, ...] | None = field(kw_only=True)
    replies: list[tuple[RequestReceived, Message]] = field(
        default_factory=list["tuple[RequestReceived, Message]"]
    )
    """To workers that waited in a classic group."""

    def decide(self) -> Decision[ConnectGroupHeartbeatResponse]:
        """Go through the steps."""
        env, request = self.env, self.request
        group, member_id = self._group(), request.member_id
        max_size = env.config.integer("group.consumer.max.size")
        require_room(env.profile, group, max_size, member_id, request.instance_id)
        identity = identify(
            env.profile, group, member_id, request.instance_id, request.member_epoch, self.owned
        )
        self.records += identity.records
        before = identity.member
        offer, bumps = self._offer(before)
        epoch = group.epoch + bumps
        after = self._updated(before, offer, epoch)
        require_computable(group, before, after, replaced=identity.other, broker_can=False)
        if after is not before:
            said = ConnectWorkerMetadata(group.group_id, member_id, after.subscription)
            self.records.append(said)
        if bumps:
            self.records.append(ConnectGroupEpoch(group.group_id, GroupEpoch(epoch)))
        current = self.towards_target(group, after, self.owned)
        session_ms = env.config.consumer_session_timeout_ms(group.group_id)
        self.arm(TimerKind.SESSION, group.group_id, member_id, session_ms)
        response = self._response(group, before, current)
        return Decision(response, self.records, self.timers, replies=self.replies)

    # --- Stations ---------------------------------------------------------------------------------

    def _group(self) -> ConnectGroup:
        """The group, or a new one for a worker that joins. An empty classic one gives way, and one
        of workers is converted."""
        group_id = self.request.group_id
        group = self.env.state.groups.get(group_id)
        if self.request.member_epoch == JOIN_EPOCH:
            if isinstance(group, ClassicGroup) and group.is_empty:
                self.records.append(GroupMetadata(group_id))
                group = None
            if group is None:
                return ConnectGroup(group_id)
            if isinstance(group, ClassicGroup):
                return self._upgraded(group)
        return _existing(self.env, group_id)

    def _upgraded(self, classic: ClassicGroup) -> ConnectGroup:
        """Nothing of this happens unless the heartbeat is taken."""
        upgrade = upgrade_workers(self.env, self.now_ms, classic)
        self.records += upgrade.records
        self.timers += upgrade.over.timers
        self.replies += upgrade.over.replies
        return upgrade.group

    def _offer(self, before: Member) -> tuple[tuple[ClientAssignor, ...], bool]:
        """The worker's assignors from now on, and whether the group needs a new target for them.

        A reason that has not been served yet stays, whatever comes after it.
        """
        known = before.subscription.client_assignors
        offer = offered_assignors(self.request)
        if offer is None:
            return known, False
        unserved = {each.name: each.reason for each in known}
        offer = tuple(
            each if each.reason else replace(each, reason=unserved.get(each.name, 0))
            for each in offer
        )
        event = any(each.reason for each in self.request.client_assignors or ())
        if offer == known:
            return known, event
        changed = [replace(each, reason=0) for each in offer]
        return offer, event or changed != [replace(each, reason=0) for each in known]

    def _updated(self, before: Member, offer: tuple[ClientAssignor, ...], epoch: int) -> Member:
        """The worker with what the request says about it."""
        request, said = self.request, subscription_of(before)
        timeout_ms = request.rebalance_timeout_ms
        event = any(each.reason for each in request.client_assignors or ())
        new = replace(
            said,
            instance_id=said.instance_id if request.instance_id is None else request.instance_id,
            client_id=self.client.client_id or "",
            client_host=self.client.host,
            rebalance_timeout_ms=said.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            client_assignors=offer,
            classic=None,
            joined_epoch=said.joined_epoch or epoch,
            reason_epoch=epoch if event else said.reason_epoch,
        )
        return before if new == before.subscription else replace(before, subscription=new)

    def _response(
        self, group: ConnectGroup, before: Member, after: Member
    ) -> ConnectGroupHeartbeatResponse:
        """The assignment is shown to a worker that asks for it, when it changed, and until the
        worker has reported it."""
        request, metadata = self.request, after.current.metadata
        full = request.member_epoch == JOIN_EPOCH or (
            request.rebalance_timeout_ms != -1
            and request.owned is not None
            and request.client_assignors is not None
        )
        shown = (
            full
            or not same_owned(before.assigned, after.assigned)
            or before.current.metadata != metadata
            or (after.member_id in group.unconfirmed and not _reports(self.owned, after))
        )
        assignment = ConnectGroupHeartbeatResponseAssignment(
            error=metadata.error,
            items=write_items(after.assigned),
            version=metadata.version,
            metadata=metadata.data,
        )
        return ConnectGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self.env.config.consumer_heartbeat_interval_ms(group.group_id),
            assignment=assignment if shown else None,
        )

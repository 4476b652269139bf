"""ConsumerGroupHeartbeat (API 68): the one request of the protocol, decided in Kafka's order.

Theory of operation
===================

A heartbeat goes through fixed steps: is it valid, does it leave, which group, is the group full,
which member, is the member's epoch right, what did it change, does that raise the group epoch, is
there a new target to compute, and how far can this member move towards its target. Each step may
refuse; nothing has happened then. The result is a list of records in the order in which a broker
writes them, timers to move, and the response.

Two rules are important. A heartbeat moves only its own member: others learn of a new target in
their own next heartbeat. And the cost of a heartbeat that changes nothing must not grow with the
group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kip848_client.core.assignors import Partitions
from kip848_client.core.types import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, TopicId
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.assignment.subscriptions import RegexChange
from mock_coordinator.core.groups.assignment.target_assignment import (
    Sender,
    current_assignor,
    elected_assignor,
)
from mock_coordinator.core.groups.client_assignors.offers import (
    offered,
    validate_offer,
    wants_new_target,
)
from mock_coordinator.core.groups.client_assignors.sender import require_computable
from mock_coordinator.core.groups.consumer.leave import leave
from mock_coordinator.core.groups.consumer.validation import validate_heartbeat
from mock_coordinator.core.groups.membership.identity import identify, require_room
from mock_coordinator.core.groups.membership.member_update import MemberUpdate, SubscriptionChange
from mock_coordinator.core.groups.migration.upgrade import Upgrade, UpgradeRefused, upgrade
from mock_coordinator.core.groups.records.state_records import (
    GroupMetadata,
    TargetAssignmentMetadata,
    TargetEpoch,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.groups.state.errors import not_a_consumer_group
from mock_coordinator.core.groups.state.groups_state import ClassicGroup
from mock_coordinator.core.groups.state.member import Member, merged, same_owned
from mock_coordinator.core.groups.state.timers import TimerKind
from mock_coordinator.core.inputs import ClientInfo
from mock_coordinator.core.refused import Refused

__all__ = ["decide_heartbeat"]


def decide_heartbeat(
    env: Environment,
    now_ms: int,
    client: ClientInfo,
    version: int,
    request: ConsumerGroupHeartbeatRequest,
) -> Decision[ConsumerGroupHeartbeatResponse]:
    """Decide one heartbeat. Raises ``Refused`` when it is refused; nothing is changed here."""
    validate_heartbeat(request, version, tuple(env.assignors))
    if env.config.client_assignors:
        validate_offer(request)
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        return leave(env, now_ms, request)
    return _Heartbeat(env, now_ms, request=request, client=client).decide()


@dataclass(slots=True)
class _Heartbeat(MemberUpdate):
    """One heartbeat with epoch >= 0 on its way through the steps."""

    request: ConsumerGroupHeartbeatRequest = field(kw_only=True)
    client: ClientInfo = field(kw_only=True)
    upgrade: Upgrade | None = None
    """set when a classic group with members has to become a consumer group first"""

    def decide(self) -> Decision[ConsumerGroupHeartbeatResponse]:
        """Go through the steps; an upgrade answers the classic members that it concerns, too."""
        try:
            decision = self._decide()
        except Refused as err:
            if self.upgrade is None:
                raise
            raise UpgradeRefused(err, self.upgrade.failed) from err
        if self.upgrade is not None:
            decision.replies = self.upgrade.succeeded.replies
            decision.timers[:0] = self.upgrade.succeeded.timers
        return decision

    def _decide(self) -> Decision[ConsumerGroupHeartbeatResponse]:
        env, request = self.env, self.request
        group = self._group()
        max_size = env.config.integer("group.consumer.max.size")
        require_room(env.profile, group, max_size, request.member_id, request.instance_id)
        member_id = request.member_id or env.new_member_id()
        identity = identify(
            env.profile,
            group,
            member_id,
            request.instance_id,
            request.member_epoch,
            request.topic_partitions,
        )
        self.records += identity.records
        before = identity.member
        after = self._updated(before)
        require_computable(group, before, after, replaced=identity.other)
        change = self.changed_subscription(group, before, after)
        sender = Sender(before, after, request.subscribed_topic_names, identity.other)
        epoch = self.group_epoch(group, sender, bump=self._bumps(group, sender, change))
        target = self.target(group, epoch, sender)
        owned = request.topic_partitions
        current = self.reconciled(group, after, target, owned, changed=change.any)
        session_ms = env.config.consumer_session_timeout_ms(group.group_id)
        self.arm(TimerKind.SESSION, group.group_id, member_id, session_ms)
        return Decision(
            response=self._response(group.group_id, before, current, target[1]),
            records=self.records,
            timers=self.timers,
            metadata_checked=group.group_id if self.metadata_checked else None,
            resolve=self.resolution(group.group_id, self.client),
        )

    # --- Stations ---------------------------------------------------------------------------------

    def _group(self) -> ConsumerGroup:
        """The group, or a new one for a member that joins; an empty classic one gives way."""
        state, group_id = self.env.state, self.request.group_id
        group = state.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if self.request.member_epoch != JOIN_EPOCH:
            if group is None:
                raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
            return state.consumer_group(group_id)  # raises: it is not a consumer group
        if isinstance(group, ClassicGroup):
            if not group.is_empty:
                offer = offered(self.request) if self.env.config.client_assignors else None
                self.upgrade = upgrade(self.env, self.now_ms, group, offer or ())
                self.records += self.upgrade.records
                return self.upgrade.group
            self.records.append(GroupMetadata(group_id))
        elif group is not None:
            raise not_a_consumer_group(group_id)
        group = state.new_consumer_group(group_id)
        if self.request.client_assignors and self.env.config.client_assignors and not group.epoch:
            # an answer with epoch 0 would make every heartbeat a join: such groups begin at 1
            group.epoch = group.assignment_epoch = 1
            self.records.append(TargetAssignmentMetadata(group_id, TargetEpoch(1)))
        return group

    def _updated(self, before: Member) -> Member:
        """The member with what the request says about it."""
        request = self.request
        subscription = merged(
            before.subscription,
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            client_id=self.client.client_id or "",
            client_host=self.client.host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            names=request.subscribed_topic_names,
            regex=request.subscribed_topic_regex,
            server_assignor=request.server_assignor,
            client_assignors=offered(request) if self.env.config.client_assignors else None,
        )
        if subscription is before.subscription:
            return before
        return replace(before, subscription=subscription)

    def _bumps(self, group: ConsumerGroup, sender: Sender, change: SubscriptionChange) -> bool:
        """Whether the member changed an input of the target."""
        profile = self.env.profile
        bump = change.names or change.regex is RegexChange.UPDATED_AND_KNOWN
        if not profile.regex_removal_bumps and not sender.after.subscription.subscribed_topic_regex:
            bump = change.names
        old, new = sender.before.subscription, sender.after.subscription
        if old.client_assignors is not new.client_assignors:
            bump = bump or wants_new_target(old.client_assignors, new.client_assignors)
        if profile.join_without_topics_bumps and group.epoch == 0:
            bump = True
        if profile.assignor_change_bumps and not bump and (change.assignor or len(group.votes) > 1):
            # with a tie the two may differ in every heartbeat: then so does the epoch, in Kafka too
            bump = elected_assignor(self.env, group, sender) != current_assignor(self.env, group)
        return bump

    def _response(
        self, group_id: str, before: Member, after: Member, target: Partitions
    ) -> ConsumerGroupHeartbeatResponse:
        """The assignment is shown to a member that asks for it, and when it changed."""
        request = self.request
        full = request.member_epoch == JOIN_EPOCH or (
            request.rebalance_timeout_ms != -1
            and request.topic_partitions is not None
            and (
                request.subscribed_topic_names is not None
                or request.subscribed_topic_regex is not None
            )
        )
        shown = (
            full
            or not same_owned(before.assigned, after.assigned)
            or before.current.metadata != after.current.metadata
        )
        return ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self.env.config.consumer_heartbeat_interval_ms(group_id),
            assignment=_assignment(after, target) if shown else None,
        )


def _assignment(member: Member, target: Partitions) -> ConsumerGroupHeartbeatResponseAssignment:
    """What the member has; to one that offers assignors also what it waits for and its metadata."""
    assignment = ConsumerGroupHeartbeatResponseAssignment(topic_partitions=_rows(member.assigned))
    if member.subscription.client_assignors:
        metadata, assigned = member.current.metadata, member.assigned
        waits_for = {
            topic_id: [p for p in partitions if p not in assigned.get(topic_id, {})]
            for topic_id, partitions in target.items()
        }
        assignment.pending_topic_partitions = _rows(waits_for)
        assignment.metadata_version = metadata.version
        assignment.metadata_bytes = metadata.data
        assignment.error = metadata.error
    return assignment


def _rows(
    owned: Mapping[TopicId, Iterable[int]],
) -> tuple[ConsumerGroupHeartbeatResponseTopicPartitions, ...]:
    return tuple(
        ConsumerGroupHeartbeatResponseTopicPartitions(
            topic_id=topic_id, partitions=tuple(sorted(partitions))
        )
        for topic_id, partitions in owned.items()
        if partitions
    )

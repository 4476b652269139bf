"""ConsumerGroupHeartbeat (API 68): the one request of the protocol, decided in Kafka's order.

Theory of operation
===================

A heartbeat goes through fixed stations: is it well formed, does it leave, which group, is there
room, which member, is the member's epoch right, what did it change, does that move the group epoch,
is there a new target to compute, and how far can this member go towards its target. Each station
may refuse; nothing has happened then. What gets through is a list of records in the order in which
a broker writes them, timers to move, and the answer.

Two things are worth remembering. A heartbeat moves only its own member: others learn of a new
target at their own next heartbeat. And a heartbeat that says nothing new must cost nothing that
grows with the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kip848_client._types import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, TopicId
from kip848_client.assignors import Partitions
from kip848_client.wire import ErrorCode
from kip848_client.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from mock_coordinator.core.groups.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.current_assignment import Reconciliation, reconcile
from mock_coordinator.core.groups.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.errors import GroupError
from mock_coordinator.core.groups.identity import Identity, identify, require_room
from mock_coordinator.core.groups.leave import leave
from mock_coordinator.core.groups.member import Member, merged, same_owned
from mock_coordinator.core.groups.member_state import MemberState
from mock_coordinator.core.groups.records import (
    CurrentMemberAssignment,
    GroupMetadata,
    MemberMetadata,
    OwnedPartitions,
    StateRecord,
)
from mock_coordinator.core.groups.state import ClassicGroup
from mock_coordinator.core.groups.subscriptions import (
    RegexChange,
    changed_regex,
    epoch_records,
    prospective_topics,
    regexes_to_resolve,
    summarize,
)
from mock_coordinator.core.groups.target_assignment import (
    Sender,
    compute_target,
    current_assignor,
    elected_assignor,
    is_interval_over,
)
from mock_coordinator.core.groups.timers import Timer, TimerKind
from mock_coordinator.core.groups.validation import validate_heartbeat
from mock_coordinator.core.inputs import ClientInfo

__all__ = ["decide_heartbeat"]


def decide_heartbeat(
    env: Environment,
    now_ms: int,
    client: ClientInfo,
    version: int,
    request: ConsumerGroupHeartbeatRequest,
) -> Decision[ConsumerGroupHeartbeatResponse]:
    """Decide one heartbeat. Raises ``GroupError`` when it is refused; nothing is changed here."""
    validate_heartbeat(request, version, tuple(env.assignors))
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        return leave(env, request)
    return _Heartbeat(env, now_ms, client, request).decide()


@dataclass(slots=True)
class _Heartbeat:
    """One heartbeat with epoch >= 0 on its way through the stations."""

    env: Environment
    now_ms: int
    client: ClientInfo
    request: ConsumerGroupHeartbeatRequest
    records: list[StateRecord] = field(default_factory=list)
    timers: list[TimerChange] = field(default_factory=list)
    metadata_checked: bool = False
    resolve: tuple[str, ...] = ()

    def decide(self) -> Decision[ConsumerGroupHeartbeatResponse]:
        """Go through the stations."""
        env, request = self.env, self.request
        group = self._group()
        max_size = env.config.integer("group.consumer.max.size")
        require_room(env.profile, group, max_size, request.member_id, request.instance_id)
        member_id = request.member_id or env.new_member_id()
        identity = identify(env.profile, group, member_id, request)
        self.records += identity.records
        before = identity.member
        after = self._updated(before)
        change = self._changed_subscription(group, before, after)
        sender = Sender(before, after, request.subscribed_topic_names, _other(identity))
        epoch = self._group_epoch(group, sender, change)
        target_epoch, target = self._target(group, epoch, sender)
        current = self._reconciled(group, after, target_epoch, target, changed=change.any)
        self._arm_session(group.group_id, member_id)
        return Decision(
            response=self._response(group.group_id, before, current),
            records=self.records,
            timers=self.timers,
            metadata_checked=group.group_id if self.metadata_checked else None,
            resolve=(group.group_id, self.resolve) if self.resolve else None,
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
                raise GroupError(
                    ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found."
                )
            return state.consumer_group(group_id)  # raises: it is not a consumer group
        if isinstance(group, ClassicGroup):
            self.records.append(GroupMetadata(group_id))
        return state.new_consumer_group(group_id)

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
        )
        if subscription is before.subscription:
            return before
        return replace(before, subscription=subscription)

    def _changed_subscription(self, group: ConsumerGroup, before: Member, after: Member) -> _Change:
        """Note what the member changed, and start resolving regexes when it is time."""
        old, new = before.subscription, after.subscription
        if old is not new:
            self.records.append(MemberMetadata(group.group_id, after.member_id, new))
        regex = changed_regex(
            self.env, group, old.subscribed_topic_regex, new.subscribed_topic_regex, self.records
        )
        if new.subscribed_topic_regex or group.regexes:
            self.resolve = regexes_to_resolve(self.env, group, old, new, self.now_ms)
        return _Change(
            names=old.subscribed_topic_names != new.subscribed_topic_names,
            regex=regex,
            assignor=old.server_assignor != new.server_assignor,
        )

    def _group_epoch(self, group: ConsumerGroup, sender: Sender, change: _Change) -> int:
        """The group epoch after this heartbeat: one more when an input of the target changed."""
        profile = self.env.profile
        bump = change.names or change.regex is RegexChange.UPDATED_AND_KNOWN
        if not profile.regex_removal_bumps and not sender.after.subscription.subscribed_topic_regex:
            bump = change.names
        if profile.join_without_topics_bumps and group.epoch == 0:
            bump = True
        if profile.assignor_change_bumps and not bump and (change.assignor or len(group.votes) > 1):
            # with a tie the two may differ in every heartbeat: then so does the epoch, in Kafka too
            bump = elected_assignor(self.env, group, sender) != current_assignor(self.env, group)
        if not bump and group.metadata_fresh:
            return group.epoch
        self.metadata_checked = True
        topics = prospective_topics(group, sender.before.subscription, sender.after.subscription)
        summary = summarize(self.env, topics)
        bump = bump or not summary.matches(group)
        epoch = group.epoch + bump
        self.records += epoch_records(group, summary, epoch, bump=bump)
        return epoch

    def _target(self, group: ConsumerGroup, epoch: int, sender: Sender) -> tuple[int, Partitions]:
        """The target in force for the sender, recomputed when it is due."""
        if epoch > group.assignment_epoch and is_interval_over(self.env, group, self.now_ms):
            counted = self.metadata_checked  # else the group's own subscription type stands
            records, target = compute_target(
                self.env, group, epoch, sender, self.now_ms, counts_sender=counted
            )
            self.records += records
            return epoch, target
        target = group.target_of(sender.after.member_id, sender.after.instance_id)
        return group.assignment_epoch, target

    def _reconciled(
        self,
        group: ConsumerGroup,
        member: Member,
        target_epoch: int,
        target: Partitions,
        *,
        changed: bool,
    ) -> Member:
        """The member after one step towards its target."""
        if not changed and member.is_reconciled_to(target_epoch):
            return member
        subscription = member.subscription
        resolved = group.resolved.get(subscription.subscribed_topic_regex)
        names = {*subscription.subscribed_topic_names, *(resolved.topics if resolved else ())}
        catalog = self.env.catalog

        def is_subscribed(topic_id: TopicId) -> bool:
            topic = catalog.topic_by_id(topic_id)
            return topic is not None and topic.name in names

        current = reconcile(
            member,
            Reconciliation(
                profile=self.env.profile,
                target_epoch=target_epoch,
                target=target,
                holders=group.holders,
                owned=self.request.topic_partitions,
                subscription_changed=changed,
                is_subscribed=is_subscribed,
            ),
        )
        if current is member.current:
            return member
        self.records.append(CurrentMemberAssignment(group.group_id, member.member_id, current))
        member = replace(member, current=current)
        self._arm_rebalance(group.group_id, member)
        return member

    # --- Timers and answer ------------------------------------------------------------------------

    def _arm_rebalance(self, group_id: str, member: Member) -> None:
        """A member that has to give something up has its own rebalance timeout to do so."""
        timer = Timer(TimerKind.REBALANCE, group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            deadline_ms = self.now_ms + max(member.subscription.rebalance_timeout_ms, 0)
            self.timers.append(TimerChange(timer, deadline_ms, member.epoch))
        else:
            self.timers.append(TimerChange(timer, None))

    def _arm_session(self, group_id: str, member_id: str) -> None:
        timeout_ms = self.env.config.consumer_session_timeout_ms(group_id)
        timer = Timer(TimerKind.SESSION, group_id, member_id)
        self.timers.append(TimerChange(timer, self.now_ms + timeout_ms))

    def _response(
        self, group_id: str, before: Member, after: Member
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
        shown = full or not same_owned(before.assigned, after.assigned)
        return ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self.env.config.consumer_heartbeat_interval_ms(group_id),
            assignment=_assignment(after.assigned) if shown else None,
        )


@dataclass(frozen=True, slots=True)
class _Change:
    """What a heartbeat changed of its member's subscription."""

    names: bool
    regex: RegexChange
    assignor: bool

    @property
    def any(self) -> bool:
        """Whether the member may be subscribed to other topics than before."""
        return self.names or self.regex is not RegexChange.NONE


def _other(identity: Identity) -> str | None:
    """The member id that was replaced, unless it replaced itself."""
    replaced = identity.replaced
    return None if replaced == identity.member.member_id else replaced


def _assignment(owned: OwnedPartitions) -> ConsumerGroupHeartbeatResponseAssignment:
    return ConsumerGroupHeartbeatResponseAssignment(
        topic_partitions=tuple(
            ConsumerGroupHeartbeatResponseTopicPartitions(
                topic_id=topic_id, partitions=tuple(sorted(partitions))
            )
            for topic_id, partitions in owned.items()
            if partitions
        )
    )

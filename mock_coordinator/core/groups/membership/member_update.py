"""The consequences of a member's request: group epoch, target, and the member's next step.

Theory of operation
===================

A consumer heartbeat and a JoinGroup of a classic member (KIP-848, migration) carry the same
information. Once the group and the member's old and new state are known, the steps are the same for
both: record the changed subscription, start resolving regexes, raise the group epoch if an input of
the target changed, compute the target if it is due, and move the member one step towards it. Each
step adds its records, in the order in which a broker writes them.

Nothing is applied here; the handler turns ``records`` and ``timers`` into a ``Decision``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kip848_client.core.assignors import Partitions
from kip848_client.core.types import TopicId
from mock_coordinator.core.groups.assignment.current_assignment import (
    OwnedReport,
    Reconciliation,
    reconcile,
)
from mock_coordinator.core.groups.assignment.subscriptions import (
    RegexChange,
    changed_regex,
    epoch_records,
    prospective_topics,
    regexes_to_resolve,
    summarize,
)
from mock_coordinator.core.groups.assignment.target_assignment import (
    Sender,
    compute_target,
    is_interval_over,
)
from mock_coordinator.core.groups.client_assignors.sender import members_compute
from mock_coordinator.core.groups.records.assignor_values import NO_METADATA
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import MemberMetadata, StateRecord
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Environment, Resolution, TimerChange
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.inputs import ClientInfo

__all__ = ["MemberUpdate", "SubscriptionChange"]


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """What a request changed of its member's subscription."""

    names: bool
    regex: RegexChange
    assignor: bool

    @property
    def any(self) -> bool:
        """Whether the member may be subscribed to other topics than before."""
        return self.names or self.regex is not RegexChange.NONE


@dataclass(slots=True)
class MemberUpdate:
    """One request of a member on its way through the steps."""

    env: Environment
    now_ms: int
    records: list[StateRecord] = field(default_factory=list)
    timers: list[TimerChange] = field(default_factory=list)
    metadata_checked: bool = False
    resolve: tuple[str, ...] = ()

    def changed_subscription(
        self, group: ConsumerGroup, before: Member, after: Member
    ) -> SubscriptionChange:
        """Note what the member changed, and start resolving regexes when it is time."""
        old, new = before.subscription, after.subscription
        if old is not new:
            self.records.append(MemberMetadata(group.group_id, after.member_id, new))
        regex = changed_regex(
            self.env, group, old.subscribed_topic_regex, new.subscribed_topic_regex, self.records
        )
        if new.subscribed_topic_regex or group.regexes:
            self.resolve = regexes_to_resolve(self.env, group, old, new, self.now_ms)
        return SubscriptionChange(
            names=old.subscribed_topic_names != new.subscribed_topic_names,
            regex=regex,
            assignor=old.server_assignor != new.server_assignor,
        )

    def resolution(self, group_id: str, client: ClientInfo) -> Resolution | None:
        """What is to be resolved after the request of this client, if anything."""
        return Resolution(group_id, self.resolve, client) if self.resolve else None

    def group_epoch(self, group: ConsumerGroup, sender: Sender, *, bump: bool) -> int:
        """The group epoch after this request: one more when it must be (``bump``), or when the
        subscribed topics are found to have changed."""
        if not bump and group.metadata_fresh:
            return group.epoch
        self.metadata_checked = True
        topics = prospective_topics(group, sender.before.subscription, sender.after.subscription)
        summary = summarize(self.env, topics)
        bump = bump or not summary.matches(group)
        epoch = group.epoch + bump
        self.records += epoch_records(group, summary, epoch, bump=bump)
        return epoch

    def target(self, group: ConsumerGroup, epoch: int, sender: Sender) -> tuple[int, Partitions]:
        """The target in force for the sender and its epoch, recomputed when it is due."""
        due = epoch > group.assignment_epoch and is_interval_over(self.env, group, self.now_ms)
        if due and not members_compute(group, sender):
            counted = self.metadata_checked  # else the group's own subscription type stands
            records, target = compute_target(
                self.env, group, epoch, sender, self.now_ms, counts_sender=counted
            )
            self.records += records
            return epoch, target
        target = group.target_of(sender.after.member_id, sender.after.instance_id)
        return group.assignment_epoch, target

    def reconciled(
        self,
        group: ConsumerGroup,
        member: Member,
        target: tuple[int, Partitions],
        owned: OwnedReport | None,
        *,
        changed: bool,
    ) -> Member:
        """The member after one step towards its target (with the target's epoch)."""
        target_epoch, partitions = target
        metadata = NO_METADATA
        if target_epoch == group.assignment_epoch:  # else the broker has just computed it
            metadata = group.metadata_of(member.member_id, member.instance_id)
        if not changed and member.is_reconciled_to(target_epoch):
            return member  # what most heartbeats come to
        subscription = member.subscription
        resolved = group.resolved.get(subscription.subscribed_topic_regex)
        names = {*subscription.subscribed_topic_names, *(resolved.topics if resolved else ())}
        catalog = self.env.catalog

        def is_subscribed(topic_id: TopicId) -> bool:
            topic = catalog.topic_by_id(topic_id)
            return topic is not None and topic.name in names

        step = Reconciliation(
            profile=self.env.profile,
            target_epoch=target_epoch,
            target=partitions,
            holders=group.holders,
            owned=owned,
            subscription_changed=changed,
            is_subscribed=is_subscribed,
            metadata=metadata,
        )
        return self.moved(group, member, step)

    def moved(self, group: ReconciledGroup, member: Member, step: Reconciliation) -> Member:
        """The member after this step, if it changes anything."""
        current = reconcile(member, step)
        if current is member.current:
            return member
        self.records.append(group.records.current(group.group_id, member.member_id, current))
        member = replace(member, current=current)
        self._arm_rebalance(group.group_id, member)
        return member

    def arm(self, kind: TimerKind, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Restart a timer of the member."""
        timer = Timer(kind, group_id, member_id)
        self.timers.append(TimerChange(timer, self.now_ms + timeout_ms))

    def _arm_rebalance(self, group_id: str, member: Member) -> None:
        """A member that has to give something up has its own rebalance timeout to do so."""
        timer = Timer(TimerKind.REBALANCE, group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            deadline_ms = self.now_ms + max(member.subscription.rebalance_timeout_ms, 0)
            self.timers.append(TimerChange(timer, deadline_ms, member.epoch))
        else:
            self.timers.append(TimerChange(timer, None))

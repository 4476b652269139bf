"""One step of a member towards its target: revoke, wait, receive (KIP-848, reconciliation).

Pure: the input is a member, its target and the current owners; the result is the member's next
current assignment. Two rules are enough. A member first revokes what its target does not have; it
stays at its epoch and receives nothing meanwhile. And a partition that one member still holds is
not assigned to another; the member waits in UNRELEASED_PARTITIONS at its new epoch. Each member
moves on its own; none waits for the group.

Topics and partitions here stand for anything that a group assigns: nothing interprets the ids (see
``reconciled_group``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kip848_client.core.assignors import Partitions
from kip848_client.core.types import TopicId
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.assignor_values import NO_METADATA, AssignmentMetadata
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    NOTHING_OWNED,
    CurrentAssignment,
    OwnedPartitions,
)
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.refused import Refused

__all__ = [
    "Holders",
    "OwnedReport",
    "OwnedRow",
    "Reconciliation",
    "away",
    "handed_over",
    "reconcile",
]


class OwnedRow(Protocol):
    """Partitions of one topic that a member says it owns."""

    @property
    def topic_id(self) -> bytes:
        """The topic."""
        ...

    @property
    def partitions(self) -> Sequence[int]:
        """Its partitions."""
        ...


OwnedReport = Sequence[OwnedRow]
"""TopicPartitions of a heartbeat: what the member says it owns."""

Holders = Mapping[TopicId, Mapping[int, str]]
"""Topic id -> partition -> the member that has it; a free partition is not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The input of one step.

    ``target_epoch`` and ``target`` are those in force, which may be older than the group epoch.
    ``owned`` is the member's report, ``None`` for "as before". ``is_subscribed`` says whether the
    member currently subscribes to an existing topic (asked in profiles from 4.2 on).
    ``is_held_back``, if there is one, says of a partition that the member has to wait for it even
    though it is free.
    """

    profile: Profile
    target_epoch: int
    target: Partitions
    holders: Holders
    owned: OwnedReport | None
    subscription_changed: bool
    is_subscribed: Callable[[TopicId], bool]
    metadata: AssignmentMetadata = NO_METADATA
    """What the target says to the member beside its partitions; delivered with its epoch."""
    is_held_back: Callable[[TopicId, int], bool] | None = None

    def owns_any(self, partitions: OwnedPartitions) -> bool:
        """Whether the member still uses any of these. A member that does not say, does."""
        if self.owned is None:
            return True
        for report in self.owned:
            mine = partitions.get(TopicId(report.topic_id))
            if mine and any(partition in mine for partition in report.partitions):
                return True
        return False


def reconcile(member: Member, step: Reconciliation) -> CurrentAssignment:
    """The member's current assignment after this heartbeat; the same object when nothing changed.

    Raises ``Refused`` FENCED_MEMBER_EPOCH for a member in a state that a newer broker wrote.
    """
    if not step.subscription_changed and member.is_reconciled_to(step.target_epoch):
        return member.current
    strips = step.subscription_changed and step.profile.target_filtered_by_subscription
    result = member.current
    if member.state is MemberState.STABLE:
        if member.epoch != step.target_epoch:
            result = _next(member, step, member.epoch)
        elif strips:
            result = _without_unsubscribed(member, step)
    elif member.state is MemberState.UNREVOKED_PARTITIONS:
        if not step.owns_any(member.pending_revocation):
            # 4.0 and 4.1 count the acknowledgement as a step of the epoch
            advance = 1 if step.profile.unrevoked_ack_advances_epoch else 0
            result = _next(member, step, member.epoch + advance)
        elif strips:
            result = _without_unsubscribed(member, step)
    elif member.state is MemberState.UNRELEASED_PARTITIONS:
        result = _next(member, step, member.epoch)
    else:
        if step.owned is None or step.owned:
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        result = _next(member, step, step.target_epoch)
    if result is member.current:
        return result
    result = _as_stored(step.profile, result)
    return member.current if result == member.current else result


def away(profile: Profile, current: CurrentAssignment) -> CurrentAssignment:
    """A static member that leaves for a while (epoch -2): it keeps what it has, and what it was
    giving up is free."""
    epochs = profile.commits_use_assignment_epoch
    return _as_stored(
        profile,
        replace(
            current,
            member_epoch=-2,
            assigned=_at_epoch(current.assigned, 0) if epochs else current.assigned,
            pending_revocation=NOTHING_OWNED,
        ),
    )


def handed_over(profile: Profile, current: CurrentAssignment) -> CurrentAssignment:
    """What the member that takes over a static member's place begins with."""
    return _as_stored(profile, replace(current, member_epoch=0, previous_member_epoch=0))


def _next(member: Member, step: Reconciliation, base_epoch: int) -> CurrentAssignment:
    """Compare what the member has with what it should have."""
    keep: dict[TopicId, Mapping[int, int]] = {}
    revoke: dict[TopicId, Mapping[int, int]] = {}
    give: dict[TopicId, dict[int, int]] = {}
    blocked = False
    target, filtered = step.target, step.profile.target_filtered_by_subscription
    for topic_id, assigned in member.assigned.items():
        wanted = set(target.get(topic_id, ()))
        if filtered and not step.is_subscribed(topic_id):
            wanted = set()
        kept = {partition: epoch for partition, epoch in assigned.items() if partition in wanted}
        if kept:
            keep[topic_id] = kept
        if len(kept) < len(assigned):
            revoke[topic_id] = {
                partition: epoch for partition, epoch in assigned.items() if partition not in wanted
            }
    for topic_id, partitions in target.items():
        if filtered and not step.is_subscribed(topic_id):
            continue
        mine = member.assigned.get(topic_id, {})
        own_pending = member.pending_revocation.get(topic_id, {})
        holders = step.holders.get(topic_id, {})
        is_held_back = step.is_held_back
        for partition in partitions:
            if partition in mine:
                continue
            if (partition in holders and partition not in own_pending) or (
                is_held_back is not None and is_held_back(topic_id, partition)
            ):
                blocked = True
            else:
                give.setdefault(topic_id, {})[partition] = step.target_epoch
    if revoke and step.owns_any(revoke):
        return CurrentAssignment(
            member_epoch=base_epoch,
            previous_member_epoch=member.epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=keep,
            pending_revocation=revoke,
            metadata=member.current.metadata,
        )
    return CurrentAssignment(
        member_epoch=step.target_epoch,
        previous_member_epoch=member.epoch,
        state=MemberState.UNRELEASED_PARTITIONS if blocked else MemberState.STABLE,
        assigned=_united(keep, give),
        metadata=step.metadata,
    )


def _without_unsubscribed(member: Member, step: Reconciliation) -> CurrentAssignment:
    """Take away the topics that the member no longer subscribes to, before a new target exists."""
    assigned: dict[TopicId, Mapping[int, int]] = {}
    pending = dict(member.pending_revocation)
    stripped = False
    for topic_id, partitions in member.assigned.items():
        if step.is_subscribed(topic_id):
            assigned[topic_id] = partitions
        else:
            stripped = True
            pending[topic_id] = {**pending.get(topic_id, {}), **partitions}
    if not stripped:
        return member.current
    # from 4.3 on this counts as a change of the epoch, as every other step does
    previous = (
        member.epoch
        if step.profile.commits_use_assignment_epoch
        else member.current.previous_member_epoch
    )
    current = replace(member.current, assigned=assigned, previous_member_epoch=previous)
    if not step.owns_any(pending):
        return current
    return replace(current, state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=pending)


def _united(
    keep: Mapping[TopicId, Mapping[int, int]], give: Mapping[TopicId, Mapping[int, int]]
) -> OwnedPartitions:
    if not give:
        return keep
    united = dict(keep)
    for topic_id, partitions in give.items():
        united[topic_id] = {**united.get(topic_id, {}), **partitions}
    return united


def _as_stored(profile: Profile, current: CurrentAssignment) -> CurrentAssignment:
    """What reading the record back gives: brokers before 4.3 store no assignment epochs."""
    if profile.commits_use_assignment_epoch:
        return current
    epoch = max(current.member_epoch, 0)
    return replace(
        current,
        assigned=_at_epoch(current.assigned, epoch),
        pending_revocation=_at_epoch(current.pending_revocation, epoch),
    )


def _at_epoch(owned: OwnedPartitions, epoch: int) -> OwnedPartitions:
    return {topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in owned.items()}

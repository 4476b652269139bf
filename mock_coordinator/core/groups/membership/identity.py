"""The sender of a heartbeat: a new member, a known one, or one that replaces a static member.

A member with a wrong epoch is fenced (FENCED_MEMBER_EPOCH): it must give everything up and rejoin;
the group keeps it until it leaves, rejoins or its session ends. There is one exception: a member
may repeat its previous epoch as long as it owns nothing that it should not, because the response
that raised its epoch may have been lost (KIP-848).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kip848_client.core.types import JOIN_EPOCH, STATIC_LEAVE_EPOCH, TopicId
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.assignment.current_assignment import OwnedReport, handed_over
from mock_coordinator.core.groups.records.assignor_values import NO_METADATA
from mock_coordinator.core.groups.records.state_records import OwnedPartitions, StateRecord
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.refused import Refused

__all__ = [
    "Identity",
    "identify",
    "leaving_member",
    "removal_records",
    "replacement",
    "require_room",
]


@dataclass(frozen=True, slots=True)
class Identity:
    """The member as it is before this heartbeat, and the records that make it so.

    ``replaced``: the member id whose place it takes as a static member.
    """

    member: Member
    replaced: str | None = None
    records: list[StateRecord] = field(default_factory=list)

    @property
    def other(self) -> str | None:
        """The member id that was replaced, unless it replaced itself."""
        return None if self.replaced == self.member.member_id else self.replaced


def require_room(
    profile: Profile,
    group: ReconciledGroup,
    max_size: int,
    member_id: str,
    instance_id: str | None,
) -> None:
    """Raise ``Refused`` GROUP_MAX_SIZE_REACHED when the group is full and the member is not in
    it."""
    if len(group.members) < max_size or member_id in group.members:
        return
    if (
        profile.static_replacement_ignores_max_size
        and instance_id is not None
        and instance_id in group.static_members
    ):
        return
    raise Refused(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The {group.type} group has reached its maximum capacity of {max_size} members.",
    )


def identify(
    profile: Profile,
    group: ReconciledGroup,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    owned: OwnedReport | None,
) -> Identity:
    """Find or make the member of a heartbeat with epoch >= 0, which says that it owns this.

    Raises ``Refused``: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH or
    UNRELEASED_INSTANCE_ID.
    """
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            if epoch != JOIN_EPOCH:
                raise _unknown_member(group, member_id)
            return Identity(Member(member_id))
    elif epoch == JOIN_EPOCH:
        return _static_join(profile, group, member_id, instance_id)
    else:
        member = _known_instance(group.static_member(instance_id), member_id, instance_id)
    _require_epoch(profile, group, member, epoch, owned)
    return Identity(member)


def _static_join(
    profile: Profile, group: ReconciledGroup, member_id: str, instance_id: str
) -> Identity:
    existing = group.static_member(instance_id)
    if existing is None:
        return Identity(group.members.get(member_id) or Member(member_id))
    if existing.classic is None and existing.epoch != STATIC_LEAVE_EPOCH:
        raise Refused(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {existing.member_id} member.",
        )
    return replacement(profile, group, existing, member_id)


def replacement(profile: Profile, group: ReconciledGroup, old: Member, member_id: str) -> Identity:
    """Everything of the old member moves to the new one, under the new member id."""
    new = Member(member_id, old.subscription, handed_over(profile, old.current))
    group_id, types = group.group_id, group.records
    return Identity(
        new,
        replaced=old.member_id,
        records=[
            *removal_records(group, old.member_id),
            types.member(group_id, member_id, new.subscription),
            types.target(
                group_id,
                member_id,
                group.target_of(old.member_id),
                group.target_metadata.get(old.member_id, NO_METADATA),
            ),
            types.current(group_id, member_id, new.current),
        ],
    )


def removal_records(group: ReconciledGroup, member_id: str) -> list[StateRecord]:
    """The tombstones that take a member out of its group, in Kafka's order."""
    group_id, types = group.group_id, group.records
    return [
        types.current(group_id, member_id, None),
        types.target(group_id, member_id, None),
        types.member(group_id, member_id, None),
    ]


def leaving_member(group: ReconciledGroup, member_id: str, instance_id: str | None) -> Member:
    """The member that says it leaves; its epoch is not looked at.

    Raises ``Refused``: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise _unknown_member(group, member_id)
        return member
    return _known_instance(group.static_member(instance_id), member_id, instance_id)


def _known_instance(existing: Member | None, member_id: str, instance_id: str) -> Member:
    if existing is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if existing.member_id != member_id:
        raise Refused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{existing.member_id}.",
        )
    return existing


def _unknown_member(group: ReconciledGroup, member_id: str) -> Refused:
    return Refused(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )


def _require_epoch(
    profile: Profile,
    group: ReconciledGroup,
    member: Member,
    received: int,
    owned: OwnedReport | None,
) -> None:
    """Raise ``Refused`` FENCED_MEMBER_EPOCH when the member is too far ahead or behind."""
    known = member.epoch
    if received == known or (received == JOIN_EPOCH and profile.rejoin_at_zero_accepted):
        return
    if received > known:
        raise _fenced(group, "greater", received, known)
    if received != member.previous_epoch or not _is_subset(owned, member.assigned):
        raise _fenced(group, "smaller", received, known)


def _fenced(group: ReconciledGroup, how: str, received: int, known: int) -> Refused:
    return Refused(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {group.type} group member has a {how} member epoch ({received}) than the one known "
        f"by the group coordinator ({known}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _is_subset(owned: OwnedReport | None, assigned: OwnedPartitions) -> bool:
    """Whether the member reports what it owns, and nothing outside of what is assigned to it."""
    if owned is None:
        return False
    for report in owned:
        mine = assigned.get(TopicId(report.topic_id))
        if mine is None or any(partition not in mine for partition in report.partitions):
            return False
    return True

"""Movements: partitions, or items of Connect workers, that change their member.

They are derived from the description of a group, so they work on every broker that describes
KIP-848 groups. A description is a snapshot. The previous owner of a partition, and its arrival,
only show in comparison with an earlier description of the same group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kip848_client.admin.core._model import GroupDescription, MemberDescription, WorkerItem
from kip848_client.core.types import TopicPartition

__all__ = ["Movement", "MovementState", "movements"]

Thing = TopicPartition | WorkerItem


class MovementState(StrEnum):
    """The progress of a movement from one member to another."""

    PENDING_REVOCATION = "PendingRevocation"
    """``from_member`` has not given it up yet."""
    REVOKED = "Revoked"
    """No member has it; ``to_member`` does not have it yet. Brokers before Kafka 4.3 also report
    this while a member still has to give it up; an earlier description distinguishes the two."""
    ASSIGNED = "Assigned"
    """``to_member`` has it. Needs an earlier description."""


@dataclass(frozen=True, slots=True)
class Movement:
    """One partition of a consumer group, or one item of a Connect group, that moves."""

    what: TopicPartition | WorkerItem
    """The partition or item."""
    from_member: str | None
    """The id of the member that has or had it; ``None`` if unknown, or if no member had it."""
    to_member: str | None
    """The id of the member that is to get it; ``None`` if there is none."""
    state: MovementState
    """How far it is."""


def movements(
    group: GroupDescription, before: GroupDescription | None = None
) -> tuple[Movement, ...]:
    """List the partitions, or items of Connect workers, that change their member.

    A description is a snapshot. With an earlier one of the same group, movements that ended since
    then are listed as ``ASSIGNED``, and revoked partitions have a ``from_member``. A classic group
    has no targets, so it has no movements. Raises nothing.

    Args:
        group: What ``Admin.describe_groups`` found.
        before: An earlier description of the same group.

    Returns:
        The movements, sorted by what moves.
    """
    has, targets = _holders(group), _targets(group)
    had = {} if before is None else _holders(before)
    members = {each.member_id: each for each in group.members}
    found: list[Movement] = []
    for what in sorted({*has, *targets}, key=_order):
        holder, to, earlier = has.get(what), targets.get(what), had.get(what)
        was_with = None if earlier is None else earlier.member_id
        if holder is not None and holder.member_id != to:
            who: str | None = holder.member_id
            state = MovementState.PENDING_REVOCATION
        elif holder is not None:
            if before is None or was_with == holder.member_id:
                continue
            state, who = MovementState.ASSIGNED, was_with
        elif earlier is not None and was_with != to and _is_giving_up(earlier, members):
            state, who = MovementState.PENDING_REVOCATION, was_with
        else:
            state, who = MovementState.REVOKED, was_with
        found.append(Movement(what, who, to, state))
    return tuple(found)


def _is_giving_up(earlier: MemberDescription, members: Mapping[str, MemberDescription]) -> bool:
    """Whether a member is still at the epoch at which it had the partition. It advances when it has
    given up what its next target takes away."""
    now = members.get(earlier.member_id)
    return now is not None and now.epoch == earlier.epoch


def _holders(group: GroupDescription) -> dict[Thing, MemberDescription]:
    """The holder of each partition or item, including those still to be given up."""
    found: dict[Thing, MemberDescription] = {}
    for member in group.members:
        if member.target_assignment is None:
            continue
        found.update(dict.fromkeys(member.assignment, member))
        if member.worker is not None:
            found.update(
                dict.fromkeys((*member.worker.assignment, *member.worker.revoking), member)
            )
    return found


def _targets(group: GroupDescription) -> dict[Thing, str]:
    found: dict[Thing, str] = {}
    for member in group.members:
        for tp in member.target_assignment or ():
            found[tp] = member.member_id
        if member.worker is not None:
            for item in member.worker.target_assignment or ():
                found[item] = member.member_id
    return found


def _order(what: Thing) -> tuple[str, int, int]:
    if isinstance(what, TopicPartition):
        return what.topic, what.partition, 0
    task, generation = what.task, what.generation
    return (
        what.connector,
        -1 if task is None else task,
        -1 if generation is None else generation,
    )

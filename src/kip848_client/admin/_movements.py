"""Movements: which partitions, or items of Connect workers, change their member.

They are read off the description of a group, so they work on every broker that describes groups of
KIP-848. A description is a moment: who had a partition before, and that it has arrived, only shows
beside an earlier description of the same group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kip848_client._types import TopicPartition
from kip848_client.admin._model import GroupDescription, MemberDescription, WorkerItem

__all__ = ["Movement", "MovementState", "movements"]

Thing = TopicPartition | WorkerItem


class MovementState(StrEnum):
    """How far something has come on its way from one member to another."""

    PENDING_REVOCATION = "PendingRevocation"
    """``from_member`` has not given it up yet."""
    REVOKED = "Revoked"
    """No member has it, and ``to_member`` has not got it yet. Before Kafka 4.3 a broker shows it so
    while a member still has to give it up, too; an earlier description tells the two apart."""
    ASSIGNED = "Assigned"
    """``to_member`` has it. Only beside an earlier description."""


@dataclass(frozen=True, slots=True)
class Movement:
    """One partition of a consumer group, or one item of a Connect group, that moves."""

    what: TopicPartition | WorkerItem
    from_member: str | None
    """The member id of the one that has, or had, it; ``None`` where that is not known, or no member
    had it."""
    to_member: str | None
    """The member id of the one that is to have it; ``None`` where no member is to."""
    state: MovementState


def movements(
    group: GroupDescription, before: GroupDescription | None = None
) -> tuple[Movement, ...]:
    """What is on its way in a group, sorted; of a classic group nothing, which has no targets.

    ``before`` is an earlier description of the same group. With it a movement that is over since
    then is there once more, as ``ASSIGNED``, and ``from_member`` is known of what was given up.
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
    """Whether a member that had something is still at the epoch at which it had it: giving up what
    the next target takes from it is what moves it on."""
    now = members.get(earlier.member_id)
    return now is not None and now.epoch == earlier.epoch


def _holders(group: GroupDescription) -> dict[Thing, MemberDescription]:
    """What each thing is held by, what is to be given up included."""
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

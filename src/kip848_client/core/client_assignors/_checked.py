"""Checks an assignor's result before it is sent, while the cause is still known. The coordinator
makes the same checks, but its error messages have ids instead of names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from kip848_client.core.client_assignors._model import (
    AssignorFailed,
    GroupAssignment,
    GroupMember,
    MemberAssignment,
    PreparedGroup,
)
from kip848_client.core.short import error_text, short
from kip848_client.core.types import TopicId, TopicPartition

__all__ = ["CheckedAssignment", "MemberRow", "checked_assignment"]

_INT8_MAX: Final = 127
_INT16_MAX: Final = 32_767


@dataclass(frozen=True, slots=True)
class MemberRow:
    """The target partitions of one member, by topic id, sorted."""

    member_id: str
    partitions: tuple[tuple[TopicId, tuple[int, ...]], ...]
    version: int
    data: bytes


@dataclass(frozen=True, slots=True)
class CheckedAssignment:
    """An assignment that the coordinator can accept; with an error it has no rows."""

    rows: tuple[MemberRow, ...] = ()
    error: int = 0


def checked_assignment(group: PreparedGroup, returned: object) -> CheckedAssignment:
    """Convert an assignor's result. Raises ``AssignorFailed`` if it is invalid: another type,
    unknown members or topics, a partition that is missing or assigned twice.
    """
    try:
        return _checked(group, returned)
    except AssignorFailed:
        raise
    except Exception as err:  # of a mapping or a collection that the user has written
        raise AssignorFailed(f"what it returned cannot be read: {error_text(err)}") from err


def _checked(group: PreparedGroup, returned: object) -> CheckedAssignment:
    if not isinstance(returned, GroupAssignment):
        raise AssignorFailed(f"it returned {short(returned)}; expected a GroupAssignment")
    error = _number(returned.error, 0, _INT8_MAX, "error")
    if error:
        return CheckedAssignment(error=error)
    members = cast("Any", returned.members)
    if not isinstance(members, Mapping):
        raise AssignorFailed(f"members = {short(members)}: expected assignments by member id")
    taken: dict[TopicPartition, str] = {}
    rows: list[MemberRow] = []
    for member_id, assignment in members.items():
        member = group.members.get(member_id) if isinstance(member_id, str) else None
        if member is None:
            raise AssignorFailed(f"there is no member {short(member_id)} in the group")
        if not isinstance(assignment, MemberAssignment):
            what = f"member {member_id} is given {short(assignment)}"
            raise AssignorFailed(f"{what}; expected a MemberAssignment")
        rows.append(_row(group, member_id, member, assignment, taken))
    for name, topic in group.topics.items():
        for number in range(topic.partition_count):
            if (name, number) not in taken:
                raise AssignorFailed(f"partition {name}-{number} is not assigned to any member")
    return CheckedAssignment(tuple(rows))


def _row(
    group: PreparedGroup,
    member_id: str,
    member: GroupMember,
    assignment: MemberAssignment,
    taken: dict[TopicPartition, str],
) -> MemberRow:
    own = member.metadata.version
    version = own if assignment.version is None else assignment.version
    data = cast("Any", assignment.data)
    if not isinstance(data, bytes | bytearray | memoryview):
        raise AssignorFailed(f"data for member {member_id} = {short(data)}: expected bytes")
    partitions = cast("Any", assignment.partitions)
    if isinstance(partitions, str | bytes) or not isinstance(partitions, Collection):
        what = f"partitions of member {member_id} = {short(partitions)}"
        raise AssignorFailed(f"{what}: expected a collection of (topic, partition)")
    mine: dict[TopicId, list[int]] = {}
    for each in partitions:
        tp = _partition(group, member_id, member, each)
        other = taken.get(tp)
        if other is not None:
            where = f"partition {tp.topic}-{tp.partition}"
            raise AssignorFailed(f"{where} is given twice, to {other} and to {member_id}")
        taken[tp] = member_id
        mine.setdefault(group.topics[tp.topic].topic_id, []).append(tp.partition)
    return MemberRow(
        member_id,
        tuple((topic_id, tuple(sorted(numbers))) for topic_id, numbers in sorted(mine.items())),
        _number(version, -1, _INT16_MAX, f"version for member {member_id}"),
        bytes(data),
    )


def _partition(
    group: PreparedGroup, member_id: str, member: GroupMember, each: object
) -> TopicPartition:
    if not isinstance(each, tuple) or len(cast("tuple[object, ...]", each)) != 2:
        what = f"member {member_id} is given {short(each)}"
        raise AssignorFailed(f"{what}; expected (topic, partition)")
    name, number = cast("tuple[Any, Any]", each)
    topic = group.topics.get(name) if isinstance(name, str) else None
    if topic is None:
        raise AssignorFailed(f"member {member_id} is given topic {short(name)}, which is not there")
    _number(number, 0, topic.partition_count - 1, f"partition of {name}")
    if name not in member.topics:
        raise AssignorFailed(f"member {member_id} is given {name}, and does not subscribe to it")
    return TopicPartition(name, number)


def _number(value: object, low: int, high: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise AssignorFailed(f"{what} = {short(value)}: expected a number from {low} to {high}")
    return value

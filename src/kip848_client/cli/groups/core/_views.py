"""The output of ``kip848 groups describe``, as tables and as JSON. Pure.

Columns, their order and their widths are those of kafka-consumer-groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from kip848_client.admin.core._model import (
    AssignorMessage,
    CommittedOffset,
    GroupDescription,
    GroupListing,
    MemberDescription,
)
from kip848_client.admin.core._movements import Movement, MovementState, movements
from kip848_client.cli.core._tables import NOTHING, Column, Fit, Form, Table
from kip848_client.core.types import TopicPartition
from kip848_client.core.visible import visible

__all__ = [
    "GROUP",
    "REBALANCING",
    "SAID",
    "GroupOffsets",
    "Move",
    "Moves",
    "OffsetRow",
    "assignment_text",
    "assignor_data",
    "group_data",
    "group_offsets",
    "listing_data",
    "listing_names",
    "listing_table",
    "members_data",
    "members_table",
    "moving",
    "new_offsets_data",
    "new_offsets_table",
    "offsets_data",
    "offsets_table",
    "said_cells",
    "said_data",
    "state_data",
    "state_table",
    "type_column",
    "type_text",
]

GROUP: Final = Column("GROUP", grows=True, fit=Fit.FOLDED, is_title=True)
_TOPIC: Final = Column("TOPIC", grows=True, fit=Fit.FOLDED)
_MEMBER: Final = Column("CONSUMER-ID", grows=True, fit=Fit.SHORTENED)
_HOST: Final = Column("HOST", grows=True, fit=Fit.SHORTENED, may_go=True)
_LIST_WIDTH: Final = 20
_NAME_WIDTH: Final = 15
_NAME_MARGIN: Final = 10
_STATE_WIDTH: Final = 20
_COORDINATOR_WIDTH: Final = 25
_ASSIGNMENT_WIDTH: Final = 20
_PARTITION_WIDTH: Final = 10


def type_column(*, types: bool) -> Column:
    """The type of the group: on request, and always on a terminal."""
    return Column("TYPE", is_title=True, form=Form.BOTH if types else Form.FITTED)


def type_text(group: GroupDescription) -> str:
    """``Consumer``, ``Classic``, ``Connect``; or the protocol type of a classic group that shares
    something other than partitions."""
    if group.type != "Classic" or group.protocol_type in ("", "consumer"):
        return group.type
    return f"{group.type} ({group.protocol_type})"


REBALANCING: Final = frozenset(
    {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
)
"""Transient states."""


# -- list ----------------------------------------------------------------------------------------


def listing_names(groups: Iterable[GroupListing]) -> list[str]:
    """One line per group."""
    return [visible(each.group_id) for each in groups]


def listing_table(groups: Sequence[GroupListing], *, types: bool, states: bool) -> Table:
    """Names with types, states, or both."""
    longest = max(map(len, listing_names(groups)), default=0)
    columns = [Column("GROUP", max(longest, _NAME_WIDTH) + _NAME_MARGIN, fit=Fit.FOLDED)]
    columns += [Column("TYPE", _LIST_WIDTH)] if types else []
    columns += [Column("STATE", _LIST_WIDTH)] if states else []
    rows = [
        (each.group_id, *((each.type,) if types else ()), *((each.state,) if states else ()))
        for each in groups
    ]
    return Table(columns, rows)


def listing_data(groups: Iterable[GroupListing]) -> list[dict[str, Any]]:
    """The data for ``--json``."""
    return [
        {
            "group": each.group_id,
            "type": each.type,
            "state": each.state,
            "protocol_type": each.protocol_type,
        }
        for each in groups
    ]


# -- offsets -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """A partition with a member or a committed offset of a group."""

    partition: TopicPartition
    committed: CommittedOffset | None
    end: int | None
    """``None`` if the broker does not return it, for instance for a deleted topic."""
    member: MemberDescription | None

    @property
    def lag(self) -> int | None:
        """The number of existing records that are not committed."""
        if self.committed is None or self.end is None:
            return None
        return self.end - self.committed.offset


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """A group with its assigned or committed partitions."""

    group: GroupDescription
    rows: tuple[OffsetRow, ...]


def group_offsets(
    group: GroupDescription,
    committed: Mapping[TopicPartition, CommittedOffset],
    ends: Mapping[TopicPartition, int],
) -> GroupOffsets:
    """Members with most partitions first, then partitions without an owner."""
    by_size = sorted(group.members, key=lambda each: (-len(each.assignment), each.member_id))
    rows = [
        OffsetRow(tp, committed.get(tp), ends.get(tp), member)
        for member in by_size
        for tp in member.assignment
    ]
    owned = {row.partition for row in rows}
    rows += [
        OffsetRow(tp, offset, ends.get(tp), None)
        for tp, offset in sorted(committed.items())
        if tp not in owned
    ]
    return GroupOffsets(group, tuple(rows))


def offsets_table(of_group: GroupOffsets, *, verbose: bool, types: bool = False) -> Table:
    """Positions and lag. ``types``: also show the group's type, which Kafka's tool does not."""
    columns = [
        GROUP,
        type_column(types=types),
        _TOPIC,
        Column("PARTITION", _PARTITION_WIDTH),
        *([Column("LEADER-EPOCH", short="EPOCH")] if verbose else []),
        Column("CURRENT-OFFSET", short="CURRENT"),
        Column("LOG-END-OFFSET", short="LOG-END"),
        Column("LAG"),
        _MEMBER,
        _HOST,
        Column("CLIENT-ID", 0, fit=Fit.SHORTENED),
    ]
    return Table(columns, [_offset_cells(of_group, row, verbose) for row in of_group.rows])


def _offset_cells(of_group: GroupOffsets, row: OffsetRow, verbose: bool) -> tuple[object, ...]:
    committed, member = row.committed, row.member
    epoch = None if committed is None else committed.leader_epoch
    return (
        of_group.group.group_id,
        type_text(of_group.group),
        row.partition.topic,
        row.partition.partition,
        *((epoch,) if verbose else ()),
        None if committed is None else committed.offset,
        row.end,
        row.lag,
        *(
            (None, None, None)
            if member is None
            else (member.member_id, member.host, member.client_id)
        ),
    )


def offsets_data(of_group: GroupOffsets) -> list[dict[str, Any]]:
    """The data for ``--json``."""
    return [
        {
            "topic": row.partition.topic,
            "partition": row.partition.partition,
            "leader_epoch": None if row.committed is None else row.committed.leader_epoch,
            "current_offset": None if row.committed is None else row.committed.offset,
            "log_end_offset": row.end,
            "lag": row.lag,
            "consumer_id": None if row.member is None else row.member.member_id,
            "host": None if row.member is None else row.member.host,
            "client_id": None if row.member is None else row.member.client_id,
        }
        for row in of_group.rows
    ]


# -- members -------------------------------------------------------------------------------------


def assignment_text(partitions: Sequence[TopicPartition] | None) -> str:
    """``orders:0,1;payments:2``."""
    if not partitions:
        return NOTHING
    return ";".join(
        sorted(
            f"{topic}:{','.join(str(tp.partition) for tp in of_topic)}"
            for topic, of_topic in groupby(partitions, key=lambda tp: tp.topic)
        )
    )


_EPOCHS_AND_ASSIGNMENTS: Final = (
    Column("CURRENT-EPOCH", form=Form.PLAIN),
    Column("CURRENT-ASSIGNMENT", _ASSIGNMENT_WIDTH, grows=True, form=Form.PLAIN),
    Column("TARGET-EPOCH", form=Form.PLAIN),
    Column("TARGET-ASSIGNMENT", _ASSIGNMENT_WIDTH, grows=True, form=Form.PLAIN),
    Column("EPOCH", form=Form.FITTED),
    Column("ASSIGNMENT", fit=Fit.FOLDED, form=Form.FITTED),
    Column("TARGET", fit=Fit.FOLDED, form=Form.FITTED),
)


def members_table(group: GroupDescription, *, verbose: bool, types: bool = False) -> Table:
    """The members of the group."""
    static = any(each.instance_id is not None for each in group.members)
    mixed = verbose and _is_mixed(group)
    instance = Column("GROUP-INSTANCE-ID", 17, grows=True, short="INSTANCE-ID", fit=Fit.SHORTENED)
    columns = [
        GROUP,
        type_column(types=types),
        _MEMBER,
        *([instance] if static else []),
        _HOST,
        Column("CLIENT-ID", grows=True, fit=Fit.SHORTENED),
        Column("#PARTITIONS", short="PARTS"),
    ]
    if verbose:
        columns += _EPOCHS_AND_ASSIGNMENTS
        columns += SAID if group.is_client_assignor else ()
    if mixed:
        columns.append(Column("UPGRADED", 0))
    rows = [
        (
            group.group_id,
            type_text(group),
            each.member_id,
            *((each.instance_id or "",) if static else ()),
            each.host,
            each.client_id,
            len(each.assignment),
            *(_epochs_and_assignments(group, each) if verbose else ()),
            *(said_cells(group, each) if verbose and group.is_client_assignor else ()),
            *((_upgraded(each),) if mixed else ()),
        )
        for each in sorted(group.members, key=lambda each: (-len(each.assignment), each.member_id))
    ]
    return Table(columns, rows, end="" if verbose else " ")


def _epochs_and_assignments(
    group: GroupDescription, member: MemberDescription
) -> tuple[object, ...]:
    target = member.target_assignment
    target_epoch = None if target is None else group.target_assignment_epoch
    has, is_to_have = assignment_text(member.assignment), assignment_text(target)
    is_there = target_epoch is None or target_epoch == member.epoch
    return (
        member.epoch,
        has,
        target_epoch,
        is_to_have,
        member.epoch if is_there else f"{member.epoch} of {target_epoch}",
        has,
        "same" if target is not None and is_to_have == has else is_to_have,
    )


SAID: Final = (
    Column("ASSIGNOR", grows=True, fit=Fit.SHORTENED, is_title=True),
    Column("ERROR", 6),
    Column("VERSION", 8, form=Form.PLAIN),
    Column("METADATA", _ASSIGNMENT_WIDTH, grows=True, form=Form.PLAIN),
)
"""A client-side assignor, and its metadata for the target assignment. No Kafka release has one."""


def said_cells(group: GroupDescription, member: MemberDescription) -> tuple[object, ...]:
    """The cells of ``SAID``."""
    said = member.target_said
    if said is None:
        return group.assignor or None, None, None, None
    return group.assignor or None, said.error, said.version, said.metadata.hex() or None


def assignor_data(group: GroupDescription) -> dict[str, Any]:
    """For ``--json``: the assignor of the target assignment."""
    return {
        "assignment_strategy": group.assignor or None,
        "computed_by_member": group.is_client_assignor,
    }


def said_data(said: AssignorMessage | None) -> dict[str, Any] | None:
    """For ``--json``; the bytes in hexadecimal."""
    if said is None:
        return None
    return {"error": said.error, "version": said.version, "metadata": said.metadata.hex()}


def _is_mixed(group: GroupDescription) -> bool:
    """Whether members of both protocols are in a group of KIP-848."""
    return group.type == "Consumer" and {True, False} <= {each.is_classic for each in group.members}


def _upgraded(member: MemberDescription) -> str | None:
    if member.is_classic is None:
        return None
    return "false" if member.is_classic else "true"


def members_data(group: GroupDescription) -> list[dict[str, Any]]:
    """The data for ``--json``."""
    return [
        {
            "consumer_id": each.member_id,
            "group_instance_id": each.instance_id,
            "host": each.host,
            "client_id": each.client_id,
            "rack": each.rack,
            "current_epoch": each.epoch,
            "current_assignment": _by_topic(each.assignment),
            "target_epoch": group.target_assignment_epoch,
            "target_assignment": (
                None if each.target_assignment is None else _by_topic(each.target_assignment)
            ),
            "subscribed_topics": list(each.subscribed_topics),
            "subscribed_pattern": each.subscribed_pattern,
            "is_classic": each.is_classic,
            "assignor_said": said_data(each.said),
            "assignor_said_with_target": said_data(each.target_said),
        }
        for each in group.members
    ]


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    return {
        topic: [tp.partition for tp in of_topic]
        for topic, of_topic in groupby(partitions, key=lambda tp: tp.topic)
    }


# -- state ---------------------------------------------------------------------------------------


def state_table(group: GroupDescription, *, verbose: bool, types: bool = False) -> Table:
    """The group as a whole."""
    node = group.coordinator
    epochs = [
        Column("GROUP-EPOCH", short="EPOCH"),
        Column("TARGET-ASSIGNMENT-EPOCH", 25, short="TARGET-EPOCH"),
    ]
    columns = [
        GROUP,
        type_column(types=types),
        Column("COORDINATOR (ID)", _COORDINATOR_WIDTH, grows=True, fit=Fit.SHORTENED),
        Column("ASSIGNMENT-STRATEGY", _STATE_WIDTH, short="ASSIGNOR", fit=Fit.SHORTENED),
        Column("STATE", _STATE_WIDTH),
        *(epochs if verbose else ()),
        *([Column("COMPUTED-BY")] if verbose and group.is_client_assignor else ()),
        Column("#MEMBERS", 0),
    ]
    row = (
        group.group_id,
        type_text(group),
        f"{node.host}:{node.port}  ({node.node_id})",
        group.assignor or NOTHING,
        group.state,
        *((group.group_epoch, group.target_assignment_epoch) if verbose else ()),
        *(("a member",) if verbose and group.is_client_assignor else ()),
        len(group.members),
    )
    return Table(columns, [row])


def state_data(group: GroupDescription) -> dict[str, Any]:
    """The data for ``--json``."""
    node = group.coordinator
    return {
        "coordinator": {"id": node.node_id, "host": node.host, "port": node.port},
        **assignor_data(group),
        "state": group.state,
        "group_epoch": group.group_epoch,
        "target_assignment_epoch": group.target_assignment_epoch,
        "members": len(group.members),
    }


def group_data(group: GroupDescription) -> dict[str, Any]:
    """The common first fields of each group's JSON."""
    return {
        "group": group.group_id,
        "type": group.type,
        "protocol_type": group.protocol_type,
        "state": group.state,
    }


# -- reset ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Move:
    """A partition's offset before a reset, ``None`` if the group had none, and after it."""

    current: int | None
    new: int

    @property
    def difference(self) -> int | None:
        """How far the offset moves; negative if it moves back."""
        return None if self.current is None else self.new - self.current


Moves = Mapping[str, Mapping[TopicPartition, Move]]
"""Moves by group and partition."""


def new_offsets_table(moves: Moves) -> Table:
    """The offsets that a reset sets. The name column is wide enough for groups without any, too."""
    longest = max((len(visible(group)) for group in moves), default=0)
    columns = [
        Column("GROUP", max(longest, _NAME_WIDTH), fit=Fit.FOLDED, is_title=True),
        _TOPIC,
        Column("PARTITION", _PARTITION_WIDTH),
        Column("CURRENT-OFFSET", short="CURRENT", form=Form.FITTED),
        Column("NEW-OFFSET", 0, short="NEW"),
        Column("DIFFERENCE", form=Form.FITTED),
    ]
    rows = [
        (group, tp.topic, tp.partition, move.current, move.new, _signed(move.difference))
        for group, of_group in moves.items()
        for tp, move in of_group.items()
    ]
    return Table(columns, rows)


def _signed(number: int | None) -> str | None:
    return None if number is None else f"{number:+}" if number else "0"


def new_offsets_data(moves: Moves) -> list[dict[str, Any]]:
    """The data for ``--json``."""
    return [
        {
            "group": group,
            "topic": tp.topic,
            "partition": tp.partition,
            "current_offset": move.current,
            "new_offset": move.new,
            "difference": move.difference,
        }
        for group, of_group in moves.items()
        for tp, move in of_group.items()
    ]


# -- watch ---------------------------------------------------------------------------------------


def moving(group: GroupDescription, before: GroupDescription | None = None) -> list[str]:
    """One line per partition or item that is moving or has arrived since ``before``, and one per
    member that has not reached the target's epoch."""
    hosts = {each.member_id: each.host for each in group.members}
    lines = [_moving(each, hosts) for each in movements(group, before)]
    return lines + [
        f"{member.member_id} is at epoch {member.epoch}, "
        f"the target assignment at {group.target_assignment_epoch}"
        for member in group.members
        if member.epoch is not None and member.epoch != group.target_assignment_epoch
    ]


def _moving(movement: Movement, hosts: Mapping[str, str]) -> str:
    what = movement.what
    name = f"{what.topic}-{what.partition}" if isinstance(what, TopicPartition) else str(what)
    to, who = movement.to_member, movement.from_member
    came = "" if who is None else f" from {who}"
    match movement.state:
        case MovementState.ASSIGNED:
            return f"{name} moved{came} to {to}"
        case MovementState.REVOKED:
            return f"{name} is moving{came} to {to}; no member has it now"
        case MovementState.PENDING_REVOCATION:
            where = f"{who} ({hosts[who]})" if who is not None and who in hosts else f"{who}"
            goes = "is moving to no member" if to is None else f"is moving to {to}"
            return f"{name} {goes}; {where} still has it"

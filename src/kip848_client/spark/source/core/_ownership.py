"""How a query takes over what its checkpoint and its group hold. Pure.

A checkpoint says by which ownership it was written and for which group. A query may change both;
the rules here keep the checkpoint's positions, or refuse where records would be lost or repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._begin import GroupOffset, Lineage
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Seen

if TYPE_CHECKING:
    from kip848_client.spark.source.core._options import SourceOptions

__all__ = [
    "GroupState",
    "check_ownership",
    "check_unused",
    "first_manifest",
    "is_new_to_the_group",
    "lineage_of",
    "upgraded",
]


@dataclass(frozen=True, slots=True)
class GroupState:
    """What the coordinator reports of a group."""

    has_members: bool = False
    offsets: Mapping[TopicPartition, GroupOffset] = field(
        default_factory=dict[TopicPartition, GroupOffset]
    )


def lineage_of(kept: Manifest | None, options: SourceOptions, token: str) -> Lineage:
    """This run of the query. ``token`` is for a checkpoint that has none yet."""
    if kept is None or not kept.token:
        return Lineage(token, 1, options.group_id, options.on_group_reset)
    return Lineage(kept.token, kept.run + 1, options.group_id, options.on_group_reset)


def check_ownership(kept: Manifest, options: SourceOptions) -> None:
    """Raise ``ConfigError`` for a checkpoint of an older version whose ownership is not stated."""
    if kept.version > 1 or options.sets_ownership or options.group_id is None:
        return
    if kept.ownership is None:
        raise ConfigError(
            "the checkpoint was written by an older version, in which ownership=shared was the "
            "default for a stream with kafka.group.id. Now the default is ownership=exclusive. "
            "Set ownership=shared to continue as before, or ownership=exclusive if the query ran "
            "with that"
        )
    if kept.ownership != options.ownership:
        raise ConfigError(
            f"the checkpoint was written with ownership={kept.ownership}, and this query runs with "
            f"ownership={options.ownership}, the default. Set ownership={kept.ownership} to "
            f"continue as before, or ownership={options.ownership} to change it"
        )


def first_manifest(
    me: Lineage,
    options: SourceOptions,
    places: Mapping[TopicPartition, int],
    seen: Seen,
    group: GroupState,
) -> Manifest:
    """The start of a query without a checkpoint: a position for every partition that exists.

    ``places`` are those of ``startingOffsets`` or its default.
    """
    positions = dict(places)
    unread: frozenset[TopicPartition] = frozenset()
    if options.is_shared:
        # A member begins at its group's offsets, which are looked up when partitions are assigned.
        unread = frozenset(places)
    elif not options.sets_starting and options.group_id is not None:
        positions |= {tp: each.offset for tp, each in group.offsets.items() if tp in places}
    return Manifest(
        number=0,
        topic_ids=seen.topic_ids,
        ownership=options.ownership,
        positions=positions,
        unread=unread,
        epochs={tp: epoch for tp, epoch in seen.epochs.items() if tp in places},
        token=me.token,
        run=me.run,
        group=options.group_id,
    )


def check_unused(me: Lineage, options: SourceOptions, group: GroupState) -> None:
    """Raise ``ConfigError`` if an exclusive query without a checkpoint would begin at the offsets
    of a group that others use."""
    if options.is_shared or options.sets_starting or options.group_id is None:
        return
    others = {each.note.token for each in group.offsets.values() if each.note is not None}
    what = (
        "has members"
        if group.has_members
        else "has the offsets of another query"
        if others - {me.token}
        else None
    )
    if what is not None:
        raise ConfigError(
            f"group {me.group!r} {what}, and this query has no checkpoint yet. Set startingOffsets "
            "to say where it begins (it reads all partitions, whatever the group does), or "
            "ownership=shared to share the partitions with the group's members"
        )


def is_new_to_the_group(kept: Manifest, options: SourceOptions, group: GroupState) -> bool:
    """Whether a member must commit the checkpoint's positions before it joins: the group knows
    nothing of this checkpoint yet. Raises ``ConfigError`` if it knows other positions."""
    if not options.is_shared or kept.version == 1 or not kept.number:
        return False
    name = options.group_id
    if kept.ownership == "exclusive":
        if group.has_members:
            raise ConfigError(
                f"the checkpoint was written with ownership=exclusive, and group {name!r} has "
                "members, which would begin at the group's old offsets. Stop them, start this "
                "query, and then start them again"
            )
        return True
    if kept.group == name:
        return False
    topics = {tp.topic for tp in kept.ends}
    if any(tp.topic in topics for tp in group.offsets):
        raise ConfigError(
            f"the checkpoint was written for group {kept.group!r}, and group {name!r} has offsets "
            f"of the same topics. Set kafka.group.id={kept.group}, delete the offsets of group "
            f"{name!r}, or use a new checkpointLocation"
        )
    return True


def upgraded(kept: Manifest, seen: Seen, group: GroupState) -> Manifest:
    """A manifest of version 1 with a position for every partition. A member of that version kept
    only the ranges of one batch: the rest begins at the group's offsets. Raises ``ConfigError`` for
    a partition of which neither has any."""
    if kept.version > 1 or kept.ownership == "exclusive" or not kept.number:
        return kept
    missing = {tp for tp in seen.bounds if tp not in kept.ends}
    lost = sorted(missing.difference(group.offsets))
    if lost:
        raise ConfigError(
            f"the checkpoint was written by an older version and has no position for "
            f"{shown(lost[0])}, and the group has no offset for it. Commit one for the group "
            "(kip848 groups reset-offsets), or use a new checkpointLocation"
        )
    found = {tp: group.offsets[tp].offset for tp in missing}
    return replace(kept, positions={**kept.positions, **found}, unread=kept.unread.union(missing))

"""Where a partition begins: the truth table. Pure.

The checkpoint is the truth and the group is informed. The one exception is ``ownership=shared``,
where another member may have committed further: then the query continues there. The invariant:
every offset below a position in Spark's log of commits was written by this query or committed past
by another member.

What a group's offset says of its author is in the metadata of the commit (``CommitNote``). Offsets
without it are another's: a plain consumer's, or an administrator's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._manifest import Manifest

__all__ = [
    "Begin",
    "CommitNote",
    "GroupOffset",
    "Lineage",
    "Log",
    "OnGroupReset",
    "Position",
    "exclusive_begin",
    "left_by_others",
    "position_in",
    "shared_begin",
    "within",
]

OnGroupReset: TypeAlias = Literal["fail", "group", "checkpoint"]
"""The option ``onGroupReset``: what counts where group and checkpoint contradict each other."""

_NOTE: Final = re.compile(r"kip848/1 token=(\S+) run=(\d+) batch=(\d+) topic=(\S*)")


class CommitNote(NamedTuple):
    """The metadata of our commits. It tells our offsets from others', and our runs apart."""

    token: str
    run: int
    batch: int
    topic_id: str

    def __str__(self) -> str:
        return (
            f"kip848/1 token={self.token} run={self.run} batch={self.batch} topic={self.topic_id}"
        )

    @classmethod
    def of(cls, metadata: str) -> CommitNote | None:
        """Read the metadata of a commit; ``None`` if another wrote it."""
        found = _NOTE.fullmatch(metadata)
        return None if found is None else cls(found[1], int(found[2]), int(found[3]), found[4])


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """What a group has committed for a partition."""

    offset: int
    note: CommitNote | None = None
    """``None`` if it is not from a query of ours."""


@dataclass(frozen=True, slots=True)
class Position:
    """What a checkpoint has of a partition."""

    at: int
    topic_id: str | None = None
    is_read: bool = True
    """Whether the query has owned the partition; if not, this is where it would have begun."""
    committed: int | None = None
    """What the group was known to have committed when the manifest was planned."""


@dataclass(frozen=True, slots=True)
class Log:
    """What brokers report of a partition."""

    first: int
    end: int
    topic_id: str | None = None
    epoch_end: int | None = None
    """The end of the leader epoch in the checkpoint; ``None`` if it was not asked for."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """A checkpoint and this run of its query, as our commits name them."""

    token: str
    run: int
    group: str | None = None
    on_reset: OnGroupReset = "fail"

    def note(self, batch: int, topic_id: str | None) -> CommitNote:
        """The metadata for a commit."""
        return CommitNote(self.token, self.run, batch, topic_id or "")

    def wrote(self, group: GroupOffset) -> bool:
        """Whether a run with this checkpoint, or with a copy of it, has committed an offset."""
        return group.note is not None and group.note.token == self.token


class Begin(NamedTuple):
    """The next offset to read."""

    at: int
    loss: str | None = None
    """The records that are lost by it. With ``failOnDataLoss`` it is an error."""


def position_in(kept: Manifest, tp: TopicPartition) -> Position | None:
    """What a manifest has of a partition; ``None`` if it was added later."""
    span = kept.ranges.get(tp)
    at = kept.positions.get(tp) if span is None else span[1]
    if at is None:
        return None
    is_read = tp not in kept.unread
    return Position(at, kept.topic_ids.get(tp.topic), is_read, kept.committed.get(tp))


def exclusive_begin(tp: TopicPartition, position: Position | None, log: Log) -> Begin:
    """Where a query that owns all partitions continues: at its checkpoint, whatever the group has.

    A partition that was added later begins at its first record: it was empty before.
    """
    if position is None:
        return Begin(log.first)
    if _is_other_topic(position, log):
        return Begin(log.first, _created_again(tp))
    return within(tp, position.at, log)


def shared_begin(
    tp: TopicPartition,
    position: Position | None,
    group: GroupOffset | None,
    log: Log,
    me: Lineage,
    *,
    is_running: bool = False,
) -> Begin:
    """Where a member continues with a partition that the group assigns to it.

    ``is_running``: this run has already read from the group. Raises ``ConfigError`` if checkpoint
    and group contradict each other, unless ``me.on_reset`` says which of them counts.
    """
    counts = group if group is not None and _counts(group, position, log) else None
    if position is not None and _is_other_topic(position, log):
        new = replace(log, epoch_end=None)  # the epoch is another log's
        begin = shared_begin(tp, None, counts, new, me, is_running=is_running)
        return Begin(begin.at, _created_again(tp))
    if position is None:
        position = Position(log.first, log.topic_id, is_read=False)
    if counts is None:
        return within(tp, position.at, log)
    there = within(tp, position.at, log).at
    # what a run with this checkpoint has read is in it, unless the checkpoint was set back
    is_set_back = me.wrote(counts) and counts.offset > max(position.at, there)
    if not position.is_read and not is_set_back:
        return within(tp, counts.offset, log)
    return within(tp, _agreed(tp, position, there, counts, me, is_running=is_running), log)


def _agreed(
    tp: TopicPartition,
    position: Position,
    there: int,
    group: GroupOffset,
    me: Lineage,
    *,
    is_running: bool,
) -> int:
    """The later of both, unless that would be wrong.

    ``there``: the position, or where the query continues if the log no longer has it. It may have
    committed that offset, and no batch since; and others continue at the end of a truncated log.
    """
    ours = me.wrote(group)
    ahead = group.offset > max(position.at, there)
    if ours and ahead and is_running:
        raise ConfigError(
            f"group {me.group!r} has offset {group.offset} for {shown(tp)}, committed with this "
            f"checkpoint, which has {position.at}: another query runs with a copy of the "
            "checkpoint. Stop one of them, and give it a checkpointLocation of its own"
        )
    known = -1 if position.committed is None else min(position.committed, there)
    if not (ours and ahead) and group.offset >= known:
        return max(position.at, group.offset)
    if me.on_reset == "group":
        return group.offset
    if me.on_reset == "checkpoint":
        return position.at
    what = (
        f"the checkpoint has {position.at}: the checkpoint was set back, or is a copy"
        if ahead
        else f"had {known} when the checkpoint was written ({position.at}): its offset was reset"
    )
    raise ConfigError(
        f"group {me.group!r} has offset {group.offset} for {shown(tp)}, and {what}. Set "
        "onGroupReset=checkpoint to continue at the checkpoint, or onGroupReset=group to "
        "continue at the group's offset"
    )


def left_by_others(
    kept: Manifest,
    spans: Mapping[TopicPartition, tuple[int, int]],
    group: Mapping[TopicPartition, GroupOffset],
    me: Lineage,
) -> dict[TopicPartition, tuple[int, int]]:
    """What to read again of a batch that an earlier run planned and did not finish.

    Only what *another* has committed is left out, no matter which member owns the partition: the
    sink may have none of the batch. What this query itself has committed is read again, because
    Spark's log of commits has lost that the batch was done, and a sink that overwrites by batch id
    needs all of it.
    """
    found: dict[TopicPartition, tuple[int, int]] = {}
    for tp, (start, end) in spans.items():
        offset = group.get(tp)
        if offset is None or me.wrote(offset) or _is_of_another(offset, kept, tp):
            found[tp] = (start, end)
        elif offset.offset < end:
            found[tp] = (max(start, offset.offset), end)
    return found


def _is_of_another(offset: GroupOffset, kept: Manifest, tp: TopicPartition) -> bool:
    """Whether a query of ours committed it for another topic of the same name."""
    topic_id = kept.topic_ids.get(tp.topic)
    note = offset.note
    return note is not None and bool(topic_id and note.topic_id) and note.topic_id != topic_id


def within(tp: TopicPartition, at: int, log: Log) -> Begin:
    """A position, or the nearest one in the log with the loss that it means."""
    if log.epoch_end is not None and log.epoch_end < at:
        return Begin(max(log.first, log.epoch_end), _truncated(tp, log.epoch_end, at))
    if at < log.first:
        return Begin(
            log.first,
            f"{shown(tp)} should be read from {at} but starts at {log.first}: older records were "
            "deleted (retention)",
        )
    if at > log.end:
        return Begin(log.end, _truncated(tp, log.end, at))
    return Begin(at)


def _counts(group: GroupOffset, position: Position | None, log: Log) -> bool:
    """Whether the group's offset is of this topic, and not of one of the same name before it."""
    if group.note is not None and group.note.topic_id and log.topic_id is not None:
        return group.note.topic_id == log.topic_id
    if position is not None and _is_other_topic(position, log):
        return group.offset <= log.end
    return True


def _is_other_topic(position: Position, log: Log) -> bool:
    known = position.topic_id is not None and log.topic_id is not None
    return known and position.topic_id != log.topic_id


def _created_again(tp: TopicPartition) -> str:
    return f"topic {tp.topic} was deleted and created again"


def _truncated(tp: TopicPartition, end: int, at: int) -> str:
    return f"{shown(tp)} ends at {end} and was read up to {at}: log truncation"

"""What the next micro-batch reads, and what the group is informed of: the rules of a query that
owns all partitions (``ownership=exclusive``). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._begin import (
    GroupOffset,
    Lineage,
    exclusive_begin,
    left_by_others,
    position_in,
    shared_begin,
    within,
)
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Planning, Seen

__all__ = ["COMMIT_ALL_MS", "ExclusivePlan"]

COMMIT_ALL_MS = 24 * 60 * 60 * 1000
"""How often all positions are committed: a group without members loses an offset that nothing has
committed for seven days (``offsets.retention.minutes``)."""


@dataclass(slots=True)
class ExclusivePlan:
    """All partitions, and the batch that Spark is processing."""

    planning: Planning
    me: Lineage
    kept: Manifest
    """The last manifest: of the checkpoint, or planned since."""
    moved: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """Positions that differ from those of the last manifest, until the next one has them: members
    shared the partitions until now, and have committed further."""
    in_hand: Manifest | None = None
    """The batch that Spark is processing."""
    done: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The positions that Spark's log of commits has, or the start of the query."""
    committed: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The positions that were committed to the group."""
    _done_number: int = -1
    _committed_all_ms: int | None = None

    def take_over(self, group: Mapping[TopicPartition, GroupOffset], seen: Seen) -> None:
        """The checkpoint is of a member: what other members of its group have committed counts
        once more. Raises ``ConfigError`` and ``DataLost`` as a member does."""
        for tp in sorted(seen.bounds):
            begin = shared_begin(
                tp, position_in(self.kept, tp), group.get(tp), seen.log(tp), self.me
            )
            self.moved[tp] = self.planning.accepted(begin)

    def next(self, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The batch after the last one, or the last one if there is nothing to read. Raises
        ``DataLost``."""
        kept = self.kept
        positions = self._positions(seen)
        ranges = self.planning.chosen(positions, seen, limit, now_ms)
        if not ranges:
            return kept
        batch = Manifest(
            number=kept.number + 1,
            ranges=ranges,
            topic_ids=seen.topic_ids,
            ownership="exclusive",
            positions={tp: at for tp, at in positions.items() if tp not in ranges},
            epochs={tp: epoch for tp, epoch in seen.epochs.items() if tp in positions},
            token=self.me.token,
            run=self.me.run,
            group=self.me.group,
        )
        self.kept = self.in_hand = batch
        self.moved.clear()
        return batch

    def _positions(self, seen: Seen) -> dict[TopicPartition, int]:
        kept = self.kept
        for tp, at in sorted(kept.ends.items()):
            if tp not in seen.bounds:
                self.planning.lost(f"{shown(tp)} was read up to {at} and no longer exists")
        found: dict[TopicPartition, int] = {}
        for tp in sorted(seen.bounds):
            log = seen.log(tp)
            if tp in self.moved:
                begin = within(tp, self.moved[tp], log)
            else:
                begin = exclusive_begin(tp, position_in(kept, tp), log)
            found[tp] = self.planning.accepted(begin)
        return found

    def again(
        self, group: Mapping[TopicPartition, GroupOffset], seen: Seen
    ) -> dict[TopicPartition, tuple[int, int]]:
        """The ranges of the checkpoint's batch, which an earlier run planned and did not finish:
        all of it, if the records still exist. Raises ``DataLost``. If a member planned it, without
        what other members have committed."""
        self.in_hand = self.kept
        spans = self.planning.still_there(self.kept, seen)
        if self.kept.ownership == "exclusive":
            return spans
        return left_by_others(self.kept, spans, group, self.me)

    def is_done(self, batch: Manifest) -> None:
        """Spark has committed this batch, or will start with it (number 0)."""
        if self.in_hand is not None and batch.number >= self.in_hand.number:
            self.in_hand = None
        if batch.number < self._done_number:  # a late report of an earlier one
            return
        self._done_number = batch.number
        is_last = batch.number == self.kept.number
        self.done = {**self.kept.ends, **self.moved} if is_last else batch.ends

    def to_commit(self, now_ms: int) -> dict[TopicPartition, int]:
        """The positions that the group lacks; all of them once a day."""
        last_ms = self._committed_all_ms
        if last_ms is None or now_ms - last_ms >= COMMIT_ALL_MS:
            return dict(self.done)
        return {tp: at for tp, at in self.done.items() if self.committed.get(tp) != at}

    def is_committed(self, offsets: Mapping[TopicPartition, int], now_ms: int) -> None:
        """These offsets were committed to the group."""
        self.committed |= offsets
        if offsets.keys() >= self.done.keys():
            self._committed_all_ms = now_ms

    def overwritten(
        self, group: Mapping[TopicPartition, GroupOffset]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Offsets of the group that are not this checkpoint's, with the positions that replace
        them."""
        return {
            tp: (each.offset, self.done[tp])
            for tp, each in sorted(group.items())
            if tp in self.done and self.done[tp] != each.offset
            if each.offset > self.done[tp] or not self.me.wrote(each)
        }

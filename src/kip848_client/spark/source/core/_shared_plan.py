"""What the next micro-batch reads: the rules of a query that is a member of its group
(``ownership=shared``). Pure.

Partitions are assigned and revoked. Each one that is assigned begins by the rules of ``_begin``.
While Spark processes a batch, its partitions are kept. Nothing of a batch is committed to the group
before Spark's log of commits has the batch: the next owner would skip it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._begin import (
    GroupOffset,
    Lineage,
    left_by_others,
    position_in,
    shared_begin,
    within,
)
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Planning, Seen

__all__ = ["SharedPlan"]


@dataclass(slots=True)
class SharedPlan:
    """The partitions of a member, and the batch that Spark is processing."""

    planning: Planning
    me: Lineage
    kept: Manifest
    """The last manifest: of the checkpoint, or planned since."""
    owned: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The next offset to plan, by partition that we own."""
    leaving: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """Partitions that are being revoked: nothing more is planned for them."""
    in_hand: Manifest | None = None
    """The batch that Spark is processing."""
    to_commit: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """Offsets that Spark has committed and the group has not."""
    topic_ids: dict[str, str] = field(default_factory=dict[str, str])
    """The ids of the topics when their partitions were assigned."""
    committed: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """What the group is known to have committed."""
    epochs: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The leader epochs in which the positions of our partitions were found in the log."""
    _has_read: bool = False
    """Whether this run has already taken partitions from the group."""

    # -- the group -----------------------------------------------------------------------------

    def assigned(
        self,
        partitions: Collection[TopicPartition],
        group: Mapping[TopicPartition, GroupOffset],
        seen: Seen,
    ) -> None:
        """New partitions, with what the group has committed for them. Raises ``ConfigError`` if
        checkpoint and group contradict each other, and ``DataLost``; then none of them is owned."""
        begins = {
            tp: self.planning.accepted(
                shared_begin(
                    tp,
                    position_in(self.kept, tp),
                    group.get(tp),
                    seen.log(tp),
                    self.me,
                    is_running=self._has_read,
                )
            )
            for tp in sorted(partitions)
            if tp in seen.bounds
        }
        self._has_read = self._has_read or bool(begins)
        busy = frozenset[TopicPartition]() if self.in_hand is None else self.in_hand.ranges.keys()
        for tp, at in begins.items():
            self.owned[tp] = at
            self.leaving.discard(tp)
            self._is_in(tp, seen)
            if tp.topic in seen.topic_ids:
                self.topic_ids[tp.topic] = seen.topic_ids[tp.topic]
            known = group.get(tp)
            self.committed.pop(tp, None)
            if known is not None:
                self.committed[tp] = known.offset
            # Spark may still fail the batch in hand: the group hears of it when it is done
            if tp not in busy and (known is None or known.offset != at):
                self.to_commit[tp] = at

    def asked_back(self, partitions: Collection[TopicPartition]) -> None:
        """These are being revoked; they can go when ``is_free`` is true."""
        self.leaving.update(tp for tp in partitions if tp in self.owned)

    def is_free(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether Spark is not processing a batch with any of them."""
        return self.in_hand is None or self.in_hand.ranges.keys().isdisjoint(partitions)

    def gone(self, partitions: Collection[TopicPartition]) -> None:
        """These are no longer ours: their offsets are no longer committed."""
        for tp in partitions:
            self.owned.pop(tp, None)
            self.to_commit.pop(tp, None)
            self.epochs.pop(tp, None)
            self.leaving.discard(tp)

    def is_committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These offsets were committed to the group."""
        for tp, offset in offsets.items():
            self.committed[tp] = offset
            if self.to_commit.get(tp) == offset:
                del self.to_commit[tp]

    # -- Spark ---------------------------------------------------------------------------------

    def is_done(self, batch: Manifest) -> None:
        """Spark has committed this batch: commit the part that is still ours.

        Of a partition that was lost and assigned again meanwhile, only if no other member has
        committed past the batch.
        """
        mine = self.in_hand
        if mine is None or batch.number < mine.number:
            return
        self.in_hand = None
        for tp, (_, end) in mine.ranges.items():
            if self.owned.get(tp) == end:
                self.to_commit[tp] = end

    def next(self, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The next batch, from our partitions; the last one if there is nothing to read. Raises
        ``DataLost``."""
        positions = {
            tp: self.planning.accepted(within(tp, at, seen.log(tp)))
            for tp, at in sorted(self.owned.items())
            if tp not in self.leaving and tp in seen.bounds and self._is_same(tp, seen)
        }
        ranges = self.planning.chosen(positions, seen, limit, now_ms)
        if not ranges:
            return self.kept
        # the epochs of a truncated log are in the manifest: so must be where it continues
        self.owned |= positions | {tp: end for tp, (_, end) in ranges.items()}
        for tp in positions:
            self._is_in(tp, seen)
        self.kept = self.in_hand = self._manifest(ranges)
        return self.kept

    def again(
        self, group: Mapping[TopicPartition, GroupOffset], seen: Seen
    ) -> dict[TopicPartition, tuple[int, int]]:
        """The ranges to read of the checkpoint's batch, which an earlier run planned and did not
        finish: all but what other members have committed. Raises ``DataLost``."""
        self.in_hand = self.kept
        spans = self.planning.still_there(self.kept, seen)
        return left_by_others(self.kept, spans, group, self.me)

    def created_again(self, seen: Seen) -> set[str]:
        """Topics with other ids than when their partitions were assigned. What was to be committed
        for them is dropped: it is of the topic that is gone."""
        others = {
            topic
            for topic, known in self.topic_ids.items()
            if seen.topic_ids.get(topic, known) != known
        }
        self.to_commit = {tp: at for tp, at in self.to_commit.items() if tp.topic not in others}
        return others

    def _is_same(self, tp: TopicPartition, seen: Seen) -> bool:
        """Until the group has noticed that a topic was created again, our partitions are those of
        the old one."""
        known = self.topic_ids.get(tp.topic)
        return known is None or seen.topic_ids.get(tp.topic, known) == known

    def _manifest(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> Manifest:
        ids = dict(self.kept.topic_ids)
        for tp in self.owned:
            if tp.topic in self.topic_ids:
                ids[tp.topic] = self.topic_ids[tp.topic]
        known = {
            tp: at
            for tp, at in self.kept.ends.items()
            # a position in a topic that was created again is another log's
            if self.kept.topic_ids.get(tp.topic) == ids.get(tp.topic)
        }
        ends = {**known, **self.owned}
        return Manifest(
            number=self.kept.number + 1,
            ranges=ranges,
            topic_ids=dict(sorted(ids.items())),
            ownership="shared",
            positions={tp: at for tp, at in ends.items() if tp not in ranges},
            unread=self.kept.unread.intersection(ends).difference(self.owned),
            committed={
                tp: at
                for tp, at in {**self.kept.committed, **self.committed}.items()
                if tp in ends and (tp in self.committed or tp not in self.owned)
            },
            epochs={tp: at for tp, at in {**self.kept.epochs, **self.epochs}.items() if tp in ends},
            token=self.me.token,
            run=self.me.run,
            group=self.me.group,
        )

    def _is_in(self, tp: TopicPartition, seen: Seen) -> None:
        """The position of a partition was found in the log as it is now."""
        self.epochs.pop(tp, None)
        if tp in seen.epochs:
            self.epochs[tp] = seen.epochs[tp]

"""What the next micro-batch reads: the rules of a query that is a member of a group.

Pure. The partitions come and go; where they go on is what the group has committed, for another
member may have worked on them. While a batch is in Spark's hands its partitions are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kip848_client.core.types import TopicPartition
from kip848_client.spark.core._manifest import Manifest
from kip848_client.spark.core._planning import Planning, Seen

__all__ = ["Sharing"]


@dataclass(slots=True)
class Sharing:
    """The partitions of a member, and the batch that Spark has in hand."""

    planning: Planning
    owned: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """Where each of our partitions goes on: after everything that was planned."""
    leaving: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """What is asked back: nothing more is planned of it."""
    in_hand: Manifest | None = None
    """The batch that Spark works on."""
    to_commit: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """What Spark has and the group was not told yet."""

    # -- the group -----------------------------------------------------------------------------

    def assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        """New partitions, with where they go on."""
        for tp, position in positions.items():
            self.owned[tp] = position
            self.leaving.discard(tp)

    def asked_back(self, partitions: Collection[TopicPartition]) -> None:
        """These will be given up once ``is_free`` says so."""
        self.leaving.update(tp for tp in partitions if tp in self.owned)

    def is_free(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether no batch is in hand that has any of them."""
        return self.in_hand is None or self.in_hand.ranges.keys().isdisjoint(partitions)

    def gone(self, partitions: Collection[TopicPartition]) -> None:
        """These are not ours any more: nothing of them is committed from now on."""
        for tp in partitions:
            self.owned.pop(tp, None)
            self.to_commit.pop(tp, None)
            self.leaving.discard(tp)

    # -- Spark ---------------------------------------------------------------------------------

    def done(self, batch: Manifest) -> None:
        """Spark has this batch: what is still ours of it is to be committed.

        A batch that is not in hand says nothing: it may be an earlier run's, of which a part was
        left to other members when it was repeated. A partition that was lost and given again while
        its batch ran goes on after the batch, unless the group is elsewhere by now: what others
        have committed beyond it counts, and so does an offset that somebody has set.
        """
        mine = self.in_hand
        if mine is None or batch.number < mine.number:
            return
        self.in_hand = None
        for tp, (start, end) in mine.ranges.items():
            position = self.owned.get(tp)
            if position is not None and start <= position <= end:
                self.owned[tp] = self.to_commit[tp] = end

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The group has these."""
        for tp, offset in offsets.items():
            if self.to_commit.get(tp) == offset:
                del self.to_commit[tp]

    def next(self, start: Manifest, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The batch after ``start``, of our partitions; ``start`` itself for none. Raises
        ``DataLost``."""
        ours = {
            tp: (at, at)
            for tp, at in self.owned.items()
            if tp not in self.leaving and tp in seen.bounds
        }
        bounds = {tp: seen.bounds[tp] for tp in ours}
        known = Manifest(start.number, ours, seen.topic_ids)
        found = self.planning.next(known, Seen(bounds, seen.topic_ids), limit, now_ms)
        if found is known:
            return start
        spans = {tp: span for tp, span in found.ranges.items() if span[0] < span[1]}
        ids = {tp.topic: seen.topic_ids[tp.topic] for tp in spans if tp.topic in seen.topic_ids}
        batch = Manifest(found.number, spans, dict(sorted(ids.items())))
        self.owned |= batch.ends
        self.in_hand = batch
        return batch

    def repeated(
        self,
        batch: Manifest,
        topic_ids: Mapping[str, str],
        told: Collection[TopicPartition] = (),
    ) -> Manifest:
        """What is to be read of a batch that an earlier run has planned and not ended: the part
        that is ours still (again) and that nobody has committed meanwhile.

        The rest is another member's, who reads it from where the group is; but for what the earlier
        run has ``told`` the group itself: Spark's log has lost (or never kept) that it was done.
        """
        spans: dict[TopicPartition, tuple[int, int]] = {}
        for tp, (start, end) in batch.ranges.items():
            position = self.owned.get(tp)
            was = batch.topic_ids.get(tp.topic)
            if was != topic_ids.get(tp.topic, was):
                continue
            if tp in told:
                spans[tp] = (start, end)
            elif position is not None and tp not in self.leaving and start <= position < end:
                spans[tp] = (position, end)
                self.owned[tp] = end
        fenced = Manifest(batch.number, spans, batch.topic_ids)
        self.in_hand = fenced
        return fenced

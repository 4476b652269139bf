"""What the next micro-batch reads: the rules of a query that is a member of a group.

Pure. Partitions are assigned and revoked. They resume at the group's committed offsets, because
another member may have read them. While Spark processes a batch, its partitions are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Planning, Seen

__all__ = ["Sharing"]


@dataclass(slots=True)
class Sharing:
    """The partitions of a member, and the batch that Spark is processing."""

    planning: Planning
    owned: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The next offset to plan, by partition that we own."""
    leaving: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """Partitions that are being revoked: nothing more is planned for them."""
    in_hand: Manifest | None = None
    """The batch that Spark is processing."""
    to_commit: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """Offsets that Spark has committed and the group has not."""

    # -- the group -----------------------------------------------------------------------------

    def assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        """New partitions, with their positions."""
        for tp, position in positions.items():
            self.owned[tp] = position
            self.leaving.discard(tp)

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
            self.leaving.discard(tp)

    # -- Spark ---------------------------------------------------------------------------------

    def done(self, batch: Manifest) -> None:
        """Spark has committed this batch: commit the part that is still ours.

        A batch other than the current one is ignored: it may be an earlier run's, and other members
        may have got a part of it when it was repeated. A partition that was lost and assigned again
        while its batch ran resumes after the batch, unless the group's offset is outside the batch
        by now: then another member has committed, or an administrator has reset the offset.
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
        """These offsets were committed to the group."""
        for tp, offset in offsets.items():
            if self.to_commit.get(tp) == offset:
                del self.to_commit[tp]

    def next(self, start: Manifest, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The batch after ``start``, from our partitions; ``start`` itself if there is none. Raises
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
        committed: Collection[TopicPartition] = (),
    ) -> Manifest:
        """The part to read of a batch that an earlier run planned and did not finish: what we still
        own, and no member has committed since.

        Another member reads the rest from the group's offsets. ``committed`` are partitions whose
        offsets the earlier run itself has committed: they are read again, because Spark's commit
        log has lost, or never had, that the batch was done.
        """
        spans: dict[TopicPartition, tuple[int, int]] = {}
        for tp, (start, end) in batch.ranges.items():
            position = self.owned.get(tp)
            was = batch.topic_ids.get(tp.topic)
            if was != topic_ids.get(tp.topic, was):
                continue
            if tp in committed:
                spans[tp] = (start, end)
            elif position is not None and tp not in self.leaving and start <= position < end:
                spans[tp] = (position, end)
                self.owned[tp] = end
        fenced = Manifest(batch.number, spans, batch.topic_ids)
        self.in_hand = fenced
        return fenced

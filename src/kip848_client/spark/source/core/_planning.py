"""What the next micro-batch reads: the rules of a query that has all partitions to itself.

Pure: the partitions and bounds that brokers report come in, a ``Manifest`` goes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._ranges import limited

__all__ = ["DataLost", "Planning", "Seen", "lag_of"]


class DataLost(Kip848Error):
    """Records that the query should have read no longer exist. With ``failOnDataLoss=false`` the
    query continues with those that do."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the brokers reported: the bounds of each partition, and the ids of the topics."""

    bounds: Mapping[TopicPartition, tuple[int, int]]
    topic_ids: Mapping[str, str]

    def ends_json(self) -> dict[str, dict[str, int]]:
        """The ends, in the form of Spark's own source, which computes lag from them."""
        found: dict[str, dict[str, int]] = {}
        for (topic, partition), (_, end) in sorted(self.bounds.items()):
            found.setdefault(topic, {})[str(partition)] = end
        return found


def lag_of(positions: Mapping[TopicPartition, int], seen: Seen | None) -> int:
    """The number of offsets between the positions and the last known ends of the partitions."""
    if seen is None:
        return 0
    ends = {tp: end for tp, (_, end) in seen.bounds.items()}
    return sum(max(0, ends[tp] - at) for tp, at in positions.items() if tp in ends)


@dataclass(slots=True)
class Planning:
    """Decides which offsets a micro-batch reads."""

    fails_on_data_loss: bool = True
    at_least: int | None = None
    """Wait for this many offsets, ``delay_ms`` at most."""
    delay_ms: int = 0
    until: Mapping[TopicPartition, int] | None = None
    """AvailableNow: nothing beyond these offsets is read."""
    is_draining: bool = False
    """Whether to plan nothing more."""
    losses: list[str] = field(default_factory=list[str])
    """Losses after which the query continued, for the caller to log and clear."""
    _planned_ms: int | None = None
    """When the last batch was planned."""

    def next(self, start: Manifest, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The batch after ``start``; ``start`` itself if there is nothing to read, or not yet
        enough. Raises ``DataLost``."""
        positions = self._positions(start, seen)
        available = {
            tp: (at, max(at, self._end(tp, seen.bounds[tp][1]))) for tp, at in positions.items()
        }
        total = sum(end - at for at, end in available.values())
        if not total or self._waits_for_more(total, now_ms):
            return start
        self._planned_ms = now_ms
        spans = {tp: (at, at) for tp, at in positions.items()}
        spans |= {tp: (at, end) for tp, at, end in limited(available, limit)}
        return Manifest(start.number + 1, spans, seen.topic_ids)

    def check(self, batch: Manifest, seen: Seen) -> Manifest:
        """Check a batch that an earlier run planned: return it without partitions that no longer
        exist. Raises ``DataLost`` if records of it are missing."""
        gone: set[TopicPartition] = set()
        for tp, (start, end) in sorted(batch.ranges.items()):
            if start == end:
                continue
            begin = seen.bounds.get(tp, (None, None))[0]
            if begin is None or _is_other(tp.topic, batch, seen):
                self._lost(f"{shown(tp)} was deleted before {start} to {end} was read")
                gone.add(tp)
            elif begin > start:
                self._lost(_aged(tp, start, begin))
        if not gone:
            return batch
        spans = {tp: span for tp, span in batch.ranges.items() if tp not in gone}
        return Manifest(batch.number, spans, batch.topic_ids)

    def _positions(self, start: Manifest, seen: Seen) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        ends = start.ends
        for tp in sorted(ends.keys() - seen.bounds.keys()):
            self._lost(f"{shown(tp)} was read up to {ends[tp]} and no longer exists")
        for tp, (begin, end) in sorted(seen.bounds.items()):
            at = ends.get(tp)
            if at is None:
                found[tp] = begin
            elif _is_other(tp.topic, start, seen):
                self._lost(f"topic {tp.topic} was deleted and created again")
                found[tp] = begin
            elif at < begin:
                self._lost(_aged(tp, at, begin))
                found[tp] = begin
            elif at > end:
                self._lost(f"{shown(tp)} ends at {end} and was read up to {at}: log truncation")
                found[tp] = end
            else:
                found[tp] = at
        return found

    def _end(self, tp: TopicPartition, end: int) -> int:
        """Partitions that were added after AvailableNow started are left to the next query."""
        return end if self.until is None else min(end, self.until.get(tp, 0))

    def _waits_for_more(self, total: int, now_ms: int) -> bool:
        if self.at_least is None or self.until is not None or total >= self.at_least:
            return False
        if self._planned_ms is None:  # the wait starts with the query
            self._planned_ms = now_ms
        return now_ms - self._planned_ms < self.delay_ms

    def _lost(self, what: str) -> None:
        if self.fails_on_data_loss:
            raise DataLost(
                f"records are lost: {what}. Set failOnDataLoss=false to continue with the records "
                "that exist."
            )
        self.losses.append(what)


def _aged(tp: TopicPartition, at: int, begin: int) -> str:
    return (
        f"{shown(tp)} should be read from {at} but starts at {begin}: "
        "older records were deleted (retention)"
    )


def _is_other(topic: str, then: Manifest, seen: Seen) -> bool:
    """Whether the topic has another id than before."""
    before = then.topic_ids.get(topic)
    return before is not None and seen.topic_ids.get(topic, before) != before

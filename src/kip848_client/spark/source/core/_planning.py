"""What a micro-batch reads, from positions and the bounds that brokers report. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error
from kip848_client.spark.source.core._begin import Begin, Log
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
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The leader epochs of the partitions."""
    epoch_ends: Mapping[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The ends of the leader epochs in the checkpoint, where they were asked for."""

    def log(self, tp: TopicPartition) -> Log:
        """The log of a partition that exists."""
        first, end = self.bounds[tp]
        return Log(first, end, self.topic_ids.get(tp.topic), self.epoch_ends.get(tp))

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

    def chosen(
        self, positions: Mapping[TopicPartition, int], seen: Seen, limit: int | None, now_ms: int
    ) -> dict[TopicPartition, tuple[int, int]]:
        """The ranges of the next batch; none if there is nothing to read, or not yet enough."""
        available = {
            tp: (at, max(at, self._end(tp, seen.bounds[tp][1]))) for tp, at in positions.items()
        }
        total = sum(end - at for at, end in available.values())
        if not total or self._waits_for_more(total, now_ms):
            return {}
        self._planned_ms = now_ms
        return {tp: (at, end) for tp, at, end in limited(available, limit)}

    def accepted(self, begin: Begin) -> int:
        """The position, if the loss that it may mean is acceptable. Raises ``DataLost``."""
        if begin.loss is not None:
            self.lost(begin.loss)
        return begin.at

    def lost(self, what: str) -> None:
        """Records are lost: raise ``DataLost``, or note it and continue."""
        if self.fails_on_data_loss:
            raise DataLost(
                f"records are lost: {what}. Set failOnDataLoss=false to continue with the records "
                "that exist."
            )
        self.losses.append(what)

    def still_there(self, batch: Manifest, seen: Seen) -> dict[TopicPartition, tuple[int, int]]:
        """The ranges of a batch that an earlier run planned, without partitions that no longer
        exist. Raises ``DataLost`` if records of it are missing."""
        found: dict[TopicPartition, tuple[int, int]] = {}
        for tp, (start, end) in sorted(batch.ranges.items()):
            then = batch.topic_ids.get(tp.topic)
            begin = seen.bounds.get(tp, (None, None))[0]
            if begin is None or (then and seen.topic_ids.get(tp.topic, then) != then):
                self.lost(f"{shown(tp)} was deleted before {start} to {end} was read")
                continue
            if begin > start:
                self.lost(
                    f"{shown(tp)} should be read from {start} but starts at {begin}: "
                    "older records were deleted (retention)"
                )
            found[tp] = (start, end)
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

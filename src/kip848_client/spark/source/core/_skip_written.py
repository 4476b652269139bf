"""The option ``written``: the ranges that the output already has, and that the source skips. Pure.

A process may die after Spark has committed a batch and before its offsets are committed to the
group. The group then assigns the partitions at the start of the batch. A sink that records what it
has written passes the ranges to the source, which continues after them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError

__all__ = ["WrittenRanges", "written_from"]


@dataclass(frozen=True, slots=True)
class WrittenRanges:
    """Ranges of offsets by partition, sorted, and the ids of their topics."""

    ranges: Mapping[TopicPartition, tuple[tuple[int, int], ...]] = field(
        default_factory=dict[TopicPartition, tuple[tuple[int, int], ...]]
    )
    topic_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    query_id: str = ""
    """The id of the query that wrote the output, which is committed with the offsets."""

    def after(
        self, positions: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]
    ) -> dict[TopicPartition, int]:
        """The positions of the group that are inside the written ranges, each with the position
        after them. A topic with another id was created again, and has nothing written."""
        found: dict[TopicPartition, int] = {}
        for tp, position in sorted(positions.items()):
            if self.topic_ids.get(tp.topic) != topic_ids.get(tp.topic):
                continue
            at = position
            for start, end in self.ranges.get(tp, ()):
                if start <= at < end:
                    at = end
            if at != position:
                found[tp] = at
        return found


def written_from(said: str | None) -> WrittenRanges:
    """Read the option: ``{"topics": {"a": ID}, "ranges": {"a": {"0": [[0, 10]]}}, "query": ID}``.
    Raises ``ConfigError``."""
    if said is None:
        return WrittenRanges()
    try:
        found = cast("dict[str, Any]", json.loads(said))
        ranges = {
            TopicPartition(topic, int(number)): tuple(
                sorted((int(start), int(end)) for start, end in spans)
            )
            for topic, partitions in found["ranges"].items()
            for number, spans in partitions.items()
        }
        topics = {str(name): str(each) for name, each in found["topics"].items()}
        return WrittenRanges(ranges, topics, str(found.get("query", "")))
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise ConfigError(f"option written={said[:200]!r} is invalid: {err!r}") from err

"""``Manifest``: a micro-batch as Spark's checkpoint holds it.

It has the start and the end of each range: a partition may leave this query and come back with
offsets that another member of the group has committed. So a batch that is repeated after a crash
reads the same records as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError

__all__ = ["Manifest", "Ownership"]

Ownership: TypeAlias = Literal["exclusive", "shared"]
"""The owner of a query's partitions: the query alone, or the members of its group."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The ranges of one micro-batch, and the ids of their topics.

    With ``ownership=exclusive`` there is one range per partition of the query, empty if the batch
    reads nothing from it: its end is the partition's position. With ``ownership=shared`` there are
    only the ranges of the batch: the positions are the group's committed offsets.
    """

    number: int
    """The number of the batch; 0 is the start of the query, before any batch."""
    ranges: Mapping[TopicPartition, tuple[int, int]] = field(
        default_factory=dict[TopicPartition, tuple[int, int]]
    )
    """First offset, and the offset after the last one, by partition."""
    topic_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """The ids of the topics, by name: a topic that is created again has another id."""
    ownership: Ownership | None = None
    """The ownership of the query that wrote it; ``None`` for older versions, which did not record
    it."""

    def to_json(self) -> dict[str, Any]:
        """The JSON for Spark. It is sorted, because Spark compares it as text."""
        ranges: dict[str, dict[str, list[int]]] = {}
        for (topic, partition), span in sorted(self.ranges.items()):
            ranges.setdefault(topic, {})[str(partition)] = list(span)
        owned = {} if self.ownership is None else {"ownership": self.ownership}
        return {
            "number": self.number,
            **owned,
            "ranges": ranges,
            "topics": dict(sorted(self.topic_ids.items())),
        }

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Manifest:
        """Read what Spark returns. Raises ``ConfigError`` for anything but a manifest of ours, such
        as the checkpoint of another source."""
        try:
            ranges = {
                TopicPartition(topic, int(partition)): _span(span)
                for topic, spans in said["ranges"].items()
                for partition, span in spans.items()
            }
            topics = {str(name): str(found) for name, found in said["topics"].items()}
            ownership = _ownership(said.get("ownership"), ranges)
            return cls(_offset(said["number"]), ranges, topics, ownership)
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            raise ConfigError(
                f"the checkpoint of this query does not hold offsets of format kip848: {said!r} "
                "(was it made by another source, or changed by hand? use a new checkpointLocation)"
            ) from err

    @property
    def size(self) -> int:
        """The number of offsets in all ranges."""
        return sum(end - start for start, end in self.ranges.values())

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The position after this batch, by partition."""
        return {tp: end for tp, (_, end) in self.ranges.items()}


def _ownership(said: Any, ranges: Mapping[TopicPartition, tuple[int, int]]) -> Ownership | None:
    if said == "exclusive":
        return "exclusive"
    if said == "shared":
        return "shared"
    if said is not None:
        raise ValueError(f"{said!r} is not an ownership")
    # a member never had an empty range in its checkpoint
    return "exclusive" if any(start == end for start, end in ranges.values()) else None


def _span(said: Any) -> tuple[int, int]:
    start, end = cast("list[Any]", said)
    span = _offset(start), _offset(end)
    if span[1] < span[0]:
        raise ValueError(f"{said} ends before it starts")
    return span


def _offset(said: Any) -> int:
    if type(said) is not int or said < 0:
        raise ValueError(f"{said!r} is not an offset")
    return said

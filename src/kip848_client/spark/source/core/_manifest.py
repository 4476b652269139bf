"""``Manifest``: a micro-batch as Spark's checkpoint holds it.

Spark stores the text and compares it. Its form is that of Spark's own source,
``{topic: {partition: end}}``, so dashboards can read it; everything else is under a key that no
topic can have. It has a position for every partition from the first batch on: the checkpoint
alone says where a query continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError

__all__ = ["OURS", "Manifest", "Ownership"]

Ownership: TypeAlias = Literal["exclusive", "shared"]
"""The owner of a query's partitions: the query alone, or the members of its group."""

OURS: Final = "@kip848"
"""The key of what is not a topic: names of topics cannot have ``@``."""
_VERSION: Final = 2

_Offsets: TypeAlias = Mapping[TopicPartition, int]


def _none() -> dict[TopicPartition, int]:
    return {}


@dataclass(frozen=True, slots=True)
class Manifest:
    """The ranges of one micro-batch, and the query's position in all partitions."""

    number: int
    """The number of the batch; 0 is the start of the query, before any batch."""
    ranges: Mapping[TopicPartition, tuple[int, int]] = field(
        default_factory=dict[TopicPartition, tuple[int, int]]
    )
    """First offset, and the offset after the last one, of what the batch reads. A partition may
    leave a query and come back at another offset, so the checkpoint needs both."""
    topic_ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """The ids of the topics, by name: a topic that is created again has another id."""
    ownership: Ownership | None = None
    """The ownership of the query that wrote it; ``None`` for older versions, which did not record
    it."""
    positions: _Offsets = field(default_factory=_none)
    """The next offset of each partition of which the batch reads nothing."""
    unread: frozenset[TopicPartition] = frozenset()
    """Partitions that the query has never owned: the position is where it would have begun."""
    committed: _Offsets = field(default_factory=_none)
    """What the group was known to have committed when the batch was planned (``shared``)."""
    epochs: _Offsets = field(default_factory=_none)
    """The leader epochs of the partitions when the batch was planned (KIP-320)."""
    token: str = ""
    """The id of this checkpoint, made with its first manifest; in the metadata of our commits."""
    run: int = 0
    """The run of the query that planned it, counted from 1."""
    group: str | None = None
    version: int = _VERSION

    def to_json(self) -> dict[str, Any]:
        """The JSON for Spark. It is sorted, because Spark compares it as text."""
        ours: dict[str, Any] = {
            "version": self.version,
            "number": self.number,
            "run": self.run,
            "token": self.token,
            "ownership": self.ownership,
            "group": self.group,
            "starts": _by_topic({tp: start for tp, (start, _) in self.ranges.items()}),
            "unread": _by_topic(dict.fromkeys(self.unread, 1)),
            "committed": _by_topic(self.committed),
            "epochs": _by_topic(self.epochs),
            "topics": dict(sorted(self.topic_ids.items())),
        }
        always = ("version", "number")
        kept = {name: value for name, value in ours.items() if value or name in always}
        return {**_by_topic(self.ends), OURS: kept}

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Manifest:
        """Read what Spark returns. Raises ``ConfigError`` for anything but a manifest of ours, such
        as the checkpoint of another source or of a later version."""
        try:
            version = said[OURS]["version"] if OURS in said else 1
            if type(version) is int and version <= _VERSION:
                return _second(said) if OURS in said else _first(said)
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            raise ConfigError(
                f"the checkpoint of this query does not hold offsets of format kip848: {said!r} "
                "(was it made by another source, or changed by hand? use a new checkpointLocation; "
                "to continue where Spark's own Kafka source stopped, set startingOffsets to its "
                "offsets)"
            ) from err
        raise ConfigError(
            "the checkpoint was written by a later version of kip848-client (manifest "
            f"{version!r}, this one knows {_VERSION}); use that version"
        )

    @property
    def size(self) -> int:
        """The number of offsets in all ranges."""
        return sum(end - start for start, end in self.ranges.values())

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The position after this batch, by partition."""
        return {**self.positions, **{tp: end for tp, (_, end) in self.ranges.items()}}


def _second(said: Mapping[str, Any]) -> Manifest:
    ours = cast("Mapping[str, Any]", said[OURS])
    ends = _offsets({topic: at for topic, at in said.items() if topic != OURS})
    starts = _offsets(ours.get("starts", {}))
    return Manifest(
        number=_offset(ours["number"]),
        ranges={tp: _span(start, ends[tp]) for tp, start in starts.items()},
        topic_ids=_texts(ours.get("topics", {})),
        ownership=None if ours.get("ownership") is None else _ownership(ours["ownership"]),
        positions={tp: end for tp, end in ends.items() if tp not in starts},
        unread=frozenset(_offsets(ours.get("unread", {}))),
        committed=_offsets(ours.get("committed", {})),
        epochs=_offsets(ours.get("epochs", {})),
        token=str(ours.get("token", "")),
        run=_offset(ours.get("run", 0)),
        group=None if ours.get("group") is None else str(ours["group"]),
    )


def _first(said: Mapping[str, Any]) -> Manifest:
    """Version 1: without positions of partitions that a member did not read in the batch."""
    spans = {
        TopicPartition(topic, int(partition)): _span(*cast("list[Any]", span))
        for topic, partitions in said["ranges"].items()
        for partition, span in partitions.items()
    }
    ranges = {tp: span for tp, span in spans.items() if span[0] < span[1]}
    positions = {tp: start for tp, (start, end) in spans.items() if start == end}
    ownership = said.get("ownership")
    # in version 1 a member never had an empty range in its checkpoint
    found: Ownership | None = "exclusive" if positions else None
    return Manifest(
        number=_offset(said["number"]),
        ranges=ranges,
        topic_ids=_texts(said["topics"]),
        ownership=found if ownership is None else _ownership(ownership),
        positions=positions,
        version=1,
    )


def _ownership(said: Any) -> Ownership:
    if said == "exclusive":
        return "exclusive"
    if said == "shared":
        return "shared"
    raise ValueError(f"{said!r} is not an ownership")


def _by_topic(offsets: _Offsets) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def _offsets(said: Mapping[str, Any]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): _offset(offset)
        for topic, partitions in said.items()
        for partition, offset in partitions.items()
    }


def _texts(said: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(found) for name, found in said.items()}


def _span(start: Any, end: Any) -> tuple[int, int]:
    span = _offset(start), _offset(end)
    if span[1] < span[0]:
        raise ValueError(f"the range from {start} ends before it starts, at {end}")
    return span


def _offset(said: Any) -> int:
    if type(said) is not int or said < 0:
        raise ValueError(f"{said!r} is not an offset")
    return said

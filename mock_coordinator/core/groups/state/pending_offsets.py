"""Offsets that were committed in transactions which are still open (KIP-98).

They are kept apart from the committed ones, by producer, with their place in the log. When the
transaction is committed they become committed offsets, except where a newer record of the same
partition was written in between, by any client. Several producers may have pending offsets of one
partition; it is unstable until all their transactions have ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from mock_coordinator.core.groups.records.state_records import OffsetAndMetadata

__all__ = ["PendingOffset", "PendingOffsets"]

_Place = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass(frozen=True, slots=True)
class PendingOffset:
    """An offset, and how many records of the log came before it."""

    group_id: str
    topic: str
    partition: int
    value: OffsetAndMetadata
    position: int


class PendingOffsets:
    """By producer id, and found again by group."""

    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}
        self._offsets: dict[int, dict[_Place, PendingOffset]] = {}
        self._producers: dict[str, dict[int, None]] = {}

    def add(self, producer: tuple[int, int], offset: PendingOffset) -> None:
        """One more offset of a producer's (id and epoch) open transaction."""
        producer_id, epoch = producer
        place = (offset.group_id, offset.topic, offset.partition)
        self._epochs[producer_id] = epoch
        self._offsets.setdefault(producer_id, {})[place] = offset
        self._producers.setdefault(offset.group_id, {})[producer_id] = None

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Whether this producer has written offsets in a transaction that has not ended."""
        return self._epochs.get(producer_id) == epoch

    def end(self, producer_id: int) -> tuple[PendingOffset, ...]:
        """The producer's transaction is over; returns its offsets in the order in which they were
        first written."""
        self._epochs.pop(producer_id, None)
        offsets = tuple(self._offsets.pop(producer_id, {}).values())
        for group_id in [g for g, producers in self._producers.items() if producer_id in producers]:
            del self._producers[group_id][producer_id]
            if not self._producers[group_id]:
                del self._producers[group_id]
        return offsets

    def forget(self, group_id: str, topic: str, partition: int) -> None:
        """A tombstone: no pending offset of the partition counts any more."""
        for producer_id in self._producers.get(group_id, {}):
            self._offsets[producer_id].pop((group_id, topic, partition), None)

    def holds(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether some transaction has yet to decide about the partition's offset."""
        place = (group_id, topic, partition)
        return any(place in self._offsets[p] for p in self._producers.get(group_id, {}))

    def of_group(self, group_id: str) -> tuple[tuple[str, int], ...]:
        """The partitions that ``holds`` is true of, each once."""
        return tuple(
            dict.fromkeys(
                (topic, partition)
                for producer_id in self._producers.get(group_id, {})
                for group, topic, partition in self._offsets[producer_id]
                if group == group_id
            )
        )

    def has_open_transaction(self, group_id: str) -> bool:
        """Whether a transaction that took offsets of the group has not ended."""
        return group_id in self._producers

    def groups_of_topic(self, topic: str) -> tuple[tuple[str, int], ...]:
        """Group and partition of everything that is pending for a topic."""
        return tuple(
            dict.fromkeys(
                (group_id, partition)
                for offsets in self._offsets.values()
                for group_id, name, partition in offsets
                if name == topic
            )
        )

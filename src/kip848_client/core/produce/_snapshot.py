"""Everything that a producer core knows, frozen: for tests, logs and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kip848_client.core.produce._model import ProducerId
from kip848_client.core.types import TopicPartition

__all__ = ["PartitionSnapshot", "ProducerSnapshot"]


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """One partition that was written to."""

    waiting: int
    """Batches that take no more records and are not on their way."""
    open_records: int
    on_the_wire: int
    producer: ProducerId
    next_sequence: int
    failures: int
    """In a row."""
    trouble: str | None
    """Why the newest try failed."""


@dataclass(frozen=True, slots=True)
class ProducerSnapshot:
    """The whole."""

    held_bytes: int
    """Of ``buffer_bytes``."""
    unreported: int
    """Appended batches whose end nobody was told of."""
    on_the_wire: int
    """Requests without an answer."""
    partitions: Mapping[TopicPartition, PartitionSnapshot]
    topics: Mapping[str, int]
    """Watched topics of which the number of partitions is known."""
    stale_answers: int
    """That nobody waited for any more."""

"""An immutable copy of the producer core's state, for tests, logs and metrics."""

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
    """Closed batches that are not in flight."""
    open_records: int
    on_the_wire: int
    producer: ProducerId
    next_sequence: int
    failures: int
    """Failures in a row."""
    trouble: str | None
    """Why the last attempt failed."""


@dataclass(frozen=True, slots=True)
class ProducerSnapshot:
    """The state of the producer core."""

    held_bytes: int
    """Bytes of ``buffer_bytes`` in use."""
    unreported: int
    """Appended batches whose result was not reported yet."""
    on_the_wire: int
    """Unanswered requests."""
    partitions: Mapping[TopicPartition, PartitionSnapshot]
    topics: Mapping[str, int]
    """The number of partitions of each watched topic, where known."""
    stale_answers: int
    """Answers that were no longer expected."""

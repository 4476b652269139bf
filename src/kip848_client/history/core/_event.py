"""One event, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.types import TopicPartition
from kip848_client.history.core._schema import COORDINATOR, SCHEMA

__all__ = ["HistoryEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent:
    """What ``FIELDS`` say, in their order. ``writer``, ``seq`` and ``host`` are put in by whoever
    writes it down."""

    schema: int = SCHEMA
    writer: str = ""
    seq: int = 0
    host: str = ""
    role: str
    time_ms: int
    kind: str
    group_id: str
    member_id: str | None = None
    instance_id: str | None = None
    client_id: str | None = None
    member_epoch: int | None = None
    group_epoch: int | None = None
    old_state: str | None = None
    state: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    """Sorted, each once."""
    cause: str | None = None
    duration_ms: int | None = None
    count: int | None = None

    @property
    def is_members(self) -> bool:
        """Whether a member wrote it."""
        return self.role != COORDINATOR

    @property
    def order(self) -> tuple[int, str, int]:
        """What events are sorted by."""
        return self.time_ms, self.writer, self.seq

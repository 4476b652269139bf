"""``Ownership``: who owns a query's partitions. ``_exclusive`` and ``_shared`` implement it.

``SourceDriver`` calls it in its event loop, one call at a time, and only after the query's first
manifest is known: nothing is placed or committed before that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Seen

__all__ = ["Ownership", "Ranges"]

Ranges = Mapping[TopicPartition, tuple[int, int]]


class Ownership(ABC):
    """One query with its partitions. What its methods raise ends the query."""

    @abstractmethod
    async def take_over(self, seen: Seen, *, is_repeated: bool) -> None:
        """Continue from the checkpoint. ``is_repeated``: an earlier run planned its last batch, and
        did not finish it."""

    @abstractmethod
    async def next(self, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The next batch; the last manifest again if there is nothing to read."""

    @abstractmethod
    async def again(self, seen: Seen) -> Ranges:
        """What to read again of the checkpoint's last batch."""

    @abstractmethod
    async def is_done(self, batch: Manifest, now_ms: int) -> None:
        """Spark has committed this batch: inform the group. A commit that fails is repeated."""

    @abstractmethod
    async def commit(self, now_ms: int) -> None:
        """Commit what the group lacks. Never raises an error of Kafka's."""

    @abstractmethod
    async def leave(self) -> None:
        """Leave the group, if the query is a member. May be called again."""

    @property
    @abstractmethod
    def kept(self) -> Manifest:
        """The last manifest."""

    @property
    @abstractmethod
    def in_hand(self) -> Manifest | None:
        """The batch that Spark is processing."""

    @abstractmethod
    def status(self, seen: Seen | None) -> dict[str, Any]:
        """The answer of the control channel about this query."""

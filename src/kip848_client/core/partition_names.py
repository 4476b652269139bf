"""Names of partitions for messages."""

from __future__ import annotations

from collections.abc import Collection
from heapq import nsmallest
from typing import Final

from kip848_client.core.types import TopicPartition

__all__ = ["listed", "shown"]

_NAMES_MAX: Final = 5


def shown(tp: TopicPartition) -> str:
    """Return a partition as ``topic-partition``."""
    return f"{tp[0]}-{tp[1]}"


def listed(partitions: Collection[TopicPartition]) -> str:
    """Return at most five partitions and the number of the others: a consumer can have
    thousands.
    """
    names = ", ".join(map(shown, nsmallest(_NAMES_MAX, partitions)))
    more = len(partitions) - _NAMES_MAX
    return f"{names} and {more} more" if more > 0 else names

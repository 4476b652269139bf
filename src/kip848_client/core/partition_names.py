"""Partitions in messages."""

from __future__ import annotations

from collections.abc import Collection
from heapq import nsmallest
from typing import Final

from kip848_client.core.types import TopicPartition

__all__ = ["listed", "shown"]

_NAMES_MAX: Final = 5


def shown(tp: TopicPartition) -> str:
    """One of them."""
    return f"{tp[0]}-{tp[1]}"


def listed(partitions: Collection[TopicPartition]) -> str:
    """Some of them: a consumer can have thousands."""
    names = ", ".join(map(shown, nsmallest(_NAMES_MAX, partitions)))
    more = len(partitions) - _NAMES_MAX
    return f"{names} and {more} more" if more > 0 else names

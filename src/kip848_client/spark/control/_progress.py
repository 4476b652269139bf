"""Reads the offsets of Spark's own Kafka source from the progress of a query."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kip848_client.core.types import TopicPartition

__all__ = ["lag_between", "positions_of"]


def positions_of(said: str | None) -> dict[TopicPartition, int]:
    """The positions in an offset of Spark's Kafka source, ``{"orders": {"0": 17}}``; empty for
    another source."""
    try:
        topics: Any = json.loads(said or "null")
    except ValueError:
        return {}
    if not isinstance(topics, dict):
        return {}
    found: dict[TopicPartition, int] = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            return {}
        for number, position in partitions.items():
            if not _is_place(number, position):
                return {}
            found[TopicPartition(topic, int(number))] = position
    return found


def _is_place(number: str, position: Any) -> bool:
    is_number = number.isascii() and number.isdecimal()
    return is_number and isinstance(position, int) and position >= 0 and position is not True


def lag_between(
    done: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The unprocessed records by partition. A new partition that was not read yet has no lag: its
    start position is unknown."""
    return {tp: max(0, end - done[tp]) for tp, end in sorted(latest.items()) if tp in done}

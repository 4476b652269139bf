"""What aiokafka's fetcher may see of an answer to a Fetch: what it asked for, each partition once.

A partition that it did not ask for, or one that comes twice, would end fetching for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kip848_client._types import TopicPartition

__all__ = ["sifted"]

Topics = Iterable[tuple[str, Iterable[Sequence[Any]]]]
"""Of a request or an answer: topics with their rows, which begin with the partition."""


def sifted(
    asked: Topics, answered: Topics | None
) -> tuple[list[tuple[str, list[Sequence[Any]]]], list[TopicPartition]]:
    """The answer's topics without what was not asked for, and what was left out."""
    open_rows = {(topic, row[0]) for topic, rows in asked for row in rows}
    kept: list[tuple[str, list[Sequence[Any]]]] = []
    left_out: list[TopicPartition] = []
    for topic, rows in answered or ():
        good: list[Sequence[Any]] = []
        for row in rows or ():
            tp = TopicPartition(topic, row[0])
            if tp in open_rows:
                open_rows.discard(tp)
                good.append(row)
            else:
                left_out.append(tp)
        kept.append((topic, good))
    return kept, left_out

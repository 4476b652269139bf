"""Grouping of partitions by reason, to report one reason for thousands of partitions once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = ["by_reason"]


def by_reason(
    failed: Mapping[TopicPartition, Kip848Error],
) -> Iterator[tuple[tuple[TopicPartition, ...], Kip848Error]]:
    """Yield the partitions that failed alike, sorted, with the error of one of them."""
    alike: dict[str, list[TopicPartition]] = {}
    texts: dict[Kip848Error, str] = {}
    for tp, error in failed.items():
        text = texts.get(error)
        if text is None:
            text = texts[error] = str(error)
        alike.setdefault(text, []).append(tp)
    for partitions in alike.values():
        yield tuple(sorted(partitions)), failed[partitions[0]]

"""Balances items between workers by count only, as Kafka's incremental cooperative assignor does.
Connectors and tasks are balanced separately.

All functions work on ``held``: worker -> its list, whose order matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import TypeVar

from kip848_client.core.assignors._java_order import utf16_key

__all__ = ["deal", "fill", "head", "stop", "surplus"]

T = TypeVar("T")

Pick = Callable[[Sequence[T], int], Sequence[T]]
"""Chooses this many of a worker's items to give up."""


def fill(held: Mapping[str, list[T]], items: Sequence[T]) -> None:
    """Distribute items so that the loads become even: in each pass, the workers with the fewest
    items get one each. Their order is fixed at the start, by load and then by worker id."""
    if not held:
        return
    order = sorted(held, key=lambda each: (len(held[each]), utf16_key(each)))
    loads = [len(held[each]) for each in order]
    at, sharing = 0, 0
    while at < len(items):
        level = loads[0]
        while sharing < len(order) and loads[sharing] == level:
            sharing += 1
        given = min(sharing, len(items) - at)
        for place in range(given):
            held[order[place]].append(items[at + place])
            loads[place] += 1
        at += given


def deal(held: Mapping[str, list[T]], workers: Sequence[str], items: Iterable[T]) -> None:
    """Distribute items to these workers in turn, whatever they already have."""
    for worker, item in zip(cycle(workers), items, strict=False):
        held[worker].append(item)


def head(items: Sequence[T], count: int) -> Sequence[T]:
    """The first ``count`` items."""
    return items[:count]


def surplus(
    held: Mapping[str, list[T]], order: Iterable[str], total: int, pick: Pick[T]
) -> dict[str, Sequence[T]]:
    """What workers must give up so that none has more than its share of ``total``, which includes
    unassigned items. If the share is not a whole number, the first workers in ``order`` that have
    more keep one more."""
    least, extra = divmod(total, len(held))
    counts = [len(items) for items in held.values()]
    if counts.count(least + 1) == extra and counts.count(least) == len(counts) - extra:
        return {}
    stopped: dict[str, Sequence[T]] = {}
    for worker in order:
        items = held[worker]
        if len(items) <= least:
            continue
        limit = least
        if extra > 0:
            extra -= 1
            limit = least + 1
        if len(items) > limit:
            stopped[worker] = pick(items, len(items) - limit)
    return stopped


def stop(held: Mapping[str, list[T]], stopped: Mapping[str, Sequence[T]]) -> None:
    """Take these items from their workers."""
    for worker, items in stopped.items():
        gone = frozenset(items)
        held[worker][:] = [each for each in held[worker] if each not in gone]

"""Who gets an item, and who gives one up: by count alone, as Kafka's incremental cooperative
assignor does it. Connectors and tasks are balanced apart from each other.

Everything here works on ``held``: worker -> its list, in which the order counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import TypeVar

from kip848_client.core.assignors._java_order import utf16_key

__all__ = ["deal", "fill", "head", "stop", "surplus"]

T = TypeVar("T")

Pick = Callable[[Sequence[T], int], Sequence[T]]
"""Which so many of a worker's items it gives up."""


def fill(held: Mapping[str, list[T]], items: Sequence[T]) -> None:
    """Give the items out, so that the loads become even: those with the least get one each, until
    there are none left. Who comes first is settled once, by load and then by worker id."""
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
    """Give the items to these workers in turn, whatever they have."""
    for worker, item in zip(cycle(workers), items, strict=False):
        held[worker].append(item)


def head(items: Sequence[T], count: int) -> Sequence[T]:
    """The first ones."""
    return items[:count]


def surplus(
    held: Mapping[str, list[T]], order: Iterable[str], total: int, pick: Pick[T]
) -> dict[str, Sequence[T]]:
    """What workers give up so that nobody has more than its share of ``total``, those included that
    nobody has. Workers with the most leave one more with those who come first in ``order``."""
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
    """Take these from their workers."""
    for worker, items in stopped.items():
        gone = frozenset(items)
        held[worker][:] = [each for each in held[worker] if each not in gone]

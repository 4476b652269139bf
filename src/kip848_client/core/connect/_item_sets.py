"""Sets of connectors and tasks, and the order in which Kafka sorts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.core.assignors._java_order import utf16_key
from kip848_client.core.connect._items import ConnectorTaskId, Items

__all__ = ["NOTHING", "ItemSet", "all_of", "as_set", "repeated"]


@dataclass(frozen=True, slots=True)
class ItemSet:
    """Connectors and tasks, unordered."""

    connectors: frozenset[str] = frozenset()
    tasks: frozenset[ConnectorTaskId] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)

    def __or__(self, other: ItemSet) -> ItemSet:
        return ItemSet(self.connectors | other.connectors, self.tasks | other.tasks)

    def __and__(self, other: ItemSet) -> ItemSet:
        return ItemSet(self.connectors & other.connectors, self.tasks & other.tasks)

    def __sub__(self, other: ItemSet) -> ItemSet:
        if not other:
            return self
        return ItemSet(self.connectors - other.connectors, self.tasks - other.tasks)

    def in_order(self) -> Items:
        """Sorted by name and then by number; names as Java compares them, by UTF-16 unit."""
        if all(name.isascii() for name, _ in self.tasks):
            tasks = sorted(self.tasks)
        else:
            tasks = sorted(self.tasks, key=lambda each: (utf16_key(each[0]), each[1]))
        return Items(tuple(sorted(self.connectors, key=utf16_key)), tuple(tasks))


NOTHING: Final = ItemSet()


def as_set(items: Items) -> ItemSet:
    """The same items, unordered."""
    return ItemSet(frozenset(items.connectors), frozenset(items.tasks))


def all_of(held: Iterable[Items]) -> ItemSet:
    """The union of the sets."""
    many = list(held)
    return ItemSet(
        frozenset().union(*(each.connectors for each in many)),
        frozenset().union(*(each.tasks for each in many)),
    )


def repeated(reported: Mapping[str, Items], active: ItemSet) -> ItemSet:
    """The items that more than one worker reports."""
    many = [as_set(items) for items in reported.values()]
    if sum(len(each.connectors) + len(each.tasks) for each in many) == len(active.connectors) + len(
        active.tasks
    ):
        return NOTHING
    seen, twice = NOTHING, NOTHING
    for each in many:
        twice |= seen & each
        seen |= each
    return twice

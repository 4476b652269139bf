"""Connectors and their tasks: the items that workers share.

A connector is identified by a string. A task is a ``ConnectorTaskId``, which prints as in Kafka
Connect: ``source-3``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["ITSELF", "NO_ITEMS", "ConnectorTaskId", "Items", "item_name", "items_of"]

ITSELF: Final = -1
"""Stands for the connector itself among task numbers."""


def item_name(connector: str, task: int) -> str:
    """``source`` for a connector and ``source-3`` for its task, as in Kafka Connect."""
    return connector if task == ITSELF else f"{connector}-{task}"


class ConnectorTaskId(NamedTuple):
    """One task of a connector.

    Attributes:
        connector: Name of the connector.
        task: Number of the task, from 0.
    """

    connector: str
    task: int

    def __str__(self) -> str:
        return item_name(self.connector, self.task)


@dataclass(frozen=True, slots=True)
class Items:
    """Connectors and tasks. Their order matters to some of Kafka's assignors.

    Attributes:
        connectors: Names of connectors, each for the connector itself.
        tasks: Tasks of connectors.
    """

    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTaskId, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)

    def __len__(self) -> int:
        return len(self.connectors) + len(self.tasks)

    def __str__(self) -> str:
        return ", ".join([*self.connectors, *map(str, self.tasks)]) or "nothing"

    def __add__(self, other: Items) -> Items:
        return Items(self.connectors + other.connectors, self.tasks + other.tasks)

    def in_order(self) -> Items:
        """Sort by name and then by number. Raises nothing.

        Returns:
            The same items.
        """
        return Items(tuple(sorted(self.connectors)), tuple(sorted(self.tasks)))


NO_ITEMS: Final = Items()


def items_of(connectors: Mapping[str, int] | Iterable[tuple[str, int]]) -> Items:
    """List all items of a configuration. Raises nothing.

    Args:
        connectors: The number of tasks by connector.

    Returns:
        The items, sorted.
    """
    counts = dict(connectors)
    names = sorted(counts)
    return Items(
        tuple(names),
        tuple(ConnectorTaskId(name, number) for name in names for number in range(counts[name])),
    )

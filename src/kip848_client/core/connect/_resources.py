"""Connectors and tasks as the resources of a group that reconciles, and as messages have them.

The tasks of one generation of a connector are the parts of one resource, by their numbers. The
connector itself is a resource of its own with the single part ``ITSELF``, which stands for its
generation, too: it has none, because it goes on when its tasks are configured anew. Nothing outside
of this module looks into the ids of the resources.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kip848_client.core.connect._items import ITSELF, item_name
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.connect_group import ConnectGroupItems

__all__ = [
    "ItemsError",
    "OwnedItems",
    "connector_of",
    "parts_of",
    "read_items",
    "resource_of",
    "taken_once",
    "write_items",
]

_GENERATION: Final = struct.Struct(">i")


class ItemsError(ValueError):
    """Rows that cannot be items."""


class OwnedItems(NamedTuple):
    """Parts of one resource, under the names that reconciliation has for them."""

    topic_id: TopicId
    partitions: tuple[int, ...]


def resource_of(connector: str, generation: int) -> TopicId:
    """The id of the tasks of a generation; with ``ITSELF``, of the connector."""
    return TopicId(_GENERATION.pack(generation) + connector.encode())


def connector_of(resource: TopicId) -> tuple[str, int]:
    """The connector and the generation (or ``ITSELF``) of a resource."""
    (generation,) = _GENERATION.unpack_from(resource)
    return resource[_GENERATION.size :].decode(), generation


def read_items(rows: Iterable[ConnectGroupItems]) -> dict[TopicId, tuple[int, ...]]:
    """Resource -> its parts, sorted. Raises ``ItemsError`` for an item that cannot be, or that is
    there twice, be it in two generations."""
    found: dict[TopicId, list[int]] = {}
    taken: set[tuple[str, int]] = set()
    for row in rows:
        if not row.connector:
            raise ItemsError("A connector has no name.")
        if row.generation < 0:
            raise ItemsError(f"Generation {row.generation} of {row.connector} is negative.")
        parts = [(ITSELF, ITSELF)] if row.runs_connector else []
        parts += [(row.generation, task) for task in row.tasks]
        for generation, task in parts:
            if task < 0 and generation != ITSELF:
                raise ItemsError(f"Task {task} of {row.connector} is negative.")
            if (row.connector, task) in taken:
                raise ItemsError(f"{item_name(row.connector, task)} is there twice.")
            taken.add((row.connector, task))
            found.setdefault(resource_of(row.connector, generation), []).append(task)
    return {resource: tuple(sorted(parts)) for resource, parts in found.items()}


def parts_of(rows: Iterable[ConnectGroupItems]) -> set[tuple[TopicId, int]]:
    """Resources and parts as these rows have them, however wrong they are."""
    found: set[tuple[TopicId, int]] = set()
    for row in rows:
        found |= {(resource_of(row.connector, row.generation), task) for task in row.tasks}
        if row.runs_connector:
            found.add((resource_of(row.connector, ITSELF), ITSELF))
    return found


def write_items(held: Mapping[TopicId, Iterable[int]]) -> tuple[ConnectGroupItems, ...]:
    """One row for each connector and generation, sorted. A connector itself is in the row of its
    newest tasks, and in one of generation 0 when it is alone."""
    rows: dict[tuple[str, int], ConnectGroupItems] = {}
    themselves: list[str] = []
    for resource, parts in held.items():
        connector, generation = connector_of(resource)
        tasks = tuple(sorted(parts))
        if generation == ITSELF:
            themselves += [connector] if tasks else []
        elif tasks:
            rows[connector, generation] = ConnectGroupItems(
                connector=connector, generation=generation, tasks=tasks
            )
    newest = dict(sorted(rows))
    for connector in themselves:
        generation = newest.get(connector, 0)
        row = rows.setdefault(
            (connector, generation), ConnectGroupItems(connector=connector, generation=generation)
        )
        row.runs_connector = True
    return tuple(rows[key] for key in sorted(rows))


def taken_once(
    holder: str, held: Mapping[TopicId, Iterable[int]], taken: dict[tuple[str, int], str]
) -> None:
    """Note which worker has these items. Raises ``ItemsError`` when another has one of them
    already, in any generation."""
    for resource, parts in held.items():
        connector, _ = connector_of(resource)
        for task in parts:
            other = taken.setdefault((connector, task), holder)
            if other != holder:
                name = item_name(connector, task)
                raise ItemsError(f"{name} is assigned twice, to {other} and to {holder}.")

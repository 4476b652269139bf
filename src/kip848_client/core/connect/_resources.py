"""Connectors and tasks as resources of a reconciling group, and in messages.

The tasks of one generation of a connector are the parts of one resource, by their numbers. The
connector itself is a resource of its own with the single part ``ITSELF``, which also stands for its
generation. It has no generation, because it keeps running when its tasks are reconfigured. Resource
ids are opaque to all other modules.
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
    """Rows that are not valid items."""


class OwnedItems(NamedTuple):
    """Parts of one resource, under their names in reconciliation."""

    topic_id: TopicId
    partitions: tuple[int, ...]


def resource_of(connector: str, generation: int) -> TopicId:
    """The id of the tasks of a generation or, with ``ITSELF``, of the connector."""
    return TopicId(_GENERATION.pack(generation) + connector.encode())


def connector_of(resource: TopicId) -> tuple[str, int]:
    """The connector and the generation (or ``ITSELF``) of a resource."""
    (generation,) = _GENERATION.unpack_from(resource)
    return resource[_GENERATION.size :].decode(), generation


def read_items(rows: Iterable[ConnectGroupItems]) -> dict[TopicId, tuple[int, ...]]:
    """Resource -> its parts, sorted. Raises ``ItemsError`` for an invalid item, or one that occurs
    twice, even in two generations."""
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
    """Resources and parts as in these rows, without checks."""
    found: set[tuple[TopicId, int]] = set()
    for row in rows:
        found |= {(resource_of(row.connector, row.generation), task) for task in row.tasks}
        if row.runs_connector:
            found.add((resource_of(row.connector, ITSELF), ITSELF))
    return found


def write_items(held: Mapping[TopicId, Iterable[int]]) -> tuple[ConnectGroupItems, ...]:
    """One row per connector and generation, sorted. A connector itself is in the row of its newest
    tasks or, if there are none, in a row of generation 0."""
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
    """Record that a worker has these items. Raises ``ItemsError`` if another worker has one of them
    already, in any generation."""
    for resource, parts in held.items():
        connector, _ = connector_of(resource)
        for task in parts:
            other = taken.setdefault((connector, task), holder)
            if other != holder:
                name = item_name(connector, task)
                raise ItemsError(f"{name} is assigned twice, to {other} and to {holder}.")

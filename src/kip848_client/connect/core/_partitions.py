"""Translates items to the member core's names for assigned resources: topic ids and partitions.

The member core reconciles partitions and compares them only for equality. The tasks of one
generation of a connector are the partitions of one topic, by their numbers; the connector itself is
partition 0 of a topic of its own (``kip848_client.core.connect.resource_of``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kip848_client.connect.core._model import AssignedItem
from kip848_client.core.connect import (
    ITSELF,
    ConnectorTaskId,
    Items,
    connector_of,
    parts_of,
    resource_of,
    write_items,
)
from kip848_client.core.member import AssignedPartition, Assignment, group_by_topic
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.connect_group import ConnectGroupItems

__all__ = ["items", "partitions", "plain", "rows", "rows_of_items", "topic_name"]

_ITSELF_AS_PARTITION: Final = 0


def partitions(given: Iterable[ConnectGroupItems]) -> Assignment:
    """Message rows as partitions; invalid tasks are left out."""
    return group_by_topic(
        (resource, _ITSELF_AS_PARTITION if part == ITSELF else part)
        for resource, part in parts_of(given)
        if part >= 0 or connector_of(resource)[1] == ITSELF
    )


def rows(assignment: Assignment) -> tuple[ConnectGroupItems, ...]:
    """Partitions as message rows."""
    return write_items(
        {
            topic_id: (ITSELF,) if connector_of(topic_id)[1] == ITSELF else numbers
            for topic_id, numbers in assignment
        }
    )


def rows_of_items(given: Iterable[AssignedItem]) -> tuple[ConnectGroupItems, ...]:
    """Items as message rows."""
    held: dict[TopicId, list[int]] = {}
    for item in given:
        held.setdefault(resource_of(item.connector, item.generation), []).append(item.task)
    return write_items(held)


def items(assigned: Iterable[AssignedPartition]) -> tuple[AssignedItem, ...]:
    """Partitions as items of the worker: connectors before tasks, sorted."""
    found: list[AssignedItem] = []
    for each in assigned:
        connector, generation = connector_of(each.topic_id)
        task = ITSELF if generation == ITSELF else each.partition
        found.append(AssignedItem(connector, task, generation))
    return tuple(sorted(found, key=lambda item: (item.task != ITSELF, item)))


def plain(assignment: Assignment) -> Items:
    """Items in the form for assignors: without generations."""
    connectors: list[str] = []
    tasks: list[ConnectorTaskId] = []
    for topic_id, numbers in assignment:
        connector, generation = connector_of(topic_id)
        if generation == ITSELF:
            connectors.append(connector)
        else:
            tasks += (ConnectorTaskId(connector, number) for number in numbers)
    return Items(tuple(sorted(connectors)), tuple(sorted(set(tasks))))


def topic_name(topic_id: TopicId) -> str:
    """The name by which the member core sorts."""
    return connector_of(topic_id)[0]

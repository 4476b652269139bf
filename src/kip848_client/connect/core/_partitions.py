"""Items under the names that the member core has for what is assigned: topic ids and partitions.

The member core reconciles partitions, and needs to know nothing of them but whether two are the
same. Tasks of one generation of a connector are the partitions of one topic, by their numbers; the
connector itself is the partition 0 of a topic of its own
(``kip848_client.core.connect.resource_of``).
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
    """Rows of a message as partitions; tasks that cannot be are left out."""
    return group_by_topic(
        (resource, _ITSELF_AS_PARTITION if part == ITSELF else part)
        for resource, part in parts_of(given)
        if part >= 0 or connector_of(resource)[1] == ITSELF
    )


def rows(assignment: Assignment) -> tuple[ConnectGroupItems, ...]:
    """Partitions as rows of a message."""
    return write_items(
        {
            topic_id: (ITSELF,) if connector_of(topic_id)[1] == ITSELF else numbers
            for topic_id, numbers in assignment
        }
    )


def rows_of_items(given: Iterable[AssignedItem]) -> tuple[ConnectGroupItems, ...]:
    """Items as rows of a message."""
    held: dict[TopicId, list[int]] = {}
    for item in given:
        held.setdefault(resource_of(item.connector, item.generation), []).append(item.task)
    return write_items(held)


def items(assigned: Iterable[AssignedPartition]) -> tuple[AssignedItem, ...]:
    """Partitions as the worker knows them, connectors before tasks, sorted."""
    found: list[AssignedItem] = []
    for each in assigned:
        connector, generation = connector_of(each.topic_id)
        task = ITSELF if generation == ITSELF else each.partition
        found.append(AssignedItem(connector, task, generation))
    return tuple(sorted(found, key=lambda item: (item.task != ITSELF, item)))


def plain(assignment: Assignment) -> Items:
    """What is assigned as assignors know it: without generations."""
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
    """By which the member core sorts."""
    return connector_of(topic_id)[0]

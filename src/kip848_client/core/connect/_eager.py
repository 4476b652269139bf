"""``eager``: redistributes everything each time, like Kafka's ``EagerAssignor``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle

from kip848_client.core.assignors._java_order import utf16_key
from kip848_client.core.client_assignors import AssignorMetadata
from kip848_client.core.connect._item_sets import as_set
from kip848_client.core.connect._items import ConnectorTaskId, Items, items_of
from kip848_client.core.connect._model import (
    Computed,
    NewWorkerAssignment,
    TargetAssignment,
    WorkerGroup,
)
from kip848_client.core.connect._protocols import ConnectProtocol

__all__ = ["EagerAssignor", "eager_round"]


def eager_round(connectors: Mapping[str, int], workers: Iterable[str]) -> dict[str, Items]:
    """Deal the sorted connectors to the sorted workers in turn, then continue with the tasks at the
    next worker. ``connectors``: the number of tasks of each."""
    order = sorted(workers, key=utf16_key)
    held: dict[str, tuple[list[str], list[ConnectorTaskId]]] = {each: ([], []) for each in order}
    if order:
        turn = cycle(order)
        everything = as_set(items_of(connectors)).in_order()
        for connector in everything.connectors:
            held[next(turn)][0].append(connector)
        for task in everything.tasks:
            held[next(turn)][1].append(task)
    return {each: Items(tuple(names), tuple(tasks)) for each, (names, tasks) in held.items()}


class EagerAssignor:
    """Redistributes all items at every change, like Kafka's ``EagerAssignor``.

    Almost everything moves, but one item at a time: on the new protocol workers do not stop
    everything before they rejoin, unlike in the classic one. Nothing is ever deferred.
    """

    name: str = "eager"
    minimum_version: int = ConnectProtocol.EAGER
    maximum_version: int = ConnectProtocol.EAGER

    def metadata(self) -> AssignorMetadata:
        """Return metadata without data. See ``ConnectAssignor.metadata``."""
        return AssignorMetadata(version=self.maximum_version)

    def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
        """Distribute all items, without using memory. See ``ConnectAssignor.assign``."""
        del memory
        return Computed(TargetAssignment(eager_round(group.connectors, group.workers)))

    def on_assignment(self, assignment: NewWorkerAssignment) -> None:
        """Do nothing. See ``ConnectAssignor.on_assignment``."""

"""``eager``: everything is dealt anew each time, as by Kafka's ``EagerAssignor``."""

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
    """Deal the connectors, sorted, to the workers, sorted, in turn; and go on with the tasks where
    that has ended. ``connectors``: how many tasks each has."""
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
    """Deal all items out again with every change, as Kafka's ``EagerAssignor``.

    Almost everything moves, but item by item: on the new protocol workers do not stop everything
    before they join again, as in the classic one. Nothing is ever deferred.
    """

    name: str = "eager"
    minimum_version: int = ConnectProtocol.EAGER
    maximum_version: int = ConnectProtocol.EAGER

    def metadata(self) -> AssignorMetadata:
        """Report nothing of its own. See ``ConnectAssignor.metadata``."""
        return AssignorMetadata(version=self.maximum_version)

    def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
        """Deal out all items; there is no memory. See ``ConnectAssignor.assign``."""
        del memory
        return Computed(TargetAssignment(eager_round(group.connectors, group.workers)))

    def on_assignment(self, assignment: NewWorkerAssignment) -> None:
        """Do nothing. See ``ConnectAssignor.on_assignment``."""

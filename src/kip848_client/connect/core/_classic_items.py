"""A worker's items in a classic group: those the group knows of, and those that really run.

The group knows the *allocation*, which the worker reports when it joins and which assignments
change. In reality items run, are being stopped, or wait to be started. The generation of a task is
local to the worker here; rounds do not use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kip848_client.connect.core._commands import StartItems, StopItems, WorkerCommand
from kip848_client.connect.core._model import AssignedItem, Configuration
from kip848_client.core.connect import ITSELF, NO_ITEMS, ConnectorTaskId, Items, WorkerAssignment

__all__ = ["HeldItems"]

_Key = tuple[str, int]


class HeldItems:
    """The items of one worker. Emits ``StopItems`` and ``StartItems``."""

    def __init__(self, emit: Callable[[WorkerCommand], None]) -> None:
        self._emit = emit
        self.plans = 0
        """The number of the newest plan."""
        self.allocation: Items | None = None
        """The items that the group knows this worker to have; ``None`` before the first assignment,
        and after everything was lost."""
        self._running: dict[_Key, AssignedItem] = {}
        self._stopping: dict[int, tuple[AssignedItem, ...]] = {}
        self._starting: dict[_Key, None] = {}
        """The items to be started, in order."""

    # -- queries -----------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        """Whether items are being stopped and the stop is not confirmed yet."""
        return bool(self._stopping)

    @property
    def runs_something(self) -> bool:
        """Whether items run that are not being stopped."""
        return bool(self._running)

    @property
    def wait_to_start(self) -> bool:
        """Whether items are assigned and not started yet."""
        return bool(self._starting)

    @property
    def assigned(self) -> tuple[AssignedItem, ...]:
        """The items that run or are being stopped: connectors before tasks, sorted."""
        found = [*self._running.values()]
        for each in self._stopping.values():
            found += each
        return _in_order(found)

    def outdated(self, configuration: Configuration) -> list[_Key]:
        """Running tasks that have been reconfigured."""
        return [
            key
            for key, item in self._running.items()
            if item.task != ITSELF
            and item.connector in configuration.connectors
            and configuration.connectors[item.connector].generation != item.generation
        ]

    @property
    def reported(self) -> WorkerAssignment | None:
        """The allocation, in the form of the worker's metadata."""
        return None if self.allocation is None else WorkerAssignment(assigned=self.allocation)

    # -- changes -----------------------------------------------------------------------------

    def take(self, said: WorkerAssignment, *, incremental: bool) -> None:
        """Apply an assignment: stop the revoked items and record the new ones. New items come
        first, as in a Java worker, because a leader takes the items to move from the head."""
        new = said.assigned or NO_ITEMS
        if incremental:
            new += _without(self.allocation or NO_ITEMS, said.revoked or NO_ITEMS)
        self.allocation = Items(
            tuple(dict.fromkeys(new.connectors)), tuple(dict.fromkeys(new.tasks))
        )
        mine = dict.fromkeys(_keys(self.allocation))
        self.stop([key for key in self._running if key not in mine])
        self._starting = {key: None for key in mine if key not in self._running}

    def stop(self, keys: Iterable[_Key], *, lost: bool = False, last: bool = False) -> None:
        """Stop these items."""
        gone = _in_order([self._running.pop(key) for key in keys])
        if gone:
            self.plans += 1
            self._stopping[self.plans] = gone
            self._emit(StopItems(self.plans, gone, lost, last))

    def stop_all(self, *, lost: bool = False, last: bool = False) -> None:
        """Stop everything and start nothing: this worker has no items any more."""
        self.allocation = None
        self._starting = {}
        self.stop(list(self._running), lost=lost, last=last)

    def stopped(self, plan: int) -> None:
        """A stop has completed."""
        self._stopping.pop(plan, None)

    def start(self, configuration: Configuration) -> None:
        """Start the items that wait for it. Items that are not configured any more keep waiting;
        the next round takes them away."""
        new: list[AssignedItem] = []
        for connector, task in list(self._starting):
            tasks = configuration.connectors.get(connector)
            if tasks is None or task >= tasks.count:
                continue
            generation = ITSELF if task == ITSELF else tasks.generation
            item = self._running[connector, task] = AssignedItem(connector, task, generation)
            del self._starting[connector, task]
            new.append(item)
        if new:
            self.plans += 1
            everything = _in_order(self._running.values())
            self._emit(StartItems(self.plans, _in_order(new), everything))


def _keys(items: Items) -> list[_Key]:
    return [(name, ITSELF) for name in items.connectors] + [(a, b) for a, b in items.tasks]


def _without(items: Items, gone: Items) -> Items:
    connectors, tasks = frozenset(gone.connectors), frozenset(gone.tasks)
    return Items(
        tuple(each for each in items.connectors if each not in connectors),
        tuple(ConnectorTaskId(*each) for each in items.tasks if each not in tasks),
    )


def _in_order(items: Iterable[AssignedItem]) -> tuple[AssignedItem, ...]:
    return tuple(sorted(items, key=lambda item: (item.task != ITSELF, item)))

"""What a worker of a classic group has: by the group's word, and in fact.

The group's word is the *allocation*, which the worker reports when it joins and which assignments
change. In fact items run, are being stopped, or wait to be started. The generation of a task is the
worker's own matter here: rounds know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kip848_client.connect.core._commands import StartItems, StopItems, WorkerCommand
from kip848_client.connect.core._model import AssignedItem, Configuration
from kip848_client.core.connect import ITSELF, NO_ITEMS, ConnectorTaskId, Items, WorkerAssignment

__all__ = ["HeldItems"]

_Key = tuple[str, int]


class HeldItems:
    """Items of one worker. Emits ``StopItems`` and ``StartItems``."""

    def __init__(self, emit: Callable[[WorkerCommand], None]) -> None:
        self._emit = emit
        self.plans = 0
        """The number of the newest plan."""
        self.allocation: Items | None = None
        """What the group knows this worker to have; ``None`` before the first assignment, and when
        everything was lost."""
        self._running: dict[_Key, AssignedItem] = {}
        self._stopping: dict[int, tuple[AssignedItem, ...]] = {}
        self._starting: dict[_Key, None] = {}
        """What is to be started, in order."""

    # -- looking -----------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        """Whether something was told to stop, and has not answered."""
        return bool(self._stopping)

    @property
    def runs_something(self) -> bool:
        """Whether anything runs that was not told to stop."""
        return bool(self._running)

    @property
    def wait_to_start(self) -> bool:
        """Whether something was assigned and not started."""
        return bool(self._starting)

    @property
    def assigned(self) -> tuple[AssignedItem, ...]:
        """What runs or is being stopped, connectors before tasks, sorted."""
        found = [*self._running.values()]
        for each in self._stopping.values():
            found += each
        return _in_order(found)

    def outdated(self, configuration: Configuration) -> list[_Key]:
        """Tasks that run and were configured anew."""
        return [
            key
            for key, item in self._running.items()
            if item.task != ITSELF
            and item.connector in configuration.connectors
            and configuration.connectors[item.connector].generation != item.generation
        ]

    @property
    def reported(self) -> WorkerAssignment | None:
        """The allocation, as the worker's metadata has it."""
        return None if self.allocation is None else WorkerAssignment(assigned=self.allocation)

    # -- changing ----------------------------------------------------------------------------

    def take(self, said: WorkerAssignment, *, incremental: bool) -> None:
        """An assignment: stop what it takes, and note what it gives. What is new stands in front,
        as in a Java worker: a leader takes from the head what it wants moved."""
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
        """Stop these."""
        gone = _in_order([self._running.pop(key) for key in keys])
        if gone:
            self.plans += 1
            self._stopping[self.plans] = gone
            self._emit(StopItems(self.plans, gone, lost, last))

    def stop_all(self, *, lost: bool = False, last: bool = False) -> None:
        """Stop everything, and start nothing: this worker has nothing any more."""
        self.allocation = None
        self._starting = {}
        self.stop(list(self._running), lost=lost, last=last)

    def stopped(self, plan: int) -> None:
        """A stop has come to its end."""
        self._stopping.pop(plan, None)

    def start(self, configuration: Configuration) -> None:
        """Start what waits for it. What is not configured any more goes on waiting: the next round
        takes it away."""
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

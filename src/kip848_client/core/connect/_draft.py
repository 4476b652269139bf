"""An assignment while it is being computed: each worker's items, and the handling of lost items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kip848_client.core.connect._balance import deal, fill, head, stop, surplus
from kip848_client.core.connect._item_sets import NOTHING, ItemSet
from kip848_client.core.connect._items import ConnectorTaskId, Items

__all__ = ["NOT_WAITING", "Draft", "Waiting", "backoff_ms"]

_FACTOR: Final = 40


def backoff_ms(rounds: int, max_delay_ms: int) -> int:
    """How long workers pause after this many rounds in a row that would have moved items."""
    delay: int = _FACTOR ** min(rounds, 10)  # 40 to the power of 10 is more than any delay
    return min(max_delay_ms, delay)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long lost items are kept for workers that may return."""

    candidates: tuple[str, ...] = ()
    """Workers that were empty meanwhile, which get the items in the end."""
    deadline_ms: int = 0
    """0 if nothing is waited for."""
    delay_ms: int = 0
    """The delay last sent to workers."""


NOT_WAITING: Final = Waiting()


@dataclass(slots=True)
class Draft:
    """``order``: the order of the workers where it matters."""

    order: Sequence[str]
    connectors: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    tasks: dict[str, list[ConnectorTaskId]] = field(
        default_factory=dict[str, list[ConnectorTaskId]]
    )

    def keep(self, worker: str, items: Items, stopped: ItemSet) -> None:
        """Record the items that a worker already has, except those it stops."""
        connectors, tasks = list(items.connectors), list(items.tasks)
        if stopped:
            connectors = [each for each in connectors if each not in stopped.connectors]
            tasks = [each for each in tasks if each not in stopped.tasks]
        self.connectors[worker], self.tasks[worker] = connectors, tasks

    def is_empty(self, worker: str) -> bool:
        """Whether the worker has no items."""
        return not self.connectors[worker] and not self.tasks[worker]

    def add(self, worker: str, items: Items) -> None:
        """Give the worker these items as well."""
        self.connectors[worker] += items.connectors
        self.tasks[worker] += items.tasks

    def fill(self, items: Items) -> None:
        """Give these items to the workers with the fewest."""
        fill(self.connectors, items.connectors)
        self.fill_tasks(items.tasks)

    def fill_tasks(self, tasks: Sequence[ConnectorTaskId]) -> None:
        """Distribute tasks among the workers."""
        fill(self.tasks, tasks)

    def pick_tasks(self, tasks: Sequence[ConnectorTaskId], count: int) -> Sequence[ConnectorTaskId]:
        """Which tasks a worker gives up."""
        return head(tasks, count)

    def moves(self, configured: ItemSet) -> dict[str, Items]:
        """What workers must give up for an even load. Nothing is taken from them yet."""
        if not configured or all(map(self.is_empty, self.order)):
            return {}
        connectors = surplus(self.connectors, self.order, len(configured.connectors), head)
        tasks = surplus(self.tasks, self.order, len(configured.tasks), self.pick_tasks)
        return {
            each: Items(tuple(connectors.get(each, ())), tuple(tasks.get(each, ())))
            for each in self.order
            if each in connectors or each in tasks
        }

    def take(self, moves: Mapping[str, Items]) -> None:
        """Take these items from their workers."""
        stop(self.connectors, {each: items.connectors for each, items in moves.items()})
        stop(self.tasks, {each: items.tasks for each, items in moves.items()})

    def items(self, worker: str) -> Items:
        """The worker's current items."""
        return Items(tuple(self.connectors[worker]), tuple(self.tasks[worker]))

    def everything(self) -> ItemSet:
        """The current items of all workers."""
        return ItemSet(
            frozenset().union(*self.connectors.values()), frozenset().union(*self.tasks.values())
        )

    def settle(
        self, lost: ItemSet, waiting: Waiting, *, now_ms: int, max_delay_ms: int, left: bool
    ) -> tuple[Waiting, ItemSet, bool]:
        """Decide about lost items. Candidates may get some of them here.

        ``left``: whether a worker has left since the last assignment. Returns what workers now wait
        for, the items to distribute among all workers, and whether a wait has ended.
        """
        if (waiting.deadline_ms <= 0 and not left) or max_delay_ms == 0:
            return waiting, lost, False
        if 0 < waiting.deadline_ms <= now_ms:
            heirs = [each for each in waiting.candidates if each in self.connectors]
            if not heirs:
                return NOT_WAITING, lost, True
            items = lost.in_order()
            deal(self.connectors, heirs, items.connectors)
            deal(self.tasks, heirs, items.tasks)
            return NOT_WAITING, NOTHING, True
        empty = [each for each in self.order if self.is_empty(each)]
        candidates = tuple(dict.fromkeys([*waiting.candidates, *empty]))
        if now_ms < waiting.deadline_ms:
            delay = min(waiting.deadline_ms - now_ms, max_delay_ms)
        else:
            delay = max_delay_ms
        return Waiting(candidates, now_ms + delay, delay), NOTHING, False

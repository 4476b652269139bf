"""An assignment while it is computed: what each worker has, and what becomes of what was lost."""

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
    """How long workers rest after so many rounds in a row that would have moved items."""
    delay: int = _FACTOR ** min(rounds, 10)  # 40 to the power of 10 is more than any delay
    return min(max_delay_ms, delay)


@dataclass(frozen=True, slots=True)
class Waiting:
    """For how long lost items are kept for workers that may return."""

    candidates: tuple[str, ...] = ()
    """Who was empty meanwhile, and gets them in the end."""
    deadline_ms: int = 0
    """0 when nobody waits."""
    delay_ms: int = 0
    """What workers were told last."""


NOT_WAITING: Final = Waiting()


@dataclass(slots=True)
class Draft:
    """``order`` is that of the workers wherever the order decides."""

    order: Sequence[str]
    connectors: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    tasks: dict[str, list[ConnectorTaskId]] = field(
        default_factory=dict[str, list[ConnectorTaskId]]
    )

    def keep(self, worker: str, items: Items, stopped: ItemSet) -> None:
        """The worker has these already, without what it stops."""
        connectors, tasks = list(items.connectors), list(items.tasks)
        if stopped:
            connectors = [each for each in connectors if each not in stopped.connectors]
            tasks = [each for each in tasks if each not in stopped.tasks]
        self.connectors[worker], self.tasks[worker] = connectors, tasks

    def is_empty(self, worker: str) -> bool:
        """Whether the worker has nothing."""
        return not self.connectors[worker] and not self.tasks[worker]

    def add(self, worker: str, items: Items) -> None:
        """The worker has these, too."""
        self.connectors[worker] += items.connectors
        self.tasks[worker] += items.tasks

    def fill(self, items: Items) -> None:
        """Give these to whoever has the least."""
        fill(self.connectors, items.connectors)
        self.fill_tasks(items.tasks)

    def fill_tasks(self, tasks: Sequence[ConnectorTaskId]) -> None:
        """Who gets a task."""
        fill(self.tasks, tasks)

    def pick_tasks(self, tasks: Sequence[ConnectorTaskId], count: int) -> Sequence[ConnectorTaskId]:
        """Which tasks a worker gives up."""
        return head(tasks, count)

    def moves(self, configured: ItemSet) -> dict[str, Items]:
        """What workers have to give up for an even load. Nothing is taken from them yet."""
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
        """Take these from their workers."""
        stop(self.connectors, {each: items.connectors for each, items in moves.items()})
        stop(self.tasks, {each: items.tasks for each, items in moves.items()})

    def items(self, worker: str) -> Items:
        """What the worker has now."""
        return Items(tuple(self.connectors[worker]), tuple(self.tasks[worker]))

    def everything(self) -> ItemSet:
        """What anybody has now."""
        return ItemSet(
            frozenset().union(*self.connectors.values()), frozenset().union(*self.tasks.values())
        )

    def settle(
        self, lost: ItemSet, waiting: Waiting, *, now_ms: int, max_delay_ms: int, left: bool
    ) -> tuple[Waiting, ItemSet, bool]:
        """What becomes of items that were lost: some may be given to candidates here.

        ``left`` says whether a worker has left since the last assignment. Returns what workers wait
        for now, what is to be given to anybody, and whether a wait has ended.
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

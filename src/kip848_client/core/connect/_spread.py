"""``spread``: like ``incremental-cooperative``, with the tasks of a connector on different workers.

Loads stay as even, with no additional moves. Among the workers with the least load, the one with
the fewest tasks of the connector gets the next one (KAFKA-17049); a worker with too many tasks
gives up those of the connectors with most tasks on it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import ClassVar

from kip848_client.core.assignors._java_order import utf16_key
from kip848_client.core.connect._draft import Draft
from kip848_client.core.connect._incremental import IncrementalCooperativeAssignor
from kip848_client.core.connect._items import ConnectorTaskId

__all__ = ["SpreadAssignor"]


class _SpreadDraft(Draft):
    __slots__ = ()

    def fill_tasks(self, tasks: Sequence[ConnectorTaskId]) -> None:
        if not self.tasks:
            return
        order = sorted(self.tasks, key=lambda each: (len(self.tasks[each]), utf16_key(each)))
        counts = self._counts({name for name, _ in tasks})
        pool: list[str] = []
        for task in tasks:
            if not pool:
                least = min(len(self.tasks[each]) for each in order)
                pool = [each for each in order if len(self.tasks[each]) == least]
            of_it = counts[task.connector]
            worker = min(pool, key=of_it.__getitem__)  # the first of those with the fewest
            pool.remove(worker)
            self.tasks[worker].append(task)
            of_it[worker] += 1

    def _counts(self, connectors: set[str]) -> dict[str, dict[str, int]]:
        """Connector -> how many of its tasks each worker has."""
        found = {name: dict.fromkeys(self.tasks, 0) for name in sorted(connectors)}
        for worker, tasks in self.tasks.items():
            for name, _ in tasks:
                if name in found:
                    found[name][worker] += 1
        return found

    def pick_tasks(self, tasks: Sequence[ConnectorTaskId], count: int) -> Sequence[ConnectorTaskId]:
        queues: defaultdict[str, deque[ConnectorTaskId]] = defaultdict(deque)
        for task in tasks:
            queues[task.connector].append(task)
        most = [(-len(queue), name) for name, queue in queues.items()]
        heapq.heapify(most)
        picked: list[ConnectorTaskId] = []
        while len(picked) < count:
            left, name = most[0]
            picked.append(queues[name].popleft())
            heapq.heapreplace(most, (left + 1, name))
        return picked


class SpreadAssignor(IncrementalCooperativeAssignor):
    """Takes the settings of ``IncrementalCooperativeAssignor``."""

    name: str = "spread"

    _draft: ClassVar[type[Draft]] = _SpreadDraft

"""A group whose targets are reached at once, unless a worker is held back: for assignors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kip848_client.core.connect import (
    Computed,
    ConnectAssignor,
    GroupWorker,
    Items,
    TargetAssignment,
    WorkerGroup,
    computed_target,
)

__all__ = ["PlayedGroup"]


@dataclass
class PlayedGroup:
    """``compute`` asks the assignor and installs what it says."""

    assignor: ConnectAssignor
    connectors: dict[str, int] = field(default_factory=dict[str, int])
    workers: dict[str, GroupWorker] = field(default_factory=dict[str, GroupWorker])
    epoch: int = 1
    now_ms: int = 0
    memory: object = None
    last: TargetAssignment = field(default_factory=TargetAssignment)
    held_back: set[str] = field(default_factory=set[str])
    """Who stays at its member epoch."""

    def join(self, *ids: str, url: str | None = None, instance_id: str | None = None) -> None:
        """Workers without items; each at a url of its own, if none is given."""
        for each in ids:
            self.workers[each] = GroupWorker(
                self.epoch, url=url or f"http://{each}", instance_id=instance_id
            )

    def leave(self, *ids: str) -> None:
        """They are gone, and their targets with them."""
        for each in ids:
            del self.workers[each]

    def group(self, remaining_delay_ms: int = 0) -> WorkerGroup:
        """What the assignor is given."""
        return WorkerGroup(
            self.epoch,
            dict(self.workers),
            dict(self.connectors),
            self.now_ms,
            self.last.deferred,
            remaining_delay_ms,
        )

    def compute(self, remaining_delay_ms: int = 0) -> TargetAssignment:
        """One epoch further."""
        self.epoch += 1
        computed: Computed = computed_target(
            self.assignor, self.group(remaining_delay_ms), self.memory
        )
        self.last, self.memory = computed
        for each, worker in self.workers.items():
            epoch = worker.member_epoch if each in self.held_back else self.epoch
            self.workers[each] = GroupWorker(
                epoch,
                self.last.workers[each],
                worker.metadata,
                worker.url,
                worker.config_offset,
                worker.instance_id,
            )
        return self.last

    def has(self, worker: str) -> str:
        """What the worker shall run, as ``c1 / c1-0 c1-1``."""
        return shown(self.last.workers[worker])

    @property
    def all(self) -> list[str]:
        """Every worker with what it shall run, and what is deferred."""
        rows = [f"{each}: {self.has(each)}" for each in sorted(self.workers)]
        return [*rows, f"deferred: {shown(self.last.deferred)}"] if self.last.deferred else rows


def shown(items: Items) -> str:
    """``c1 c2 / c1[0-3] c2[0]`` in the words of the scenarios."""
    return f"{' '.join(items.connectors) or '-'} / {_tasks(items) or '-'}"


def _tasks(items: Items) -> str:
    by_connector: dict[str, list[int]] = {}
    for name, task in items.tasks:
        by_connector.setdefault(name, []).append(task)
    return " ".join(f"{name}[{_numbers(tasks)}]" for name, tasks in by_connector.items())


def _numbers(tasks: Iterable[int]) -> str:
    return ",".join(map(str, tasks))

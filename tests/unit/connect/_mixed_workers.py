"""Workers of both protocols in one group, with their real memberships and a real coordinator, in
virtual time."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from kip848_client.connect.core import (
    AssignorVersions,
    JoinRequested,
    StartItems,
    StopItems,
    WorkerSettings,
)
from kip848_client.core.connect import ConnectAssignor, IncrementalCooperativeAssignor
from tests.unit.connect._classic_workers import ClassicWorkers
from tests.unit.connect._workers import Worker

__all__ = ["MixedWorkers"]

REBALANCE_MS: Final = 60_000
"""As in Kafka longer than a session: a worker that stops in time and cannot say so is put out after
this time, and drops what it runs at the end of its session."""


class MixedWorkers(ClassicWorkers):
    """The group ``c``. What ``worker`` makes speaks the classic protocol, what ``connect_worker``
    makes the new one."""

    def __init__(
        self,
        *,
        max_delay_ms: int = 20_000,
        assignor: ConnectAssignor | None = None,
        **config: str | int,
    ) -> None:
        super().__init__(max_delay_ms=max_delay_ms, **config)
        self.assignor = assignor or IncrementalCooperativeAssignor(
            scheduled_rebalance_max_delay_ms=max_delay_ms
        )

    def connect_worker(
        self, name: str, *, host: str | None = None, versions: tuple[int, int] | None = None
    ) -> Worker:
        """A new worker of the new protocol, that joins."""
        low, high = versions or (self.assignor.minimum_version, self.assignor.maximum_version)
        settings = WorkerSettings(
            url=f"http://{host or name}:8083/",
            assignors=(AssignorVersions(self.assignor.name, low, high),),
            rebalance_timeout_ms=REBALANCE_MS,
            request_timeout_ms=4_000,
        )
        group: Any = self  # what it needs of its group is here, too
        worker = Worker(group, name, settings)
        workers: dict[str, Any] = self.workers
        workers[name] = worker
        worker.feed(JoinRequested(self.configuration))
        return worker

    @property
    def kind(self) -> str:
        """The type of the group, and its state."""
        group = self.base.groups.snapshot("c")
        assert group is not None
        return f"{group.type} {group.state}"

    def moves(self) -> Counter[tuple[str, int]]:
        """How often each item was started so far, at workers that are here."""
        return self._counted(StartItems)

    def stops(self, *names: str) -> Counter[tuple[str, int]]:
        """How often each item was stopped so far, at these workers."""
        return self._counted(StopItems, *names)

    def _counted(self, kind: type[StartItems | StopItems], *names: str) -> Counter[tuple[str, int]]:
        found: Counter[tuple[str, int]] = Counter()
        for name in names or tuple(self.workers):
            for command in self.workers[name].all(kind):
                found.update((item.connector, item.task) for item in command.items)
        return found

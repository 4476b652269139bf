"""What every actor of one world of workers shares."""

from __future__ import annotations

from mock_coordinator.sim.workers.checks import Checks
from mock_coordinator.sim.workers.options import WorkerOptions
from mock_coordinator.sim.workers.probes import WORKER_PROBES
from mock_coordinator.sim.world_context import Sink, WorldContext

__all__ = ["GROUP", "WorkerContext"]

GROUP = "connect-cluster"
"""The group that all are in."""


class WorkerContext(WorldContext[WorkerOptions]):
    """What all worlds have, and who watches what runs."""

    def __init__(self, options: WorkerOptions, sink: Sink | None = None) -> None:
        super().__init__(options, WORKER_PROBES, sink)
        self.checks = Checks()

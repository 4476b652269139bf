"""What every actor of one world of workers shares."""

from __future__ import annotations

from dataclasses import dataclass

from mock_coordinator.sim.workers.judge import Judge
from mock_coordinator.sim.workers.options import WorkerOptions
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["GROUP", "WorkerContext"]

GROUP = "connect-cluster"
"""The group that all are in."""


@dataclass(slots=True, kw_only=True)
class WorkerContext(WorldContext[WorkerOptions]):
    """What all worlds have, and who watches what runs."""

    judge: Judge

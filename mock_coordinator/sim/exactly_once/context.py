"""What every actor of one world of processors shares."""

from __future__ import annotations

from dataclasses import dataclass, field

from mock_coordinator.sim.checkers import Checkers
from mock_coordinator.sim.exactly_once.judge import Judge
from mock_coordinator.sim.exactly_once.options import ProcessOptions
from mock_coordinator.sim.producing.facts import Facts
from mock_coordinator.sim.producing.writing import Writing
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["ProcessContext"]


@dataclass(slots=True, kw_only=True)
class ProcessContext(WorldContext[ProcessOptions]):
    """What all worlds have, those who watch groups, producers, and what is processed."""

    checkers: Checkers
    facts: Facts
    writing: Writing
    judge: Judge
    requests: int = field(default=0)
    """That producers asked for."""

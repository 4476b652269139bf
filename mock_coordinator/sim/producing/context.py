"""What every actor of one world of producers shares."""

from __future__ import annotations

from dataclasses import dataclass, field

from mock_coordinator.sim.producing.facts import Facts
from mock_coordinator.sim.producing.options import ProduceOptions
from mock_coordinator.sim.producing.writing import Writing
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["ProduceContext"]


@dataclass(slots=True, kw_only=True)
class ProduceContext(WorldContext[ProduceOptions]):
    """What all worlds have, the facts, and who reads the logs."""

    facts: Facts
    writing: Writing
    requests: int = field(default=0)
    """That cores asked for."""

"""What every actor of one world of fetching shares."""

from __future__ import annotations

from dataclasses import dataclass

from mock_coordinator.sim.fetching.judge import Judge
from mock_coordinator.sim.fetching.options import FetchOptions
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["FetchContext"]


@dataclass(slots=True, kw_only=True)
class FetchContext(WorldContext[FetchOptions]):
    """What all worlds have, and those who watch the fetch core."""

    judge: Judge

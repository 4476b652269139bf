"""The kinds of simulated worlds, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mock_coordinator.sim.exactly_once.world import ProcessWorld
from mock_coordinator.sim.fetching.world import FetchWorld
from mock_coordinator.sim.group_world import GroupWorld
from mock_coordinator.sim.producing.world import ProduceWorld
from mock_coordinator.sim.workers.world import WorkerWorld
from mock_coordinator.sim.world import World

__all__ = ["WORLDS"]

WORLDS: Final[Mapping[str, type[World[Any, Any]]]] = {
    "groups": GroupWorld,
    "fetching": FetchWorld,
    "producing": ProduceWorld,
    "exactly-once": ProcessWorld,
    "workers": WorkerWorld,
}

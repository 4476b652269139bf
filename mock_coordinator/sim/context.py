"""What every actor of one world of groups shares."""

from __future__ import annotations

from dataclasses import dataclass

from mock_coordinator.sim.checkers import Checkers
from mock_coordinator.sim.swarm import Options
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["BROKER", "SimContext", "server_name"]

BROKER = "broker"
"""The first server's name in the network; where there is one, it is all of them."""


def server_name(node_id: int) -> str:
    """The name of a node in the network."""
    return BROKER if node_id <= 1 else f"{BROKER}{node_id}"


@dataclass(slots=True, kw_only=True)
class SimContext(WorldContext[Options]):
    """What all worlds have, and those who watch groups."""

    checkers: Checkers

"""What every actor of a world with members of groups shares."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

from mock_coordinator.sim.checkers import Checkers
from mock_coordinator.sim.swarm import GroupParameters, Options
from mock_coordinator.sim.world_context import WorldContext

__all__ = ["BROKER", "GroupContext", "SimContext", "server_name"]

BROKER = "broker"
"""The first server's name in the network; where there is one, it is all of them."""
GroupParameters_co = TypeVar("GroupParameters_co", bound=GroupParameters, covariant=True)


def server_name(node_id: int) -> str:
    """The name of a node in the network."""
    return BROKER if node_id <= 1 else f"{BROKER}{node_id}"


class GroupContext(WorldContext[GroupParameters_co]):
    """What all worlds have, and the checkers of groups."""

    @cached_property
    def checkers(self) -> Checkers:
        """Those who watch groups."""
        extra = self.options.extra_heartbeats
        return Checkers(self.probes, self.profile.first_group_epoch, extra_heartbeats=extra)


SimContext = GroupContext[Options]

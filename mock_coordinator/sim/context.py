"""What every actor of one world of groups shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mock_coordinator.core.profile import Profile
from mock_coordinator.sim.checkers import Checkers
from mock_coordinator.sim.history import Histories
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.node_requests import Wires
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.swarm import GroupParameters, Options
from mock_coordinator.sim.world_context import Record, WorldContext

__all__ = ["BROKER", "GroupWorld", "SimContext", "server_name", "wires_of"]

BROKER = "broker"
"""The first server's name in the network; where there is one, it is all of them."""


def server_name(node_id: int) -> str:
    """The name of a node in the network."""
    return BROKER if node_id <= 1 else f"{BROKER}{node_id}"


class GroupWorld(Protocol):
    """A world that members of groups can live in."""

    @property
    def options(self) -> GroupParameters:
        """What differs between two runs."""
        ...

    @property
    def profile(self) -> Profile:
        """Of the brokers."""
        ...

    @property
    def kernel(self) -> Kernel:
        """The clock."""
        ...

    @property
    def network(self) -> Network:
        """To the brokers."""
        ...

    @property
    def probes(self) -> Probes:
        """Rare paths."""
        ...

    @property
    def histories(self) -> Histories:
        """What was ever written."""
        ...

    @property
    def checkers(self) -> Checkers:
        """Those who watch groups."""
        ...

    @property
    def healed(self) -> bool:
        """Whether nothing goes wrong any more."""
        ...

    @property
    def record(self) -> Record | None:
        """Takes what happens to members, if somebody wants to have it."""
        ...

    def tell(self, who: str, what: str, details: str = "") -> None:
        """One line of the trace."""
        ...


def wires_of(
    world: GroupWorld,
    client: str,
    server_of: Callable[[int], str],
    nodes: Callable[[], Sequence[int]],
) -> Wires:
    """How a client reaches the brokers of a world."""
    return Wires(
        kernel=world.kernel,
        network=world.network,
        client=client,
        codec=world.options.codec,
        versions=world.profile.api_versions,
        server_of=server_of,
        nodes=nodes,
        request_timeout_ms=world.options.request_timeout_ms,
    )


@dataclass(slots=True, kw_only=True)
class SimContext(WorldContext[Options]):
    """What all worlds have, and those who watch groups."""

    checkers: Checkers

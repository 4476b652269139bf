"""What every actor of one world shares."""

from __future__ import annotations

from dataclasses import dataclass, field

from mock_coordinator.core.profile import Profile
from mock_coordinator.sim.checkers import Checkers
from mock_coordinator.sim.fetching.history import Histories
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.swarm import Options
from mock_coordinator.sim.trace import Trace

__all__ = ["BROKER", "SimContext", "server_name"]

BROKER = "broker"
"""The first server's name in the network; where there is one, it is all of them."""


def server_name(node_id: int) -> str:
    """The name of a node in the network."""
    return BROKER if node_id <= 1 else f"{BROKER}{node_id}"


@dataclass(slots=True)
class SimContext:
    """The clock, the network, and those who watch. ``healed``: nothing goes wrong any more."""

    options: Options
    profile: Profile
    kernel: Kernel
    network: Network
    trace: Trace
    probes: Probes
    checkers: Checkers
    histories: Histories = field(default_factory=Histories)
    """What was ever written."""
    healed: bool = False

    def tell(self, who: str, what: str, details: str = "") -> None:
        """One line of the trace."""
        self.trace.add(self.kernel.now_ms, who, what, details)

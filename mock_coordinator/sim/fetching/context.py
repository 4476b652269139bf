"""What every actor of one world of fetching shares."""

from __future__ import annotations

from dataclasses import dataclass, field

from mock_coordinator.core.profile import Profile
from mock_coordinator.sim.fetching.history import Histories
from mock_coordinator.sim.fetching.judge import Judge
from mock_coordinator.sim.fetching.options import FetchOptions
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.trace import Trace

__all__ = ["FetchContext"]


@dataclass(slots=True)
class FetchContext:
    """The clock, the network, what was ever written, and those who watch. ``healed``: nothing goes
    wrong any more."""

    options: FetchOptions
    profile: Profile
    kernel: Kernel
    network: Network
    trace: Trace
    probes: Probes
    judge: Judge
    histories: Histories = field(default_factory=Histories)
    healed: bool = False

    def tell(self, who: str, what: str, details: str = "") -> None:
        """One line of the trace."""
        self.trace.add(self.kernel.now_ms, who, what, details)

    def happens(self, name: str, probability: float) -> bool:
        """Whether something goes wrong now; ``name`` is of the dice to throw."""
        return not self.healed and self.kernel.rng(name).random() < probability

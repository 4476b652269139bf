"""What the actors of every kind of world share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

from kip848_client.history.core import HistoryEvent
from mock_coordinator.core.profile import Profile
from mock_coordinator.sim.history import Histories
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.swarm import AnyParameters
from mock_coordinator.sim.trace import Trace

__all__ = ["Record", "WorldContext"]

Record = Callable[[HistoryEvent], None]
"""Takes an event of a group's history."""


@dataclass(slots=True, kw_only=True)
class WorldContext(Generic[AnyParameters]):
    """The clock, the network, and what was ever written. ``healed``: nothing goes wrong any
    more. ``record`` takes what happens to members of groups, if somebody wants to have it."""

    options: AnyParameters
    profile: Profile
    kernel: Kernel
    network: Network
    trace: Trace
    probes: Probes
    histories: Histories = field(default_factory=Histories)
    healed: bool = False
    record: Record | None = None

    def happens(self, name: str, probability: float) -> bool:
        """Whether something goes wrong now; ``name`` is of the dice to throw."""
        return not self.healed and self.kernel.rng(name).random() < probability

    def tell(self, who: str, what: str, details: str = "") -> None:
        """One line of the trace."""
        self.trace.add(self.kernel.now_ms, who, what, details)

"""What the actors of every kind of world share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from kip848_client.history.core import HistoryEvent
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.profiles import profile_named
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.log_truth import LogTruth
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.node_requests import Wires
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.swarm import Parameters
from mock_coordinator.sim.trace import Trace

__all__ = ["Parameters_co", "Record", "Sink", "WorldContext"]

Record = Callable[[HistoryEvent], None]
"""Takes an event of a group's history."""
Sink = Callable[[str], None]
"""Takes a line of the trace."""
Parameters_co = TypeVar("Parameters_co", bound=Parameters, covariant=True)


class WorldContext(Generic[Parameters_co]):
    """The clock, the network, and what was ever written. ``healed``: nothing goes wrong any
    more. ``profile``: of the brokers, if it is not simply the one that the options name.
    ``record`` takes what happens to members of groups, if it is to be kept."""

    def __init__(
        self,
        options: Parameters_co,
        probes: Mapping[str, str],
        sink: Sink | None = None,
        *,
        profile: Profile | None = None,
        record: Record | None = None,
    ) -> None:
        self.options = options
        self.profile = profile or profile_named(options.profile)
        self.kernel = Kernel(options.seed)
        self.trace = Trace(self.kernel.now_ms, sink)
        self.probes = Probes(probes)
        self.network = Network(self.kernel, options, self.trace, self.probes)
        self.truth = LogTruth()
        self.healed = False
        self.record = record

    def happens(self, name: str, probability: float) -> bool:
        """Whether something goes wrong now; ``name`` is of the dice to throw."""
        return not self.healed and self.kernel.rng(name).random() < probability

    def tell(self, who: str, what: str, details: str = "") -> None:
        """One line of the trace."""
        self.trace.add(self.kernel.now_ms, who, what, details)

    def wires(
        self,
        client: str,
        server_of: Callable[[int], str],
        nodes: Callable[[], Sequence[int]],
    ) -> Wires:
        """How a client reaches the brokers."""
        return Wires(
            kernel=self.kernel,
            network=self.network,
            client=client,
            codec=self.options.codec,
            versions=self.profile.api_versions,
            server_of=server_of,
            nodes=nodes,
            request_timeout_ms=self.options.request_timeout_ms,
        )

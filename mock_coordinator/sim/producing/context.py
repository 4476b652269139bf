"""What every actor of a world with producers shares."""

from __future__ import annotations

from collections.abc import Mapping

from mock_coordinator.core.profile import Profile
from mock_coordinator.sim.producing.facts import Facts
from mock_coordinator.sim.producing.log_checks import LogChecks
from mock_coordinator.sim.producing.options import ProduceOptions
from mock_coordinator.sim.world_context import Parameters_co, Record, Sink, WorldContext

__all__ = ["ProduceContext", "ProducersContext"]


class ProducersContext(WorldContext[Parameters_co]):
    """What all worlds have, the facts, and who reads the logs."""

    def __init__(
        self,
        options: Parameters_co,
        probes: Mapping[str, str],
        sink: Sink | None = None,
        *,
        profile: Profile | None = None,
        record: Record | None = None,
    ) -> None:
        super().__init__(options, probes, sink, profile=profile, record=record)
        self.facts = Facts()
        self.writing = LogChecks(self.facts)
        self.requests = 0
        """That cores asked for."""


ProduceContext = ProducersContext[ProduceOptions]

"""What every actor of a world with producers shares."""

from __future__ import annotations

from functools import cached_property

from mock_coordinator.sim.producing.facts import Facts
from mock_coordinator.sim.producing.log_checks import LogChecks
from mock_coordinator.sim.producing.options import ProduceOptions
from mock_coordinator.sim.world_context import Parameters_co, WorldContext

__all__ = ["ProduceContext", "ProducersContext"]


class ProducersContext(WorldContext[Parameters_co]):
    """What all worlds have, the facts, and the checker of the logs. ``requests``: how many cores
    sent."""

    requests = 0

    @cached_property
    def facts(self) -> Facts:
        """What users did, and what they learned."""
        return Facts()

    @cached_property
    def writing(self) -> LogChecks:
        """Reads the logs."""
        return LogChecks(self.facts)


ProduceContext = ProducersContext[ProduceOptions]

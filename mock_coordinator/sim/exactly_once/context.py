"""What every actor of one world of processors shares."""

from __future__ import annotations

from mock_coordinator.core.profiles import profile_named
from mock_coordinator.sim.context import GroupContext
from mock_coordinator.sim.exactly_once.checks import Checks
from mock_coordinator.sim.exactly_once.options import ProcessOptions
from mock_coordinator.sim.exactly_once.probes import ALL_PROBES
from mock_coordinator.sim.producing.context import ProducersContext
from mock_coordinator.sim.world_context import Sink

__all__ = ["ProcessContext"]


class ProcessContext(GroupContext[ProcessOptions], ProducersContext[ProcessOptions]):
    """What worlds with groups and worlds with producers have, and what is processed."""

    def __init__(self, options: ProcessOptions, sink: Sink | None = None) -> None:
        profile = profile_named(options.profile).at_transaction_version(min(options.level, 2))
        super().__init__(options, ALL_PROBES, sink, profile=profile)
        self.checks = Checks(
            self.writing,
            self.truth,
            dead_letters=options.dead_letters,
            mixed=options.batch or options.raises > 0,
        )

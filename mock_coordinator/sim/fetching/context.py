"""What every actor of one world of fetching shares."""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.types import TopicIdPartition
from mock_coordinator.sim.fetching.checks import Checks
from mock_coordinator.sim.fetching.options import FetchOptions
from mock_coordinator.sim.fetching.probes import FETCH_PROBES
from mock_coordinator.sim.world_context import Sink, WorldContext

__all__ = ["FetchContext"]


class FetchContext(WorldContext[FetchOptions]):
    """What all worlds have, and the checkers of the fetch core."""

    def __init__(
        self,
        options: FetchOptions,
        has_data: Callable[[TopicIdPartition, int], bool],
        sink: Sink | None = None,
    ) -> None:
        super().__init__(options, FETCH_PROBES, sink)
        self.checks = Checks(
            self.truth,
            read_committed=options.read_committed,
            may_reset=options.reset_policy != "none",
            has_data=has_data,
        )

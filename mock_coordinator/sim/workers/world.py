"""One simulated world of workers; see ``sim.world``.

After liveness comes *calm*: in a world without trouble a worker is bounced, one is killed and one
comes, and what has to move for that is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from mock_coordinator.core.inputs import CoordinatorMoved
from mock_coordinator.sim.verdict import Outcome
from mock_coordinator.sim.workers.brokers import Brokers
from mock_coordinator.sim.workers.configuration import Configured
from mock_coordinator.sim.workers.context import GROUP, WorkerContext
from mock_coordinator.sim.workers.options import WorkerOptions, draw_worker_options
from mock_coordinator.sim.workers.probes import WORKER_PROBES
from mock_coordinator.sim.workers.processes import Processes
from mock_coordinator.sim.workers.quiescence import Quiescence
from mock_coordinator.sim.world import Happening, World
from mock_coordinator.sim.world_context import Sink

__all__ = ["WorkerResult", "WorkerWorld"]

_DOWN_MS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResult(Outcome[WorkerOptions]):
    """What a run that held every invariant leaves. ``records``: items that were started."""

    moves: int
    """In the calm part."""
    ideal: int
    """The fewest there can be."""

    def details(self) -> str:
        """What moved."""
        return (
            f"order after {self.converged_ms / 1000:>5.1f} s  {self.records:>5} starts  "
            f"{self.moves:>3} moves where {self.ideal:>3} had to be"
        )


class WorkerWorld(World[WorkerOptions, WorkerResult]):
    """Connect workers that are killed, bounced and reconfigured."""

    FLAG = "--workers"
    PROBES = WORKER_PROBES
    CLOG_MS_MAX = 20_000
    CUT_MS_MAX = 60_000

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self.context = context
        self.brokers = Brokers(context)
        self.configured = Configured(context)
        self.processes = Processes(context, self.brokers, self.configured)
        self.quiescence = Quiescence(context, self.configured, self.processes)

    @classmethod
    def draw(cls, seed: int) -> WorkerOptions:
        """The options of a seed."""
        return draw_worker_options(seed)

    @classmethod
    def create(cls, options: WorkerOptions, sink: Sink | None = None) -> Self:
        """A world; ``sink`` gets every line of the trace."""
        return cls(WorkerContext(options, sink))

    def _set_up(self) -> None:
        self.processes.start()

    def _happenings(self) -> Iterable[Happening]:
        options = self.context.options
        return (
            (options.act_every_ms, self.processes.act),
            (options.configure_every_ms, self.processes.configure),
            (options.move_every_ms, self._move),
            (options.stop_every_ms, self._stop_a_node),
            *self._network_faults(),
        )

    def _path(self) -> tuple[str, str] | None:
        return self._between(self.brokers.core.broker.nodes.ids, self.processes.names())

    def _move(self) -> None:
        if self.brokers.some_run():
            self.brokers.step(CoordinatorMoved(GROUP, None, transactional=False))
            self.context.tell("operator", "move", GROUP)
            self.context.probes.reached("a coordinator moved")

    def _stop_a_node(self) -> None:
        self.brokers.stop_one(self._rng, _DOWN_MS_MAX)

    def _heal(self) -> None:
        self.brokers.heal()
        self.processes.heal()
        self.processes.read()

    def pending(self) -> Iterable[str]:
        """What does not run, or runs where it should not."""
        return self.quiescence.pending()

    def _converge(self) -> int:
        return self.quiescence.come_to_rest()

    def _stay_in_order(self) -> None:
        self.quiescence.run()

    def _outcome(self, converged_ms: int) -> WorkerResult:
        return WorkerResult(
            records=self.context.checks.starts,
            moves=self.quiescence.moves,
            ideal=self.quiescence.ideal,
            **self._measures(converged_ms),
        )

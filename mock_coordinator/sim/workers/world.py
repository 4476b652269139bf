"""One simulated world of workers: set up, safety, liveness, calm, and a verdict; see
``sim.world``.

*Calm*: in a world without trouble a worker is bounced, one is killed and one comes, and what has to
move for that is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mock_coordinator.core.inputs import CoordinatorMoved
from mock_coordinator.core.profiles import profile_named
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.occasions import Occasions
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.swarm import replaying
from mock_coordinator.sim.trace import Trace
from mock_coordinator.sim.verdict import Failure, Outcome
from mock_coordinator.sim.workers.brokers import Brokers
from mock_coordinator.sim.workers.calm import Calm
from mock_coordinator.sim.workers.configuration import Configured
from mock_coordinator.sim.workers.context import GROUP, WorkerContext
from mock_coordinator.sim.workers.judge import Judge
from mock_coordinator.sim.workers.options import WorkerOptions, draw_worker_options
from mock_coordinator.sim.workers.population import Population
from mock_coordinator.sim.workers.probes import WORKER_PROBES

__all__ = ["WorkerResult", "WorkerWorld", "simulate_workers"]

_COMMAND: Final = "python -m mock_coordinator.sim --workers"
_CLOG_MS_MAX: Final = 20_000
_CUT_MS_MAX: Final = 60_000
_DOWN_MS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResult(Outcome[WorkerOptions]):
    """What a run that held every invariant leaves. ``records``: items that were started."""

    moves: int
    """In the calm part."""
    ideal: int
    """The fewest there can be."""


class WorkerWorld:
    """Everything of one run."""

    def __init__(self, options: WorkerOptions, sink: Callable[[str], None] | None = None) -> None:
        kernel = Kernel(options.seed)
        trace, probes = Trace(kernel.now_ms, sink), Probes(WORKER_PROBES)
        self.context = WorkerContext(
            options=options,
            profile=profile_named(options.profile),
            kernel=kernel,
            network=Network(kernel, options, trace, probes),
            trace=trace,
            probes=probes,
            judge=Judge(),
        )
        self._start_ms = kernel.now_ms
        self._rng = kernel.rng("faults")
        self._occasions = Occasions(kernel, self._rng)
        self.brokers = Brokers(self.context)
        self.configured = Configured(self.context)
        self.population = Population(self.context, self.brokers, self.configured)
        self.calm = Calm(self.context, self.configured, self.population)

    def run(self) -> WorkerResult:
        """The whole story. Raises ``Failure``."""
        context, options = self.context, self.context.options
        try:
            self.population.start()
            self._be_unsafe()
            converged_ms = self._be_live()
            self.calm.run()
        except Exception as err:
            replay = f"{_COMMAND} {replaying(options, draw_worker_options(options.seed))}"
            raise Failure(options, err, context.trace, replay) from err
        return WorkerResult(
            options=options,
            digest=context.trace.digest,
            lines=context.trace.lines,
            events=context.kernel.events,
            virtual_ms=context.kernel.now_ms - self._start_ms,
            converged_ms=converged_ms,
            records=context.judge.starts,
            moves=self.calm.moves,
            ideal=self.calm.ideal,
            probes=dict(context.probes.counts),
        )

    # -- phases ------------------------------------------------------------------------------

    def _be_unsafe(self) -> None:
        context, options = self.context, self.context.options
        context.tell("world", "safety")
        repeat = self._occasions.repeat
        repeat(options.act_every_ms, self.population.act)
        repeat(options.configure_every_ms, self.population.configure)
        repeat(options.move_every_ms, self._move)
        repeat(options.stop_every_ms, self._stop_a_node)
        repeat(options.clog_every_ms, self._clog)
        repeat(options.partition_every_ms, self._cut)
        context.kernel.run_for(options.safety_ms)

    def _move(self) -> None:
        if self.brokers.some_run():
            self.brokers.step(CoordinatorMoved(GROUP, None, transactional=False))
            self.context.tell("operator", "move", GROUP)
            self.context.probes.reached("a coordinator moved")

    def _stop_a_node(self) -> None:
        up = [node.node_id for node in self.brokers.core.broker.nodes if node.up]
        if up:
            node_id = self._rng.choice(up)
            self.brokers.stop(node_id, self._rng.choice((0, 0, 500, 3_000)))
            back_ms = self._rng.randint(1, _DOWN_MS_MAX)
            self.context.kernel.after(back_ms, lambda: self.brokers.start(node_id))

    def _path(self) -> tuple[str, str] | None:
        node = node_name(self._rng.choice(self.brokers.core.broker.nodes.ids))
        clients = self.population.names()
        if not clients:
            return None
        client = self._rng.choice(clients)
        return (client, node) if self._rng.random() < 0.5 else (node, client)

    def _clog(self) -> None:
        path = self._path()
        if path is not None:
            self.context.network.clog(*path, self._rng.randint(1, _CLOG_MS_MAX))

    def _cut(self) -> None:
        path = self._path()
        if path is not None:
            both_ways = self._rng.random() < 0.5
            duration_ms = self._rng.randint(1, _CUT_MS_MAX)
            self.context.network.cut(*path, duration_ms, both_ways=both_ways)

    def _be_live(self) -> int:
        """Returns how long it took until everything ran."""
        context = self.context
        self._occasions.stop()
        context.tell("world", "liveness")
        context.healed = True
        context.network.heal()
        self.brokers.heal()
        self.population.heal()
        self.population.read()
        return self.calm.come_to_rest()


def simulate_workers(
    options: WorkerOptions, sink: Callable[[str], None] | None = None
) -> WorkerResult:
    """One run. Raises ``Failure``; ``sink`` gets every line of the trace."""
    return WorkerWorld(options, sink).run()

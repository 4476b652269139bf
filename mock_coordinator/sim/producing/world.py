"""One simulated world of producers: set up, safety, liveness, and a verdict; see ``sim.world``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mock_coordinator.core.profiles import profile_named
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.occasions import Occasions
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.producing.brokers import Brokers
from mock_coordinator.sim.producing.context import ProduceContext
from mock_coordinator.sim.producing.facts import Facts
from mock_coordinator.sim.producing.operator import Operator
from mock_coordinator.sim.producing.options import ProduceOptions, draw_produce_options
from mock_coordinator.sim.producing.population import Population
from mock_coordinator.sim.producing.probes import PRODUCE_PROBES
from mock_coordinator.sim.producing.writing import Writing
from mock_coordinator.sim.swarm import replaying
from mock_coordinator.sim.trace import Trace
from mock_coordinator.sim.verdict import Failure, Outcome, Stuck

__all__ = ["ProduceResult", "ProduceWorld", "simulate_producing"]

LIVENESS_MS_MAX: Final = 120_000
"""Time-outs of deliveries, transactions and requests add up."""
CHECK_EVERY_MS: Final = 200
_QUIET_MS: Final = 60_000
"""What is on its way yet arrives within it."""
_COMMAND: Final = "python -m mock_coordinator.sim --producing"
_CLOG_MS_MAX: Final = 4_000
_CUT_MS_MAX: Final = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResult(Outcome[ProduceOptions]):
    """What a run that held every invariant leaves. ``records``: in the logs."""

    appended: int
    transactions: int
    committed: int
    requests: int


class ProduceWorld:
    """Everything of one run."""

    def __init__(self, options: ProduceOptions, sink: Callable[[str], None] | None = None) -> None:
        kernel = Kernel(options.seed)
        trace, probes = Trace(kernel.now_ms, sink), Probes(PRODUCE_PROBES)
        facts = Facts()
        self.context = ProduceContext(
            options=options,
            profile=profile_named(options.profile).at_transaction_version(min(options.level, 2)),
            kernel=kernel,
            network=Network(kernel, options, trace, probes),
            trace=trace,
            probes=probes,
            facts=facts,
            writing=Writing(facts),
        )
        self._start_ms = kernel.now_ms
        self._rng = kernel.rng("faults")
        self._occasions = Occasions(kernel, self._rng)
        self.brokers = Brokers(self.context)
        self.operator = Operator(self.context, self.brokers, options.forget)
        self.population = Population(self.context, self.brokers, self.operator)

    def run(self) -> ProduceResult:
        """The whole story. Raises ``Failure``."""
        context, options = self.context, self.context.options
        try:
            names = [f"t{number}" for number in range(options.topics)]
            self.operator.create_topics(names, options.partitions_max)
            self.population.start()
            self._be_unsafe()
            converged_ms = self._be_live()
        except Exception as err:
            replay = f"{_COMMAND} {replaying(options, draw_produce_options(options.seed))}"
            raise Failure(options, err, context.trace, replay) from err
        facts, told = context.facts, context.probes.counts["a commit"]
        return ProduceResult(
            options=options,
            digest=context.trace.digest,
            lines=context.trace.lines,
            events=context.kernel.events,
            virtual_ms=context.kernel.now_ms - self._start_ms,
            converged_ms=converged_ms,
            records=context.writing.written,
            appended=len(facts.records),
            transactions=len(facts.transactions),
            committed=told,
            requests=context.requests,
            probes=dict(context.probes.counts),
        )

    # -- phases ------------------------------------------------------------------------------

    def _be_unsafe(self) -> None:
        context, options = self.context, self.context.options
        context.tell("world", "safety")
        self._occasions.repeat(options.elect_every_ms, self.operator.elect)
        self._occasions.repeat(options.move_every_ms, self.operator.move)
        self._occasions.repeat(options.stop_every_ms, self.operator.stop_a_node)
        self._occasions.repeat(options.clog_every_ms, self._clog)
        self._occasions.repeat(options.partition_every_ms, self._cut)
        context.kernel.run_for(options.safety_ms)

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
        """Returns how long it took until everybody was done."""
        context, kernel = self.context, self.context.kernel
        self._occasions.stop()
        context.tell("world", "liveness")
        context.healed = True
        context.network.heal()
        self.brokers.heal()
        self.population.heal()
        healed_ms = kernel.now_ms
        while stuck := list(self.population.pending()):
            kernel.run_for(CHECK_EVERY_MS)
            if kernel.now_ms > healed_ms + LIVENESS_MS_MAX:
                raise Stuck("; ".join(stuck))
        converged_ms = kernel.now_ms - healed_ms
        self._come_to_rest()
        return converged_ms

    def _come_to_rest(self) -> None:
        """Nobody asks for anything any more, and what was told is so."""
        self.context.tell("world", "quiet")
        self.context.kernel.run_for(_QUIET_MS)
        stuck = list(self.context.writing.unsettled())
        if stuck:
            raise Stuck("; ".join(stuck))


def simulate_producing(
    options: ProduceOptions, sink: Callable[[str], None] | None = None
) -> ProduceResult:
    """One run. Raises ``Failure``; ``sink`` gets every line of the trace."""
    return ProduceWorld(options, sink).run()

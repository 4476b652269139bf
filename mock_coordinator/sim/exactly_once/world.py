"""One simulated world of processors: set up, safety, liveness, and a verdict; see ``sim.world``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mock_coordinator.core.profiles import profile_named
from mock_coordinator.sim.checkers import Checkers
from mock_coordinator.sim.exactly_once.brokers import DEAD, OUT, Brokers
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.exactly_once.judge import Judge
from mock_coordinator.sim.exactly_once.options import ProcessOptions, draw_process_options
from mock_coordinator.sim.exactly_once.population import Population
from mock_coordinator.sim.exactly_once.probes import ALL_PROBES
from mock_coordinator.sim.exactly_once.source import Source
from mock_coordinator.sim.history import Histories
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.occasions import Occasions
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.producing.facts import Facts
from mock_coordinator.sim.producing.operator import Operator
from mock_coordinator.sim.producing.writing import Writing
from mock_coordinator.sim.swarm import replaying
from mock_coordinator.sim.trace import Trace
from mock_coordinator.sim.verdict import Failure, Outcome, Stuck

__all__ = ["ProcessResult", "ProcessWorld", "simulate_exactly_once"]

LIVENESS_MS_MAX: Final = 240_000
"""Time-outs of sessions, transactions, deliveries and listeners add up."""
CHECK_EVERY_MS: Final = 500
_QUIET_MS: Final = 60_000
"""What is on its way yet arrives within it."""
_COMMAND: Final = "python -m mock_coordinator.sim --exactly-once"
_CLOG_MS_MAX: Final = 4_000
_CUT_MS_MAX: Final = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult(Outcome[ProcessOptions]):
    """What a run that held every invariant leaves. ``records``: inputs that were processed."""

    written: int
    transactions: int
    committed: int


class ProcessWorld:
    """Everything of one run."""

    def __init__(self, options: ProcessOptions, sink: Callable[[str], None] | None = None) -> None:
        kernel = Kernel(options.seed)
        trace, probes = Trace(kernel.now_ms, sink), Probes(ALL_PROBES)
        profile = profile_named(options.profile).at_transaction_version(min(options.level, 2))
        facts, histories = Facts(), Histories()
        writing = Writing(facts)
        self.context = ProcessContext(
            options=options,
            profile=profile,
            kernel=kernel,
            network=Network(kernel, options, trace, probes),
            trace=trace,
            probes=probes,
            histories=histories,
            checkers=Checkers(
                probes, profile.first_group_epoch, extra_heartbeats=options.extra_heartbeats
            ),
            facts=facts,
            writing=writing,
            judge=Judge(
                writing,
                histories,
                dead_letters=options.dead_letters,
                mixed=options.batch or options.raises > 0,
            ),
        )
        self._start_ms = kernel.now_ms
        self._rng = kernel.rng("faults")
        self._occasions = Occasions(kernel, self._rng)
        self.brokers = Brokers(self.context)
        self.operator = Operator(self.context, self.brokers, options.forget)
        self.source = Source(self.context, self.brokers)
        self.population = Population(self.context, self.brokers, self.operator)

    def run(self) -> ProcessResult:
        """The whole story. Raises ``Failure``."""
        context, options = self.context, self.context.options
        try:
            self._set_up()
            self._be_unsafe()
            converged_ms = self._be_live()
        except Exception as err:
            replay = f"{_COMMAND} {replaying(options, draw_process_options(options.seed))}"
            raise Failure(options, err, context.trace, replay) from err
        judge = context.judge
        if judge.offsets_alone:
            context.probes.reached("offsets alone")
        return ProcessResult(
            options=options,
            digest=context.trace.digest,
            lines=context.trace.lines,
            events=context.kernel.events,
            virtual_ms=context.kernel.now_ms - self._start_ms,
            converged_ms=converged_ms,
            records=judge.done,
            written=self.source.written,
            transactions=len(context.facts.transactions),
            committed=context.probes.counts["processed"],
            probes=dict(context.probes.counts),
        )

    # -- phases ------------------------------------------------------------------------------

    def _set_up(self) -> None:
        options, judge = self.context.options, self.context.judge
        names = [f"in{number}" for number in range(options.topics)]
        self.operator.create_topics([*names, OUT, DEAD], options.partitions_max)
        judge.ids = {topic.name: topic.topic_id for topic in self.brokers.topics}
        for _ in range(5):
            self.source.write()
        self.population.start()

    def _be_unsafe(self) -> None:
        context, options = self.context, self.context.options
        context.tell("world", "safety")
        repeat = self._occasions.repeat
        repeat(options.produce_every_ms, self.source.write)
        repeat(options.act_every_ms, self.population.act)
        repeat(options.elect_every_ms, self.operator.elect)
        repeat(options.move_every_ms, self.operator.move)
        repeat(options.stop_every_ms, self.operator.stop_a_node)
        repeat(options.clog_every_ms, self._clog)
        repeat(options.partition_every_ms, self._cut)
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
        """Returns how long it took until everything was processed."""
        context, kernel = self.context, self.context.kernel
        self._occasions.stop()
        context.tell("world", "liveness")
        context.healed = True
        context.network.heal()
        self.brokers.heal()
        self.population.heal()
        for _ in range(3):
            self.source.write()
        healed_ms = kernel.now_ms
        while stuck := list(context.judge.pending(dict(self.brokers.ends()))):
            kernel.run_for(CHECK_EVERY_MS)
            if kernel.now_ms > healed_ms + LIVENESS_MS_MAX:
                raise Stuck("; ".join(stuck))
        converged_ms = kernel.now_ms - healed_ms
        self._come_to_rest()
        return converged_ms

    def _come_to_rest(self) -> None:
        """Nothing comes any more, and what was told is so."""
        context = self.context
        context.tell("world", "quiet")
        context.kernel.run_for(_QUIET_MS)
        stuck = list(context.writing.unsettled())
        stuck += context.judge.pending(dict(self.brokers.ends()))
        if context.judge.done != self.source.written:
            stuck.append(f"{context.judge.done} of {self.source.written} inputs are processed")
        if stuck:
            raise Stuck("; ".join(stuck))


def simulate_exactly_once(
    options: ProcessOptions, sink: Callable[[str], None] | None = None
) -> ProcessResult:
    """One run. Raises ``Failure``; ``sink`` gets every line of the trace."""
    return ProcessWorld(options, sink).run()

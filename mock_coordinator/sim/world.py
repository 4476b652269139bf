"""One simulated world: set up, safety, liveness, and a verdict.

*Safety*: everything goes wrong as the options say, people do things, and the checkers watch every
step. *Liveness*: the world is healed, nothing is asked of it any more, and every group must come to
rest in order, within a bounded time; then it must stay so, quietly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.core.member import EXTRA_INTERVALS
from mock_coordinator.core.profiles import profile_named
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.sim.broker_actor import BrokerActor
from mock_coordinator.sim.checkers import Checkers
from mock_coordinator.sim.context import SimContext
from mock_coordinator.sim.convergence import pending
from mock_coordinator.sim.faults import CLOG_MS_MAX, Faults
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.operator import Operator
from mock_coordinator.sim.population import Population
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.swarm import Options, draw_options, replaying
from mock_coordinator.sim.trace import Trace
from mock_coordinator.sim.verdict import Failure, Outcome, Stuck
from mock_coordinator.sim.workload import Workload
from mock_coordinator.sim.world_context import Record

__all__ = ["Result", "World", "replay_command", "simulate"]

SETUP_MS: Final = 8_000
LIVENESS_MS_MAX: Final = 240_000
"""The longest waits add up: a session (45 s) after a static rejoin was refused for 60 s, the pause
between two regex resolutions (10 s), backoffs."""
QUIET_MS: Final = 20_000
CHECK_EVERY_MS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Outcome[Options]):
    """What a run that held every invariant leaves."""

    requests: Mapping[str, int]


def replay_command(options: Options) -> str:
    """What to type to see this very run, event by event."""
    return f"python -m mock_coordinator.sim {replaying(options, draw_options(options.seed))}"


class World:
    """Everything of one run."""

    def __init__(
        self,
        options: Options,
        sink: Callable[[str], None] | None = None,
        record: Record | None = None,
    ) -> None:
        kernel = Kernel(options.seed)
        trace, probes = Trace(kernel.now_ms, sink), Probes()
        profile = profile_named(options.profile)
        self.context = SimContext(
            options=options,
            profile=profile,
            kernel=kernel,
            network=Network(kernel, options, trace, probes),
            trace=trace,
            probes=probes,
            record=record,
            checkers=Checkers(
                probes, profile.first_group_epoch, extra_heartbeats=options.extra_heartbeats
            ),
        )
        config = BrokerConfig(
            profile,
            {
                "group.consumer.min.session.timeout.ms": "1000",
                "group.consumer.session.timeout.ms": str(options.session_timeout_ms),
                "group.consumer.min.heartbeat.interval.ms": "100",
                "group.consumer.heartbeat.interval.ms": str(options.heartbeat_interval_ms),
                "group.consumer.assignment.interval.ms": str(options.assignment_interval_ms),
                "offsets.topic.num.partitions": "1",  # one journal, which a crash cuts
            },
        )
        self._start_ms = kernel.now_ms
        self.broker = BrokerActor(self.context, config)
        self.population = Population(self.context)
        self.operator = Operator(self.context, self.broker)
        self._workload = Workload(self.context, self.operator, self.population)
        self._faults = Faults(self.context, self.broker, self.population.names)

    def run(self) -> Result:
        """The whole story. Raises ``Failure``."""
        context = self.context
        try:
            self._set_up()
            self._be_unsafe()
            converged_ms = self._be_live()
        except Exception as err:
            replay = replay_command(context.options)
            raise Failure(context.options, err, context.trace, replay) from err
        return Result(
            options=context.options,
            digest=context.trace.digest,
            lines=context.trace.lines,
            events=context.kernel.events,
            virtual_ms=context.kernel.now_ms - self._start_ms,
            converged_ms=converged_ms,
            records=context.checkers.deliveries.total(),
            requests=dict(context.checkers.rates.requests),
            probes=dict(context.probes.counts),
        )

    def pending(self) -> list[str]:
        """What is not in order yet; see ``convergence``."""
        ends = self.broker.ends()
        return list(pending(self.context, self.population, self.operator.topics, ends))

    # -- phases ------------------------------------------------------------------------------

    def _set_up(self) -> None:
        self._workload.set_up()
        self.context.kernel.run_for(SETUP_MS)

    def _be_unsafe(self) -> None:
        self.context.tell("world", "safety")
        self._faults.start()
        self._workload.start()
        self.context.kernel.run_for(self.context.options.safety_ms)

    def _be_live(self) -> int:
        """Returns how long it took."""
        context = self.context
        self._faults.stop()
        self._workload.stop()
        context.tell("world", "liveness")
        context.healed = True
        context.network.heal()
        self.broker.heal()
        self.population.heal()
        healed_ms = context.kernel.now_ms
        self._await_order(healed_ms + LIVENESS_MS_MAX)
        converged_ms = context.kernel.now_ms - healed_ms
        # what was sent before the healing may still be on its way, or waited for
        self.context.kernel.run_for(max(context.options.request_timeout_ms, CLOG_MS_MAX))
        self._await_order(context.kernel.now_ms + LIVENESS_MS_MAX)
        # a member asks more often than the interval for a while after its assignment has changed
        self.context.kernel.run_for(EXTRA_INTERVALS * self._longest_interval_ms())
        self._stay_quiet()
        return converged_ms

    def _await_order(self, until_ms: int) -> None:
        while self.pending():
            self.context.kernel.run_for(CHECK_EVERY_MS)
            if self.context.kernel.now_ms > until_ms:
                raise Stuck("; ".join(self.pending()))

    def _stay_quiet(self) -> None:
        """Order lasts: no epoch moves and no member asks more than heartbeats need."""
        context = self.context
        context.tell("world", "quiet")
        epochs = {g: group.epoch for g, group in context.checkers.groups.groups.items()}
        before = dict(context.checkers.rates.requests)
        early = context.checkers.early_heartbeats.count
        self.context.kernel.run_for(QUIET_MS)
        stuck = self.pending()
        if stuck:
            raise Stuck(f"order did not last: {'; '.join(stuck)}")
        after = {g: group.epoch for g, group in context.checkers.groups.groups.items()}
        if after != epochs:
            raise Stuck(f"epochs moved from {epochs} to {after} and nothing happened")
        asked = context.checkers.rates.requests
        allowed = self._heartbeats_allowed()
        if asked["heartbeats"] - before.get("heartbeats", 0) > allowed:
            raise Stuck(f"more than {allowed} heartbeats in {QUIET_MS} ms of quiet")
        if context.checkers.early_heartbeats.count != early:
            raise Stuck("a heartbeat came sooner than the interval while all was quiet")
        for what in ("lookups", "metadata"):
            if asked[what] != before.get(what, 0):
                raise Stuck(f"{asked[what] - before.get(what, 0)} {what} while all was quiet")

    def _longest_interval_ms(self) -> int:
        interval_ms = self.broker.core.broker.config.consumer_heartbeat_interval_ms
        return max((interval_ms(p.group_id) for p in self.population.processes), default=0)

    def _heartbeats_allowed(self) -> int:
        config = self.broker.core.broker.config
        return sum(
            QUIET_MS // config.consumer_heartbeat_interval_ms(process.group_id) + 2
            for process in self.population.processes
        )


def simulate(
    options: Options,
    sink: Callable[[str], None] | None = None,
    record: Record | None = None,
) -> Result:
    """One run. Raises ``Failure``; ``sink`` gets every line of the trace, ``record`` what happens
    to the members of the groups."""
    return World(options, sink, record).run()

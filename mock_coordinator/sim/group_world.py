"""One simulated world of consumer groups; see ``sim.world``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from kip848_client.core.member import EXTRA_INTERVALS
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.sim.broker_actor import BrokerActor
from mock_coordinator.sim.context import BROKER, SimContext, server_name
from mock_coordinator.sim.convergence import pending
from mock_coordinator.sim.operator import Operator
from mock_coordinator.sim.probes import PROBES
from mock_coordinator.sim.processes import Processes
from mock_coordinator.sim.swarm import Options, draw_options
from mock_coordinator.sim.verdict import Outcome, Stuck
from mock_coordinator.sim.workload import Workload
from mock_coordinator.sim.world import Happening, World
from mock_coordinator.sim.world_context import Record, Sink

__all__ = ["GroupWorld", "Result", "simulate"]

_SETUP_MS: Final = 8_000
_QUIET_MS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Outcome[Options]):
    """What a run that held every invariant leaves."""

    requests: Mapping[str, int]

    def details(self) -> str:
        """What was read."""
        return f"order after {self.converged_ms / 1000:>5.1f} s  {self.records:>6} records"


class GroupWorld(World[Options, Result]):
    """Consumers in groups, their coordinator, and who administers it."""

    PROBES = PROBES
    CLOG_MS_MAX = 20_000
    CUT_MS_MAX = 60_000
    LIVENESS_MS_MAX = 240_000
    """The longest waits add up: a session (45 s) after a static rejoin was refused for 60 s, the
    pause between two regex resolutions (10 s), backoffs."""

    def __init__(self, context: SimContext) -> None:
        super().__init__(context)
        self.context = context
        options = context.options
        config = BrokerConfig(
            context.profile,
            {
                "group.consumer.min.session.timeout.ms": "1000",
                "group.consumer.session.timeout.ms": str(options.session_timeout_ms),
                "group.consumer.min.heartbeat.interval.ms": "100",
                "group.consumer.heartbeat.interval.ms": str(options.heartbeat_interval_ms),
                "group.consumer.assignment.interval.ms": str(options.assignment_interval_ms),
                "offsets.topic.num.partitions": "1",  # one journal, which a crash cuts
            },
        )
        self.broker = BrokerActor(context, config)
        self.processes = Processes(context)
        self.operator = Operator(context, self.broker)
        self._workload = Workload(context, self.operator, self.processes)

    @classmethod
    def draw(cls, seed: int) -> Options:
        """The options of a seed."""
        return draw_options(seed)

    @classmethod
    def create(
        cls, options: Options, sink: Sink | None = None, record: Record | None = None
    ) -> Self:
        """A world; ``sink`` gets every line of the trace, ``record`` what happens to members."""
        return cls(SimContext(options, PROBES, sink, record=record))

    def _set_up(self) -> None:
        self._workload.set_up()
        self.context.kernel.run_for(_SETUP_MS)

    def _happenings(self) -> Iterable[Happening]:
        options = self.context.options
        yield from self._network_faults()
        yield options.crash_every_ms, self._crash
        yield options.move_every_ms, self._move
        if options.brokers > 1:
            yield options.relocate_every_ms, self._relocate
        self._workload.start()

    def _path(self) -> tuple[str, str] | None:
        clients = self.processes.names()
        if not clients:
            return None
        client = self._rng.choice(clients)
        brokers = self.context.options.brokers
        server = BROKER if brokers == 1 else server_name(self._rng.randint(1, brokers))
        return (client, server) if self._rng.random() < 0.5 else (server, client)

    def _crash(self) -> None:
        options = self.context.options
        down_ms = self._rng.randint(1, options.down_ms_max)
        self.broker.crash(down_ms, self._rng.randint(0, options.load_ms_max))

    def _move(self) -> None:
        options = self.context.options
        moving_ms = self._rng.randint(1, options.down_ms_max)
        self.broker.move(moving_ms, self._rng.randint(0, options.load_ms_max))

    def _relocate(self) -> None:
        options = self.context.options
        node_id = self._rng.randint(1, options.brokers)
        self.broker.relocate(node_id, self._rng.randint(0, options.load_ms_max))

    def _heal(self) -> None:
        self._workload.stop()
        self.broker.heal()
        self.processes.heal()

    def pending(self) -> list[str]:
        """What is not in order yet; see ``convergence``."""
        ends = self.broker.ends()
        return list(pending(self.context, self.processes, self.operator.topics, ends))

    def _stay_in_order(self) -> None:
        kernel = self.context.kernel
        # what was sent before the healing may still be on its way, or waited for
        kernel.run_for(max(self.context.options.request_timeout_ms, self.CLOG_MS_MAX))
        self._converge()
        # a member asks more often than the interval for a while after its assignment has changed
        kernel.run_for(EXTRA_INTERVALS * self._longest_interval_ms())
        self._stay_quiet()

    def _stay_quiet(self) -> None:
        """Order lasts: no epoch moves and no member asks more than heartbeats need."""
        context = self.context
        context.tell("world", "quiet")
        epochs = {g: group.epoch for g, group in context.checkers.groups.groups.items()}
        before = dict(context.checkers.rates.requests)
        early = context.checkers.early_heartbeats.count
        self.context.kernel.run_for(_QUIET_MS)
        stuck = self.pending()
        if stuck:
            raise Stuck(f"order did not last: {'; '.join(stuck)}")
        after = {g: group.epoch for g, group in context.checkers.groups.groups.items()}
        if after != epochs:
            raise Stuck(f"epochs moved from {epochs} to {after} and nothing happened")
        asked = context.checkers.rates.requests
        allowed = self._heartbeats_allowed()
        if asked["heartbeats"] - before.get("heartbeats", 0) > allowed:
            raise Stuck(f"more than {allowed} heartbeats in {_QUIET_MS} ms of quiet")
        if context.checkers.early_heartbeats.count != early:
            raise Stuck("a heartbeat came sooner than the interval while all was quiet")
        for what in ("lookups", "metadata"):
            if asked[what] != before.get(what, 0):
                raise Stuck(f"{asked[what] - before.get(what, 0)} {what} while all was quiet")

    def _longest_interval_ms(self) -> int:
        interval_ms = self.broker.core.broker.config.consumer_heartbeat_interval_ms
        return max((interval_ms(p.group_id) for p in self.processes.alive), default=0)

    def _heartbeats_allowed(self) -> int:
        config = self.broker.core.broker.config
        return sum(
            _QUIET_MS // config.consumer_heartbeat_interval_ms(process.group_id) + 2
            for process in self.processes.alive
        )

    def _outcome(self, converged_ms: int) -> Result:
        checkers = self.context.checkers
        return Result(
            records=checkers.deliveries.total(),
            requests=dict(checkers.rates.requests),
            **self._measures(converged_ms),
        )


def simulate(options: Options, sink: Sink | None = None, record: Record | None = None) -> Result:
    """One run of a world of groups. Raises ``Failure``; ``sink`` gets every line of the trace,
    ``record`` what happens to the members of the groups."""
    return GroupWorld.create(options, sink, record).run()

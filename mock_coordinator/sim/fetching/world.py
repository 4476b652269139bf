"""One simulated world of fetching: set up, safety, liveness, and a verdict; see ``sim.world``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kip848_client.core.fetch import CloseRequested
from kip848_client.core.types import TopicIdPartition, TopicPartition
from mock_coordinator.core.profiles import profile_named
from mock_coordinator.sim.fetching.brokers import Brokers
from mock_coordinator.sim.fetching.client import NAME
from mock_coordinator.sim.fetching.context import FetchContext
from mock_coordinator.sim.fetching.judge import Judge
from mock_coordinator.sim.fetching.operator import Operator
from mock_coordinator.sim.fetching.options import FetchOptions, draw_fetch_options
from mock_coordinator.sim.fetching.probes import FETCH_PROBES
from mock_coordinator.sim.fetching.producers import Producers
from mock_coordinator.sim.fetching.user import User
from mock_coordinator.sim.history import Histories
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.network import Network
from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.occasions import Occasions
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.swarm import replaying
from mock_coordinator.sim.trace import Trace
from mock_coordinator.sim.verdict import Failure, Outcome, Stuck

__all__ = ["FetchResult", "FetchWorld", "simulate_fetching"]

LIVENESS_MS_MAX: Final = 90_000
"""Without a record: rests, leases and look-ups that time out add up."""
QUIET_MS: Final = 20_000
CHECK_EVERY_MS: Final = 500
_COMMAND: Final = "python -m mock_coordinator.sim --fetching"
_CLOG_MS_MAX: Final = 5_000
_CUT_MS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult(Outcome[FetchOptions]):
    """What a run that held every invariant leaves."""

    written: int
    requests: int
    resets: int
    truncations: int


class FetchWorld:
    """Everything of one run."""

    def __init__(self, options: FetchOptions, sink: Callable[[str], None] | None = None) -> None:
        kernel = Kernel(options.seed)
        trace, probes = Trace(kernel.now_ms, sink), Probes(FETCH_PROBES)
        histories = Histories()
        self.context = FetchContext(
            options=options,
            profile=profile_named(options.profile),
            kernel=kernel,
            network=Network(kernel, options, trace, probes),
            trace=trace,
            probes=probes,
            judge=Judge(
                histories,
                read_committed=options.read_committed,
                may_reset=options.reset_policy != "none",
                has_data=self._has_data,
            ),
            histories=histories,
        )
        self._start_ms = kernel.now_ms
        self._rng = kernel.rng("faults")
        self._occasions = Occasions(kernel, self._rng)
        self.brokers = Brokers(self.context)
        self.producers = Producers(self.context, self.brokers)
        self.operator = Operator(self.context, self.brokers)
        self.user = User(self.context, self.brokers)

    def run(self) -> FetchResult:
        """The whole story. Raises ``Failure``."""
        context, options = self.context, self.context.options
        try:
            self._set_up()
            self._be_unsafe()
            converged_ms = self._be_live()
        except Exception as err:
            replay = f"{_COMMAND} {replaying(options, draw_fetch_options(options.seed))}"
            raise Failure(options, err, context.trace, replay) from err
        reading = context.judge.reading
        if reading.resets:
            context.probes.reached("a reset")
        if reading.truncations:
            context.probes.reached("a truncation")
        return FetchResult(
            options=context.options,
            digest=context.trace.digest,
            lines=context.trace.lines,
            events=context.kernel.events,
            virtual_ms=context.kernel.now_ms - self._start_ms,
            converged_ms=converged_ms,
            written=self.producers.written,
            records=reading.records,
            requests=context.judge.asking.requests,
            resets=reading.resets,
            truncations=reading.truncations,
            probes=dict(context.probes.counts),
        )

    def _has_data(self, key: TopicIdPartition, offset: int) -> bool:
        topic = self.brokers.core.broker.catalog.topic_by_id(key[0])
        if topic is None:
            return False
        log = self.brokers.log(topic, key[1])
        return offset < log.readable_end(int(self.context.options.read_committed))

    # -- phases ------------------------------------------------------------------------------

    def _set_up(self) -> None:
        for number in range(self.context.options.topics):
            self.operator.create(f"t{number}")
        for _ in range(10):
            self.producers.write()
        self.user.start()
        self.context.kernel.run_for(1_000)

    def _be_unsafe(self) -> None:
        context, options = self.context, self.context.options
        context.tell("world", "safety")
        self._occasions.repeat(options.produce_every_ms, self.producers.write)
        self._occasions.repeat(options.act_every_ms, self.user.act)
        self._occasions.repeat(options.compact_every_ms, self.operator.compact)
        self._occasions.repeat(options.retain_every_ms, self.operator.retain)
        self._occasions.repeat(options.cut_every_ms, self.operator.cut)
        self._occasions.repeat(options.elect_every_ms, self.operator.elect)
        self._occasions.repeat(options.administer_every_ms, self.operator.administer)
        self._occasions.repeat(options.stop_every_ms, self.operator.stop_a_node)
        self._occasions.repeat(options.evict_every_ms, self.brokers.evict)
        self._occasions.repeat(options.clog_every_ms, self._clog)
        self._occasions.repeat(options.partition_every_ms, self._cut)
        self.context.kernel.run_for(options.safety_ms)

    def _path(self) -> tuple[str, str]:
        node = node_name(self._rng.choice(self.brokers.core.broker.nodes.ids))
        return (NAME, node) if self._rng.random() < 0.5 else (node, NAME)

    def _clog(self) -> None:
        self.context.network.clog(*self._path(), self._rng.randint(1, _CLOG_MS_MAX))

    def _cut(self) -> None:
        both_ways = self._rng.random() < 0.5
        duration_ms = self._rng.randint(1, _CUT_MS_MAX)
        self.context.network.cut(*self._path(), duration_ms, both_ways=both_ways)

    def _be_live(self) -> int:
        """Returns how long it took until everything was read."""
        context = self.context
        self._occasions.stop()
        context.tell("world", "liveness")
        context.healed = True
        context.network.heal()
        self.brokers.heal()
        self.producers.finish()
        self.context.kernel.run_for(10_000)  # topics that are to be made again are there
        self.producers.finish()
        self.user.heal()
        healed_ms = context.kernel.now_ms
        moved_ms, read = healed_ms, context.judge.reading.records
        while stuck := list(self.pending()):
            self.context.kernel.run_for(CHECK_EVERY_MS)
            if context.judge.reading.records != read:
                moved_ms, read = context.kernel.now_ms, context.judge.reading.records
            if context.kernel.now_ms > moved_ms + LIVENESS_MS_MAX:
                raise Stuck("; ".join(stuck))
        converged_ms = context.kernel.now_ms - healed_ms
        self._stay_quiet()
        self._close()
        return converged_ms

    def pending(self) -> Iterator[str]:
        """What is not read yet, or not in order."""
        core = self.user.client.core
        committed = int(self.context.options.read_committed)
        for topic, partition, log in self.brokers.logs():
            tp = TopicPartition(topic.name, partition)
            shown = f"{topic.name}-{partition}"
            if tp not in core.assigned:
                yield f"{shown} is not assigned"
            elif core.topic_id(tp) != topic.topic_id:
                yield f"{shown} is another topic"
            elif core.position(tp) != log.readable_end(committed):
                yield f"{shown} is at {core.position(tp)} of {log.readable_end(committed)}"
        for ticket in self.user.late_look_ups():
            yield f"look-up {ticket} is not answered"

    def _stay_quiet(self) -> None:
        """Nothing moves, and nobody asks more than waiting needs."""
        context, options = self.context, self.context.options
        context.tell("world", "quiet")
        self.context.kernel.run_for(2_000)
        before = context.judge.asking.requests
        self.context.kernel.run_for(QUIET_MS)
        stuck = list(self.pending())
        if stuck:
            raise Stuck(f"order did not last: {'; '.join(stuck)}")
        asked = context.judge.asking.requests - before
        allowed = options.brokers * (QUIET_MS // options.max_wait_ms + 2)
        if asked > allowed:
            raise Stuck(f"{asked} fetches in {QUIET_MS} ms of quiet, more than {allowed}")

    def _close(self) -> None:
        """A client that closes leaves no session, and is never heard of again."""
        context, client = self.context, self.user.client
        context.tell("world", "close")
        held = client.session_ids
        client.feed(CloseRequested())
        asked = context.judge.asking.requests
        self.context.kernel.run_for(5_000)
        if client.core.deadline_ms is not None or context.judge.asking.requests != asked:
            raise Stuck("it goes on after it was closed")
        sessions = [s for node in self.brokers.sessions() for s in node if s in held]
        if sessions:
            raise Stuck(f"sessions {sessions} are not closed")


def simulate_fetching(
    options: FetchOptions, sink: Callable[[str], None] | None = None
) -> FetchResult:
    """One run. Raises ``Failure``; ``sink`` gets every line of the trace."""
    return FetchWorld(options, sink).run()

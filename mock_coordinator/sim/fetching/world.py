"""One simulated world of fetching; see ``sim.world``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from kip848_client.core.fetch import CloseRequested
from kip848_client.core.types import TopicIdPartition, TopicPartition
from mock_coordinator.sim.fetching.brokers import Brokers
from mock_coordinator.sim.fetching.client import NAME
from mock_coordinator.sim.fetching.context import FetchContext
from mock_coordinator.sim.fetching.operator import Operator
from mock_coordinator.sim.fetching.options import FetchOptions, draw_fetch_options
from mock_coordinator.sim.fetching.probes import FETCH_PROBES
from mock_coordinator.sim.fetching.producers import Producers
from mock_coordinator.sim.fetching.user import User
from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.verdict import Outcome, Stuck
from mock_coordinator.sim.world import Happening, World
from mock_coordinator.sim.world_context import Sink

__all__ = ["FetchResult", "FetchWorld"]

_QUIET_MS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult(Outcome[FetchOptions]):
    """What a run that held every invariant leaves."""

    written: int
    requests: int
    resets: int
    truncations: int

    def details(self) -> str:
        """What was read."""
        return (
            f"all read after {self.converged_ms / 1000:>5.1f} s  "
            f"{self.records:>6} of {self.written:>6} records  {self.requests:>5} fetches  "
            f"{self.resets:>3} resets  {self.truncations:>3} truncations"
        )


class FetchWorld(World[FetchOptions, FetchResult]):
    """One ``FetchCore``, its user, and logs that are cut, compacted and retained."""

    FLAG = "--fetching"
    PROBES = FETCH_PROBES
    CLOG_MS_MAX = 5_000
    CUT_MS_MAX = 10_000
    LIVENESS_MS_MAX = 90_000  # without a record: rests, leases and look-ups that time out add up

    def __init__(self, options: FetchOptions, sink: Sink | None = None) -> None:
        self.context = FetchContext(options, self._has_data, sink)
        super().__init__(self.context)
        self.brokers = Brokers(self.context)
        self.producers = Producers(self.context, self.brokers)
        self.operator = Operator(self.context, self.brokers)
        self.user = User(self.context, self.brokers)

    @classmethod
    def draw(cls, seed: int) -> FetchOptions:
        """The options of a seed."""
        return draw_fetch_options(seed)

    @classmethod
    def create(cls, options: FetchOptions, sink: Sink | None = None) -> Self:
        """A world; ``sink`` gets every line of the trace."""
        return cls(options, sink)

    def _has_data(self, key: TopicIdPartition, offset: int) -> bool:
        topic = self.brokers.core.broker.catalog.topic_by_id(key[0])
        if topic is None:
            return False
        log = self.brokers.log(topic, key[1])
        return offset < log.readable_end(int(self.context.options.read_committed))

    def _set_up(self) -> None:
        for number in range(self.context.options.topics):
            self.operator.create(f"t{number}")
        for _ in range(10):
            self.producers.write()
        self.user.start()
        self.context.kernel.run_for(1_000)

    def _happenings(self) -> Iterable[Happening]:
        options, operator = self.context.options, self.operator
        return (
            (options.produce_every_ms, self.producers.write),
            (options.act_every_ms, self.user.act),
            (options.compact_every_ms, operator.compact),
            (options.retain_every_ms, operator.retain),
            (options.cut_every_ms, operator.cut),
            (options.elect_every_ms, operator.elect),
            (options.administer_every_ms, operator.administer),
            (options.stop_every_ms, operator.stop_a_node),
            (options.evict_every_ms, self.brokers.evict),
            *self._network_faults(),
        )

    def _path(self) -> tuple[str, str]:
        node = node_name(self._rng.choice(self.brokers.core.broker.nodes.ids))
        return (NAME, node) if self._rng.random() < 0.5 else (node, NAME)

    def _cut(self) -> None:
        """In the order in which this kind of world has always drawn."""
        both_ways = self._rng.random() < 0.5
        duration_ms = self._rng.randint(1, self.CUT_MS_MAX)
        self.context.network.cut(*self._path(), duration_ms, both_ways=both_ways)

    def _heal(self) -> None:
        self.brokers.heal()
        self.producers.finish()
        self.context.kernel.run_for(10_000)  # topics that are to be made again exist by then
        self.producers.finish()
        self.user.heal()

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

    def _converge(self) -> int:
        """Each record that is read gives it more time."""
        kernel, reading = self.context.kernel, self.context.checks.reading
        healed_ms = moved_ms = kernel.now_ms
        read = reading.records
        while stuck := list(self.pending()):
            kernel.run_for(self.CHECK_EVERY_MS)
            if reading.records != read:
                moved_ms, read = kernel.now_ms, reading.records
            if kernel.now_ms > moved_ms + self.LIVENESS_MS_MAX:
                raise Stuck("; ".join(stuck))
        return kernel.now_ms - healed_ms

    def _stay_in_order(self) -> None:
        self._stay_quiet()
        self._close()

    def _stay_quiet(self) -> None:
        """Nothing moves, and the client asks no more than waiting needs."""
        context, options = self.context, self.context.options
        context.tell("world", "quiet")
        context.kernel.run_for(2_000)
        before = context.checks.asking.requests
        context.kernel.run_for(_QUIET_MS)
        stuck = list(self.pending())
        if stuck:
            raise Stuck(f"order did not last: {'; '.join(stuck)}")
        asked = context.checks.asking.requests - before
        allowed = options.brokers * (_QUIET_MS // options.max_wait_ms + 2)
        if asked > allowed:
            raise Stuck(f"{asked} fetches in {_QUIET_MS} ms of quiet, more than {allowed}")

    def _close(self) -> None:
        """A client that closes leaves no session, and sends nothing any more."""
        context, client = self.context, self.user.client
        context.tell("world", "close")
        held = client.session_ids
        client.feed(CloseRequested())
        asked = context.checks.asking.requests
        context.kernel.run_for(5_000)
        if client.core.deadline_ms is not None or context.checks.asking.requests != asked:
            raise Stuck("it goes on after it was closed")
        sessions = [s for node in self.brokers.sessions() for s in node if s in held]
        if sessions:
            raise Stuck(f"sessions {sessions} are not closed")

    def _outcome(self, converged_ms: int) -> FetchResult:
        context, reading = self.context, self.context.checks.reading
        if reading.resets:
            context.probes.reached("a reset")
        if reading.truncations:
            context.probes.reached("a truncation")
        return FetchResult(
            records=reading.records,
            written=self.producers.written,
            requests=context.checks.asking.requests,
            resets=reading.resets,
            truncations=reading.truncations,
            **self._measures(converged_ms),
        )

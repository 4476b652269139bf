"""One simulated world of producers; see ``sim.world``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from mock_coordinator.core.profiles import profile_named
from mock_coordinator.sim.producing.brokers import Brokers
from mock_coordinator.sim.producing.context import ProduceContext
from mock_coordinator.sim.producing.operator import Operator
from mock_coordinator.sim.producing.options import ProduceOptions, draw_produce_options
from mock_coordinator.sim.producing.probes import PRODUCE_PROBES
from mock_coordinator.sim.producing.processes import Processes
from mock_coordinator.sim.verdict import Outcome, Stuck
from mock_coordinator.sim.world import Happening, World
from mock_coordinator.sim.world_context import Sink

__all__ = ["ProduceResult", "ProduceWorld"]

_QUIET_MS = 60_000
"""What is on its way yet arrives within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResult(Outcome[ProduceOptions]):
    """What a run that held every invariant leaves. ``records``: in the logs."""

    appended: int
    transactions: int
    committed: int
    requests: int

    def details(self) -> str:
        """What came of the records."""
        return (
            f"order after {self.converged_ms / 1000:>5.1f} s  "
            f"{self.records:>6} of {self.appended:>6} records  {self.committed:>4} of "
            f"{self.transactions:>4} transactions  {self.requests:>6} requests"
        )


class ProduceWorld(World[ProduceOptions, ProduceResult]):
    """Producers, plain and transactional, with rivals."""

    FLAG = "--producing"
    PROBES = PRODUCE_PROBES
    CLOG_MS_MAX = 4_000
    CUT_MS_MAX = 6_000
    CHECK_EVERY_MS = 200
    LIVENESS_MS_MAX = 120_000  # timeouts of deliveries, transactions and requests add up

    def __init__(self, context: ProduceContext) -> None:
        super().__init__(context)
        self.context = context
        self.brokers = Brokers(context)
        self.operator = Operator(context, self.brokers, context.options.forget)
        self.processes = Processes(context, self.brokers, self.operator)

    @classmethod
    def draw(cls, seed: int) -> ProduceOptions:
        """The options of a seed."""
        return draw_produce_options(seed)

    @classmethod
    def create(cls, options: ProduceOptions, sink: Sink | None = None) -> Self:
        """A world; ``sink`` gets every line of the trace."""
        profile = profile_named(options.profile).at_transaction_version(min(options.level, 2))
        return cls(ProduceContext(options, PRODUCE_PROBES, sink, profile=profile))

    def _set_up(self) -> None:
        options = self.context.options
        names = [f"t{number}" for number in range(options.topics)]
        self.operator.create_topics(names, options.partitions_max)
        self.processes.start()

    def _happenings(self) -> Iterable[Happening]:
        options, operator = self.context.options, self.operator
        return (
            (options.elect_every_ms, operator.elect),
            (options.move_every_ms, operator.move),
            (options.stop_every_ms, operator.stop_a_node),
            *self._network_faults(),
        )

    def _path(self) -> tuple[str, str] | None:
        return self._between(self.brokers.core.broker.nodes.ids, self.processes.names())

    def _heal(self) -> None:
        self.brokers.heal()
        self.processes.heal()

    def pending(self) -> Iterable[str]:
        """Who is not done."""
        return self.processes.pending()

    def _stay_in_order(self) -> None:
        """All requests have ended, and what was reported is so."""
        self.context.tell("world", "quiet")
        self.context.kernel.run_for(_QUIET_MS)
        stuck = list(self.context.writing.unsettled())
        if stuck:
            raise Stuck("; ".join(stuck))

    def _outcome(self, converged_ms: int) -> ProduceResult:
        context = self.context
        return ProduceResult(
            records=context.writing.written,
            appended=len(context.facts.records),
            transactions=len(context.facts.transactions),
            committed=context.probes.counts["a commit"],
            requests=context.requests,
            **self._measures(converged_ms),
        )

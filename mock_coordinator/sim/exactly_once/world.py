"""One simulated world of processors; see ``sim.world``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from mock_coordinator.sim.exactly_once.brokers import DEAD, OUT, Brokers
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.exactly_once.options import ProcessOptions, draw_process_options
from mock_coordinator.sim.exactly_once.probes import PROCESS_PROBES
from mock_coordinator.sim.exactly_once.processes import Processes
from mock_coordinator.sim.exactly_once.source import Source
from mock_coordinator.sim.producing.operator import Operator
from mock_coordinator.sim.verdict import Outcome, Stuck
from mock_coordinator.sim.world import Happening, World
from mock_coordinator.sim.world_context import Sink

__all__ = ["ProcessResult", "ProcessWorld"]

_QUIET_MS = 60_000
"""What is on its way yet arrives within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult(Outcome[ProcessOptions]):
    """What a run that held every invariant leaves. ``records``: inputs that were processed."""

    written: int
    transactions: int
    committed: int

    def details(self) -> str:
        """What came of the inputs."""
        return (
            f"order after {self.converged_ms / 1000:>5.1f} s  "
            f"{self.records:>6} of {self.written:>6} inputs  {self.committed:>4} of "
            f"{self.transactions:>4} transactions"
        )


class ProcessWorld(World[ProcessOptions, ProcessResult]):
    """Processors with their consumers and producers."""

    FLAG = "--exactly-once"
    PROBES = PROCESS_PROBES
    CLOG_MS_MAX = 4_000
    CUT_MS_MAX = 8_000
    LIVENESS_MS_MAX = 240_000  # timeouts of sessions, transactions and listeners add up

    def __init__(self, context: ProcessContext) -> None:
        super().__init__(context)
        self.context = context
        self.brokers = Brokers(context)
        self.operator = Operator(context, self.brokers, context.options.forget)
        self.source = Source(context, self.brokers)
        self.processes = Processes(context, self.brokers, self.operator)

    @classmethod
    def draw(cls, seed: int) -> ProcessOptions:
        """The options of a seed."""
        return draw_process_options(seed)

    @classmethod
    def create(cls, options: ProcessOptions, sink: Sink | None = None) -> Self:
        """A world; ``sink`` gets every line of the trace."""
        return cls(ProcessContext(options, sink))

    def _set_up(self) -> None:
        options, checks = self.context.options, self.context.checks
        names = [f"in{number}" for number in range(options.topics)]
        self.operator.create_topics([*names, OUT, DEAD], options.partitions_max)
        checks.ids = {topic.name: topic.topic_id for topic in self.brokers.topics}
        for _ in range(5):
            self.source.write()
        self.processes.start()

    def _happenings(self) -> Iterable[Happening]:
        options, operator = self.context.options, self.operator
        return (
            (options.produce_every_ms, self.source.write),
            (options.act_every_ms, self.processes.act),
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
        for _ in range(3):
            self.source.write()

    def pending(self) -> Iterable[str]:
        """What is not processed."""
        return self.context.checks.pending(dict(self.brokers.ends()))

    def _stay_in_order(self) -> None:
        """Nothing comes any more, and what was reported is so."""
        context = self.context
        context.tell("world", "quiet")
        context.kernel.run_for(_QUIET_MS)
        stuck = [*context.writing.unsettled(), *self.pending()]
        if context.checks.done != self.source.written:
            stuck.append(f"{context.checks.done} of {self.source.written} inputs are processed")
        if stuck:
            raise Stuck("; ".join(stuck))

    def _outcome(self, converged_ms: int) -> ProcessResult:
        context = self.context
        if context.checks.offsets_alone:
            context.probes.reached("offsets alone")
        return ProcessResult(
            records=context.checks.done,
            written=self.source.written,
            transactions=len(context.facts.transactions),
            committed=context.probes.counts["processed"],
            **self._measures(converged_ms),
        )

"""Who lives in a world of processors: for each name one process after the other, and sometimes two
at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mock_coordinator.sim.exactly_once.brokers import DEAD, OUT, Brokers
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.exactly_once.options import ProcessOptions
from mock_coordinator.sim.exactly_once.process import GROUP, Plan, Process
from mock_coordinator.sim.process_life import NamedProcesses
from mock_coordinator.sim.producing.operator import Operator

__all__ = ["Processes"]

_NAMES_MAX: Final = 4
_ALIKE_MAX: Final = 3


class Processes:
    """All processes. Names are transactional ids."""

    def __init__(
        self, context: ProcessContext, brokers: Brokers, operator: Operator[ProcessOptions]
    ) -> None:
        self._context = context
        self._brokers = brokers
        self._operator = operator
        self._rng = context.kernel.rng("population")
        self._plans: dict[str, Plan] = {}
        self._by_name = NamedProcesses[Process](
            context.kernel, self._rng, self._begin, again_ms_max=1_000
        )
        self._wanted: set[str] = set()
        self._acts: tuple[tuple[int, Callable[[Process], None]], ...] = (
            (3, self._kill),
            (3, self._stop),
            (3, self._sleep),
            (2, self._rival),
            (5, lambda _: self._come()),
            (4, self._go),
            (1, lambda process: process.enter(process.producer.begin_anew)),
        )

    def start(self) -> None:
        """As many as the options say."""
        self._operator.keys.append((GROUP, False))
        for _ in range(self._context.options.processors):
            self._come()

    def _come(self) -> None:
        """One more, or one that had gone."""
        context = self._context
        free = [f"x{n}" for n in range(_NAMES_MAX) if f"x{n}" not in self._wanted]
        if not free:
            return
        context.probes.reached("one more")
        name = free[0]
        if name not in self._plans:
            self._operator.keys.append((name, True))
            static = self._rng.random() < context.options.static
            self._plans[name] = Plan(
                transactional_id=name,
                instance_id=f"i-{name}" if static else None,
                topics=frozenset(t.name for t in self._brokers.topics) - {OUT, DEAD},
            )
        self._wanted.add(name)
        self._begin(name)

    def _begin(self, name: str) -> None:
        if name not in self._wanted:
            return
        nodes = self._brokers.core.broker.nodes.ids
        full = self._by_name.next_name(name)
        process = Process(self._context, full, self._plans[name], nodes, self._ended)
        self._by_name.add(name, process)

    def names(self) -> list[str]:
        """Of all processes."""
        return self._by_name.names()

    # -- what happens to them ----------------------------------------------------------------

    def act(self) -> None:
        """Something happens to one of them."""
        processes = self._by_name.alive
        if processes:
            weights = [weight for weight, _ in self._acts]
            self._rng.choices(self._acts, weights)[0][1](self._rng.choice(processes))
        else:
            self._come()

    def _kill(self, process: Process) -> None:
        self._context.probes.reached("killed")
        self._by_name.kill(process.plan.transactional_id, process)
        self._by_name.begin_later(process.plan.transactional_id)

    def _stop(self, process: Process) -> None:
        self._context.probes.reached("stopped")
        process.enter(process.stop)

    def _sleep(self, process: Process) -> None:
        self._context.probes.reached("sleep")
        process.sleep(self._rng.randint(1, self._context.options.sleep_ms_max))
        if self._rng.random() < 0.5:
            self._rival(process)

    def _rival(self, process: Process) -> None:
        name = process.plan.transactional_id
        may_have = self._context.options.level <= 2  # see the rivals of ``sim.producing``
        if may_have and len(self._by_name.living[name]) < _ALIKE_MAX:
            self._context.probes.reached("rival processor")
            self._by_name.begin_later(name)

    def _go(self, process: Process) -> None:
        name = process.plan.transactional_id
        if len(self._wanted) < 2:
            return
        self._context.probes.reached("one less")
        self._wanted.discard(name)
        for each in self._by_name.living[name]:
            each.enter(each.stop)

    def _ended(self, process: Process) -> None:
        """Its processor has ended, by itself or stopped."""
        name = process.plan.transactional_id
        if process not in self._by_name.living[name]:
            return
        self._by_name.living[name].remove(process)
        if name in self._wanted and not self._by_name.living[name]:
            self._by_name.begin_later(name)

    # -- the end -----------------------------------------------------------------------------

    def heal(self) -> None:
        """No process has a rival or sleeps any more."""
        for name, processes in self._by_name.living.items():
            spare = processes[:-1] if name in self._wanted else list(processes)
            for process in spare:
                self._by_name.kill(process.plan.transactional_id, process)
            for process in processes:
                process.wake()
        if not self._wanted:
            self._come()

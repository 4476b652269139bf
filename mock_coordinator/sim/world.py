"""One simulated world: set up, safety, liveness, and an outcome.

*Safety*: everything goes wrong as the options say, people do things, and the checkers watch every
step. *Liveness*: the world is healed, nothing is asked of it any more, and it must come to rest in
order, within a bounded time; then it must stay so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.schedule import Schedule
from mock_coordinator.sim.swarm import AnyParameters, replaying
from mock_coordinator.sim.verdict import Failure, Outcome, Stuck
from mock_coordinator.sim.world_context import Sink, WorldContext

__all__ = ["Happening", "World"]

Happening = tuple[int, Callable[[], None]]
"""The mean time between two occasions, in ms (0 for never), and what happens then."""
AnyOutcome = TypeVar("AnyOutcome", bound=Outcome[Any])


class World(ABC, Generic[AnyParameters, AnyOutcome]):
    """Everything of one run. Subclasses make the actors, in ``__init__``, and fill in the hooks, in
    the order in which a run comes to them."""

    FLAG: ClassVar[str] = ""
    """Chooses this kind of world on the command line."""
    PROBES: ClassVar[Mapping[str, str]]
    """Rare paths that its seeds must reach."""
    CLOG_MS_MAX: ClassVar[int]
    CUT_MS_MAX: ClassVar[int]
    CHECK_EVERY_MS: ClassVar[int] = 500
    LIVENESS_MS_MAX: ClassVar[int]

    def __init__(self, context: WorldContext[AnyParameters]) -> None:
        self._world = context
        self._start_ms = context.kernel.now_ms
        self._rng = context.kernel.rng("faults")
        self._schedule = Schedule(context.kernel, self._rng)

    @classmethod
    @abstractmethod
    def draw(cls, seed: int) -> AnyParameters:
        """The options of a seed."""

    @classmethod
    @abstractmethod
    def create(cls, options: AnyParameters, sink: Sink | None = None) -> Self:
        """A world; ``sink`` gets every line of the trace."""

    @classmethod
    def play(cls, options: AnyParameters, sink: Sink | None = None) -> AnyOutcome:
        """One run of a new world. Raises ``Failure``."""
        return cls.create(options, sink).run()

    @classmethod
    def replay_command(cls, options: AnyParameters) -> str:
        """What to type to see this very run, event by event."""
        command = " ".join(filter(None, ("python -m mock_coordinator.sim", cls.FLAG)))
        return f"{command} {replaying(options, cls.draw(options.seed))}"

    def run(self) -> AnyOutcome:
        """The whole story. Raises ``Failure``."""
        context = self._world
        try:
            self._set_up()
            context.tell("world", "safety")
            for mean_ms, action in self._happenings():
                self._schedule.repeat(mean_ms, action)
            context.kernel.run_for(context.options.safety_ms)
            self._schedule.stop()
            context.tell("world", "liveness")
            context.healed = True
            context.network.heal()
            self._heal()
            converged_ms = self._converge()
            self._stay_in_order()
        except Exception as err:
            replay = self.replay_command(context.options)
            raise Failure(context.options, err, context.trace, replay) from err
        return self._outcome(converged_ms)

    # -- hooks -------------------------------------------------------------------------------

    @abstractmethod
    def _set_up(self) -> None:
        """What there is before anything goes wrong."""

    @abstractmethod
    def _happenings(self) -> Iterable[Happening]:
        """What goes on, and goes wrong, until the world is healed. Their order is a part of what a
        seed means."""

    @abstractmethod
    def _heal(self) -> None:
        """Repair what the healing of the network does not."""

    @abstractmethod
    def pending(self) -> Iterable[str]:
        """What is not in order yet."""

    def _converge(self) -> int:
        """Wait until everything is in order; returns how long it took, in ms. Raises ``Stuck``."""
        kernel = self._world.kernel
        healed_ms = kernel.now_ms
        while stuck := list(self.pending()):
            kernel.run_for(self.CHECK_EVERY_MS)
            if kernel.now_ms > healed_ms + self.LIVENESS_MS_MAX:
                raise Stuck("; ".join(stuck))
        return kernel.now_ms - healed_ms

    @abstractmethod
    def _stay_in_order(self) -> None:
        """What must hold from then on. Raises ``Stuck``."""

    @abstractmethod
    def _outcome(self, converged_ms: int) -> AnyOutcome:
        """What the run leaves; ``_measures`` has what all kinds of worlds leave."""

    def _measures(self, converged_ms: int) -> dict[str, Any]:
        context = self._world
        return {
            "options": context.options,
            "digest": context.trace.digest,
            "lines": context.trace.lines,
            "events": context.kernel.events,
            "virtual_ms": context.kernel.now_ms - self._start_ms,
            "converged_ms": converged_ms,
            "probes": dict(context.probes.counts),
        }

    # -- the network -------------------------------------------------------------------------

    @abstractmethod
    def _path(self) -> tuple[str, str] | None:
        """Between which two, by name, the network has trouble now; ``None`` for no trouble."""

    def _between(self, nodes: Sequence[int], clients: Sequence[str]) -> tuple[str, str] | None:
        node = node_name(self._rng.choice(nodes))
        if not clients:
            return None
        client = self._rng.choice(clients)
        return (client, node) if self._rng.random() < 0.5 else (node, client)

    def _network_faults(self) -> tuple[Happening, Happening]:
        options = self._world.options
        return (options.clog_every_ms, self._clog), (options.partition_every_ms, self._cut)

    def _clog(self) -> None:
        path = self._path()
        if path is not None:
            self._world.network.clog(*path, self._rng.randint(1, self.CLOG_MS_MAX))

    def _cut(self) -> None:
        path = self._path()
        if path is not None:
            both_ways = self._rng.random() < 0.5
            duration_ms = self._rng.randint(1, self.CUT_MS_MAX)
            self._world.network.cut(*path, duration_ms, both_ways=both_ways)

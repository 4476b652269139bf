"""What a group of workers does when nothing goes wrong: it comes to rest with everything running,
and moves no more than it has to when a worker is bounced, comes or is killed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kip848_client.connect.core import AssignedItem
from kip848_client.core.member import MemberState
from mock_coordinator.sim.verdict import Stuck
from mock_coordinator.sim.workers.configuration import Configured, items_in
from mock_coordinator.sim.workers.context import WorkerContext
from mock_coordinator.sim.workers.processes import Host, Processes

__all__ = ["Quiescence"]

_CHECK_EVERY_MS: Final = 200
_RETRIES_MS: Final = 120_000
"""Pauses between tries of an assignor that has failed."""
_SETTLING_MS: Final = 15_000
"""In which an assignor asks for a rest between moves, and moves on after it."""
_QUIET_MS: Final = 15_000
"""In which nothing moves any more."""


class Quiescence:
    """``moves`` and ``ideal`` count what has been moved, and had to be."""

    def __init__(
        self, context: WorkerContext, configured: Configured, processes: Processes
    ) -> None:
        self._context = context
        self._configured = configured
        self._processes = processes
        self.moves = 0
        self.ideal = 0

    def run(self) -> None:
        """The whole calm part. Raises ``Stuck``."""
        self._bounce()
        self._join()
        self._kill()

    # -- at rest -----------------------------------------------------------------------------

    def pending(self) -> Iterator[str]:
        """What is not in order yet."""
        runs = self._context.checks.where()
        configured = set(items_in(self._configured.newest))
        if rests := configured - runs.keys():
            yield f"{len(rests)} items rest: {' '.join(map(str, sorted(rests)[:5]))}"
        if alien := runs.keys() - configured:
            yield f"{len(alien)} run that are not configured: {' '.join(map(str, alien))}"
        for process in self._processes.alive:
            if process.core.state is not MemberState.STABLE:
                yield f"{process.name} is {process.core.state.value}"
            elif set(process.core.assigned) != process.runs:
                yield f"{process.name} runs {process.runs}, and has {process.core.assigned}"
        for host in self._processes.hosts:
            if host.wanted and host.process is None:
                yield f"{host.plan.host} has no process"

    def come_to_rest(self) -> int:
        """Returns how long it took. Raises ``Stuck``: within the times that add up, everything
        runs, and stays."""
        kernel, options = self._context.kernel, self._context.options
        begun_ms = kernel.now_ms
        # a session ends, a stop is waited for, a delay counts once, an assignor is asked again
        limit_ms = begun_ms + options.session_timeout_ms + options.rebalance_timeout_ms
        limit_ms += options.delay_max_ms + _RETRIES_MS
        while stuck := list(self.pending()):
            kernel.run_for(_CHECK_EVERY_MS)
            if kernel.now_ms > limit_ms:
                raise Stuck("; ".join(stuck))
        took_ms = kernel.now_ms - begun_ms
        kernel.run_for(options.delay_max_ms + _SETTLING_MS)
        if stuck := list(self.pending()):
            raise Stuck(f"order did not last: {'; '.join(stuck)}")
        before = self._context.checks.starts
        kernel.run_for(_QUIET_MS)
        if self._context.checks.starts != before:
            raise Stuck("items move although nothing happens")
        return took_ms

    # -- what happens ------------------------------------------------------------------------

    def _where(self) -> dict[AssignedItem, str]:
        """By host."""
        found = self._context.checks.where()
        return {item: name.partition(".")[0] for item, name in found.items()}

    def _living(self) -> list[str]:
        return [host.plan.host for host in self._processes.hosts if host.process is not None]

    def _bounce(self) -> None:
        """It gets back what it had, and no other worker stops anything for it. Not so for the one
        that has computed, which takes with it what is known of the others."""
        options, probes = self._context.options, self._context.probes
        living = [each for each in self._processes.hosts if each.process is not None]
        others = [each for each in living if not _has_computed(each)]
        if not others:
            return
        host = others[0]
        before = self._where()
        self._context.tell("world", "bounce", host.plan.host)
        self._processes.bounce(host)
        self.come_to_rest()
        after = self._where()
        # how long it takes to come back is chance; then others have its items, by right
        if options.delay_max_ms >= 60_000:
            if after != before:
                moved = {str(item) for item in after if after[item] != before.get(item)}
                raise Stuck(f"a bounced worker did not get back {moved}")
            probes.reached("got back")

    def _join(self) -> None:
        """Only what the newcomer gets moves."""
        before, workers = self._where(), len(self._living())
        self._context.tell("world", "join")
        self._processes.come()
        self.come_to_rest()
        if len(self._living()) == workers:
            return
        after = self._where()
        moved = sum(after[item] != before[item] for item in after)
        self._count(moved, self._fewest_for_one_more(before, workers))

    def _fewest_for_one_more(self, before: dict[AssignedItem, str], workers: int) -> int:
        """What a newcomer gets of connectors and of tasks when both are even."""
        connectors = sum(item.task < 0 for item in before)
        tasks = len(before) - connectors
        return connectors // (workers + 1) + tasks // (workers + 1)

    def _kill(self) -> None:
        """Only what it ran moves, after the delay, which counts once."""
        hosts = [host for host in self._processes.hosts if host.process is not None]
        if len(hosts) < 2:
            return
        host, before = hosts[-1], self._where()
        self._context.tell("world", "kill", host.plan.host)
        host.wanted = False
        self._processes.kill(host)
        took_ms = self.come_to_rest()
        options = self._context.options
        limit_ms = options.session_timeout_ms + options.delay_max_ms + _SETTLING_MS
        if took_ms > limit_ms:
            raise Stuck(f"what a killed worker ran rested for {took_ms} ms, not {limit_ms}")
        after = self._where()
        self._count(
            sum(after[item] != before[item] for item in after),
            sum(name == host.plan.host for name in before.values()),
        )

    def _count(self, moves: int, ideal: int) -> None:
        self.moves += moves
        self.ideal += ideal
        self._context.tell("world", "moved", f"{moves}, at least {ideal}")
        if moves > ideal * 1.1 + 2:
            raise Stuck(f"{moves} items moved where {ideal} would have done")


def _has_computed(host: Host) -> bool:
    process = host.process
    return process is not None and process.core.leader == process.core.member_id

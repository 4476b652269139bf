"""Who lives in a world of workers: for each host one process after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from mock_coordinator.sim.workers.brokers import Brokers
from mock_coordinator.sim.workers.configuration import Configured
from mock_coordinator.sim.workers.context import WorkerContext
from mock_coordinator.sim.workers.process import WorkerPlan, WorkerProcess

__all__ = ["Host", "Processes"]

_HOSTS_MAX: Final = 6
_AGAIN_MS_MAX: Final = 8_000


@dataclass(slots=True, eq=False)
class Host:
    """Whether a worker is to run there; the process that it has."""

    plan: WorkerPlan
    wanted: bool = True
    lives: int = 0
    process: WorkerProcess | None = None


class Processes:
    """All hosts, in the order in which they came."""

    def __init__(self, context: WorkerContext, brokers: Brokers, configured: Configured) -> None:
        self._context = context
        self._brokers = brokers
        self._configured = configured
        self._rng = context.kernel.rng("population")
        self.hosts: list[Host] = []
        self._acts: tuple[tuple[int, Callable[[Host], None]], ...] = (
            (3, self._kill),
            (3, self._bounce),
            (3, self._sleep),
            (3, lambda _: self.come()),
            (2, self._go),
        )

    @property
    def alive(self) -> list[WorkerProcess]:
        """All that live."""
        return [host.process for host in self.hosts if host.process is not None]

    def names(self) -> list[str]:
        """Of all processes."""
        return [process.name for process in self.alive]

    def start(self) -> None:
        """As many as the options say."""
        for _ in range(self._context.options.workers):
            self.come()

    def come(self) -> None:
        """One more, or one that had gone."""
        self._context.probes.reached("one more")
        gone = [host for host in self.hosts if not host.wanted]
        if gone:
            host = self._rng.choice(gone)
            host.wanted = True
        elif len(self.hosts) < _HOSTS_MAX:
            host = self._new_host()
        else:
            return
        self.begin(host)

    def _new_host(self) -> Host:
        name = f"w{len(self.hosts)}"
        static = self._rng.random() < self._context.options.static
        host = Host(WorkerPlan(host=name, instance_id=f"i-{name}" if static else None))
        self.hosts.append(host)
        return host

    def begin(self, host: Host) -> None:
        """Give it a process, unless it has one."""
        if host.process is not None or not host.wanted:
            return
        host.lives += 1
        nodes = self._brokers.core.broker.nodes.ids
        name = f"{host.plan.host}.{host.lives}"

        def ended(_: WorkerProcess) -> None:
            host.process = None
            self._later(host)

        host.process = WorkerProcess(self._context, self._configured, host.plan, name, nodes, ended)

    def _later(self, host: Host) -> None:
        longest_ms = 1_000 if self._context.healed else _AGAIN_MS_MAX
        self._context.kernel.after(self._rng.randint(1, longest_ms), lambda: self.begin(host))

    # -- what happens to them ----------------------------------------------------------------

    def act(self) -> None:
        """Something happens to one of them."""
        living = [host for host in self.hosts if host.process is not None]
        if living:
            weights = [weight for weight, _ in self._acts]
            self._rng.choices(self._acts, weights)[0][1](self._rng.choice(living))
        else:
            self.come()

    def _kill(self, host: Host) -> None:
        self._context.probes.reached("killed")
        self.kill(host)
        self._later(host)

    def kill(self, host: Host) -> None:
        """Without a word."""
        assert host.process is not None, "it lives"
        host.process.die("killed")
        host.process = None

    def _bounce(self, host: Host) -> None:
        self._context.probes.reached("bounced")
        self.bounce(host)

    def bounce(self, host: Host) -> None:
        """It is stopped in good order, and started again."""
        process = host.process
        assert process is not None, "it lives"
        process.enter(process.leave)

    def _sleep(self, host: Host) -> None:
        self._context.probes.reached("sleep")
        assert host.process is not None, "it lives"
        host.process.sleep(self._rng.randint(1, self._context.options.sleep_ms_max))

    def _go(self, host: Host) -> None:
        if sum(each.wanted for each in self.hosts) < 2:
            return
        self._context.probes.reached("one less")
        host.wanted = False
        self.bounce(host)

    def configure(self) -> None:
        """There is something else to run; all read it, and one of them asks for it."""
        self._configured.change()
        self.read()

    def read(self) -> None:
        """All read what is configured, and one of them lets the group balance it."""
        processes = self.alive
        for number, process in enumerate(self._rng.sample(processes, len(processes))):
            process.enter(partial(process.read, asks=number == 0))

    # -- the end -----------------------------------------------------------------------------

    def heal(self) -> None:
        """No process sleeps any more, and all that are to run do."""
        for process in self.alive:
            process.wake()
        if not any(host.wanted for host in self.hosts):
            self.come()
        for host in self.hosts:
            self.begin(host)

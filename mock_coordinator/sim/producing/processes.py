"""Who lives in a world of producers: for each name one process after the other, and sometimes two
at once."""

from __future__ import annotations

from collections.abc import Iterator

from kip848_client.core.produce import ProduceSettings
from mock_coordinator.sim.process_life import NamedProcesses
from mock_coordinator.sim.producing.brokers import Brokers
from mock_coordinator.sim.producing.context import ProduceContext
from mock_coordinator.sim.producing.operator import Operator
from mock_coordinator.sim.producing.options import ProduceOptions
from mock_coordinator.sim.producing.process import Process
from mock_coordinator.sim.producing.users import PlainUser, TransactionalUser

__all__ = ["Processes"]

_SLEEP_MS_MAX = 15_000
_FINAL_PROCESSES_MAX = 10
"""How many processes of one name may fail when nothing goes wrong any more: what was sent before
may still arrive, and take a transactional id from the process that has it."""


class Processes:
    """All processes. ``names`` are transactional ids, and names of producers without one."""

    def __init__(
        self, context: ProduceContext, brokers: Brokers, operator: Operator[ProduceOptions]
    ) -> None:
        self._context = context
        self._brokers = brokers
        self._operator = operator
        self._rng = context.kernel.rng("population")
        self._by_name = NamedProcesses[Process](
            context.kernel, self._rng, self._begin, again_ms_max=1_000
        )
        self._owners: dict[Process, str] = {}
        self._users: dict[Process, PlainUser | TransactionalUser] = {}
        self._settled: set[str] = set()
        self._failed_late = 0

    def start(self) -> None:
        """One process for each name."""
        options = self._context.options
        for number in range(options.plain):
            self._begin(f"p{number}")
        for number in range(options.transactional):
            name = f"x{number}"
            self._operator.keys += [(name, True), (f"g-{name}", False)]
            self._brokers.groups.add(f"g-{name}")
            self._begin(name)

    def _settings(self, name: str) -> ProduceSettings:
        options = self._context.options
        return ProduceSettings(
            transactional_id=name if name.startswith("x") else None,
            transaction_timeout_ms=options.transaction_timeout_ms,
            linger_ms=options.linger_ms,
            batch_bytes=options.batch_bytes,
            request_bytes=max(options.request_bytes, 2 * options.message_bytes),
            buffer_bytes=max(options.buffer_bytes, 2 * options.message_bytes),
            in_flight_max=options.in_flight_max,
            delivery_timeout_ms=options.delivery_timeout_ms,
            request_timeout_ms=options.request_timeout_ms,
        )

    def _begin(self, name: str) -> None:
        if name in self._settled:
            return
        context = self._context
        nodes = self._brokers.core.broker.nodes.ids
        process = Process(
            context, self._by_name.next_name(name), self._settings(name), nodes, self._ended
        )
        rng = context.kernel.rng(f"user {process.name}")
        user: PlainUser | TransactionalUser
        if name.startswith("x"):
            user = TransactionalUser(context, process, rng, self, name)
        else:
            user = PlainUser(context, process, rng, self)
        self._by_name.add(name, process)
        self._owners[process] = name
        self._users[process] = user
        context.tell(process.name, "born")
        process.live(user.life())

    def names(self) -> list[str]:
        """Of all processes."""
        return self._by_name.names()

    # -- faults -----------------------------------------------------------------------------

    def may_strike(self, process: Process) -> None:
        """It may die, sleep, or get a rival."""
        context, options, name = self._context, self._context.options, self._owners[process]
        if context.happens("crash", options.crash):
            if self._rng.random() < 0.6:
                context.probes.reached("a crash")
                self._by_name.kill(self._owners[process], process)
                self._by_name.begin_later(name)
            else:
                context.kernel.after(
                    0, lambda: process.enter(lambda: process.live(self._users[process].close()))
                )
        elif context.happens("sleep", options.sleep):
            context.probes.reached("a sleep")
            process.sleep(self._rng.randint(1, _SLEEP_MS_MAX))
            if self._rng.random() < 0.7:
                self._rival(name)
        elif context.happens("rival", options.rival):
            self._rival(name)
        elif context.happens("anew", options.anew):
            context.probes.reached("brokers anew")
            context.kernel.after(0, lambda: process.enter(process.side.begin_anew))

    def _rival(self, name: str) -> None:
        # not where the version changes: one that speaks V2 and was fenced by one that speaks V1 may
        # be answered that it has ended its transaction, with the epoch of its rival (KIP-890 takes
        # it for a retry, and does not ask how the epoch came to be raised)
        if self._context.options.level <= 2 and len(self._by_name.living[name]) < 3:
            self._context.probes.reached("a rival")
            self._by_name.begin_later(name)

    def _ended(self, process: Process) -> None:
        """Its user has nothing more to do: its producer was closed."""
        name, user = self._owners[process], self._users[process]
        if process not in self._by_name.living[name]:
            return
        self._by_name.kill(self._owners[process], process)
        others = self._by_name.living[name]
        if self._context.healed:
            failed = isinstance(user, TransactionalUser) and user.good < 1
            if not failed:
                self._settled.add(name)
                return
            self._failed_late += 1
            assert self._failed_late < _FINAL_PROCESSES_MAX, f"{name} keeps failing: {user.error}"
        if not others:
            self._by_name.begin_later(name)

    # -- the end -----------------------------------------------------------------------------

    def heal(self) -> None:
        """No process has a rival or sleeps any more."""
        for processes in self._by_name.living.values():
            for process in processes[:-1]:
                self._by_name.kill(self._owners[process], process)
            for process in processes:
                process.wake()

    def pending(self) -> Iterator[str]:
        """Who is not done."""
        for name in self._by_name.living:
            if name not in self._settled:
                names = ", ".join(each.name for each in self._by_name.living[name])
                yield f"{name} is not done ({names})"

    def close(self) -> None:
        """The world ends."""
        for processes in self._by_name.living.values():
            for process in tuple(processes):
                self._by_name.kill(self._owners[process], process)

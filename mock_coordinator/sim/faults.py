"""The troubles of the world: clogs, partitions, crashes, moves and relocations, at random
times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mock_coordinator.sim.broker_actor import BrokerActor
from mock_coordinator.sim.context import BROKER, SimContext, server_name
from mock_coordinator.sim.occasions import Occasions

__all__ = ["CLOG_MS_MAX", "Faults"]

CLOG_MS_MAX: Final = 20_000
CUT_MS_MAX: Final = 60_000


class Faults:
    """Starts trouble until ``stop``. ``clients`` are the names of the present members."""

    def __init__(
        self, context: SimContext, broker: BrokerActor, clients: Callable[[], list[str]]
    ) -> None:
        self._context = context
        self._broker = broker
        self._clients = clients
        self._rng = context.kernel.rng("faults")
        self._occasions = Occasions(context.kernel, self._rng)

    def start(self) -> None:
        """From now on."""
        options = self._context.options
        self._occasions.repeat(options.clog_every_ms, self._clog)
        self._occasions.repeat(options.partition_every_ms, self._cut)
        self._occasions.repeat(options.crash_every_ms, self._crash)
        self._occasions.repeat(options.move_every_ms, self._move)
        if options.brokers > 1:
            self._occasions.repeat(options.relocate_every_ms, self._relocate)

    def stop(self) -> None:
        """No new trouble."""
        self._occasions.stop()

    def _path(self) -> tuple[str, str] | None:
        clients = self._clients()
        if not clients:
            return None
        client = self._rng.choice(clients)
        brokers = self._context.options.brokers
        server = BROKER if brokers == 1 else server_name(self._rng.randint(1, brokers))
        return (client, server) if self._rng.random() < 0.5 else (server, client)

    def _clog(self) -> None:
        path = self._path()
        if path is not None:
            self._context.network.clog(*path, self._rng.randint(1, CLOG_MS_MAX))

    def _cut(self) -> None:
        path = self._path()
        if path is not None:
            both_ways = self._rng.random() < 0.5
            self._context.network.cut(*path, self._rng.randint(1, CUT_MS_MAX), both_ways=both_ways)

    def _crash(self) -> None:
        options = self._context.options
        down_ms = self._rng.randint(1, options.down_ms_max)
        self._broker.crash(down_ms, self._rng.randint(0, options.load_ms_max))

    def _move(self) -> None:
        options = self._context.options
        moving_ms = self._rng.randint(1, options.down_ms_max)
        self._broker.move(moving_ms, self._rng.randint(0, options.load_ms_max))

    def _relocate(self) -> None:
        options = self._context.options
        node_id = self._rng.randint(1, options.brokers)
        self._broker.relocate(node_id, self._rng.randint(0, options.load_ms_max))

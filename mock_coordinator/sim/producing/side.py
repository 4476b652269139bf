"""A producer in a process: its core, who drives it, and those who watch each of its steps. What it
reports of records and tickets goes to the caller, and into the facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kip848_client.core.cluster import ClusterChanged
from kip848_client.core.produce import (
    Appended,
    BatchDone,
    BatchFailed,
    BatchSplit,
    Command,
    Done,
    Event,
    Failed,
    ProduceSettings,
    Refused,
    RoomMade,
    Route,
    TransactionVersionLearnt,
)
from kip848_client.core.types import TopicPartition
from kip848_client.errors import DeliveryTimedOut, Kip848Error
from mock_coordinator.sim.node_requests import Wires
from mock_coordinator.sim.producing.context import ProducersContext
from mock_coordinator.sim.producing.driver import ProducerDriver
from mock_coordinator.sim.producing.facts import Record, Transaction
from mock_coordinator.sim.producing.request_checks import RequestChecks
from mock_coordinator.sim.producing.shown import shown
from mock_coordinator.sim.producing.state_checks import StateChecks
from mock_coordinator.sim.swarm import Parameters

__all__ = ["ProducerSide"]

_PROD_EVERY: Final = 20
"""The number of steps between two trials with events that must change nothing."""


class ProducerSide:
    """``enter`` lets something happen as soon as the process runs; ``told`` hears the end of each
    ticket, ``room`` that there is room again, and ``saw`` each command."""

    def __init__(
        self,
        world: ProducersContext[Parameters],
        settings: ProduceSettings,
        wires: Wires,
        *,
        enter: Callable[[Callable[[], None]], None],
        told: Callable[[int, Kip848Error | None], None],
        room: Callable[[], None],
        saw: Callable[[Command], None] = lambda _: None,
    ) -> None:
        self.name: Final = wires.client
        self.settings: Final = settings
        self._world = world
        self._told = told
        self._room = room
        self._saw = saw
        self._driver = ProducerDriver(
            settings,
            wires,
            world.kernel.rng(wires.client),
            heard=self._heard,
            enter=enter,
            watch=self._watch,
        )
        self.core = self._driver.core
        self.topic_ids = self._driver.ids
        self._state_checks = StateChecks(self.core, settings)
        self._asking = RequestChecks(settings)
        self._steps = 0
        self._batches: dict[int, list[Record]] = {}
        self._appended: dict[TopicPartition, int] = {}
        self._ticket = 0
        self._offsets: dict[int, Transaction] = {}

    # -- what the user does ------------------------------------------------------------------

    def ask(self, make: Callable[[int], Event], deadline_ms: int | None = None) -> int:
        """Post what this makes of a ticket; returns the ticket."""
        self._ticket += 1
        self._state_checks.asked(self._ticket, deadline_ms)
        ticket = self._ticket
        self._driver.feed(make(ticket))
        return ticket

    def forget(self, ticket: int, event: Event) -> None:
        """Wait no more for it."""
        self._state_checks.tickets.pop(ticket, None)
        self._driver.feed(event)

    def promise(self, ticket: int, transaction: Transaction) -> None:
        """The ticket is about the offsets of this transaction."""
        self._offsets[ticket] = transaction

    def learn(self, level: int) -> None:
        """A connection opens, and the broker tells its features."""
        self._driver.feed(TransactionVersionLearnt(level))

    def begin_anew(self) -> None:
        """Go back to the bootstrap servers (KIP-1102): connections end, before or after the core
        hears of it."""
        if self._world.kernel.rng("begin anew").random() < 0.5:
            self._driver.drop()
        self._driver.feed(ClusterChanged())
        self._driver.drop()

    def turn_down(self, error: Kip848Error, transaction: Transaction | None) -> None:
        """The driver refuses the user something, before the core has seen it."""
        if transaction is not None:
            transaction.refused = transaction.refused or f"something was refused: {error}"
        self._driver.feed(Refused(error))

    def append(
        self, route: Route, key: bytes | None, value: bytes, transaction: Transaction | None
    ) -> bool:
        """Append a record; False when there is no room. Raises what the core raises."""
        now_ms = self._world.kernel.now_ms
        turns = route if key is None else None
        placed = self.core.append(now_ms, route.of(key), now_ms, key, value, (), turns)
        if placed is None:
            self._driver.feed(Appended())
            return False
        tp = placed.tp
        index = self._appended.get(tp, 0)
        self._appended[tp] = index + 1
        record = Record(value, self.name, tp, index, transaction)
        self._world.facts.records[value] = record
        if transaction is not None:
            transaction.records.append(record)
        rows = self._batches.setdefault(placed.batch, [])
        assert len(rows) == placed.row, "rows are counted"
        rows.append(record)
        self._state_checks.appended(placed.batch, now_ms)
        if placed.notify:
            self._driver.feed(Appended())
        return True

    def close(self) -> None:
        """The process is gone."""
        self._driver.close()
        self._world.requests += self._asking.requests

    # -- the core ----------------------------------------------------------------------------

    def _watch(self, event: Event, commands: Sequence[Command]) -> None:
        world, now_ms = self._world, self._world.kernel.now_ms
        self._steps += 1
        world.tell(self.name, "event", shown(event))
        for command in commands:
            world.tell(self.name, "command", shown(command))
            self._saw(command)
        self._asking.took(event)
        self._asking.asks(now_ms, commands)
        self._state_checks.look(now_ms, event, commands)
        if self._steps % _PROD_EVERY == 0:
            self._state_checks.prod(now_ms)

    def _heard(self, command: Command) -> None:
        match command:
            case Done(ticket):
                self._ended(ticket, None)
            case Failed(ticket, error):
                self._ended(ticket, error)
            case RoomMade():
                self._room()
            case BatchDone(number, place):
                base = place.base_offset
                records = self._batches.pop(number)
                self._world.writing.acknowledged(
                    (record, base + row if base >= 0 else -1) for row, record in enumerate(records)
                )
            case BatchFailed(number, error):
                self._failed(self._batches.pop(number), error)
            case BatchSplit(number, parts):
                self._world.probes.reached("a batch split")
                records = self._batches.pop(number)
                for part, count in parts:
                    self._batches[part], records = records[:count], records[count:]
                assert not records, "the parts of a batch have all of its records"
            case _:
                pass

    def _failed(self, records: list[Record], error: Kip848Error) -> None:
        doubt = isinstance(error, DeliveryTimedOut) and error.maybe_written
        if doubt:
            self._world.probes.reached("a batch in doubt")
        for record in records:
            self._world.writing.failed(record, maybe_written=doubt)

    def _ended(self, ticket: int, error: Kip848Error | None) -> None:
        transaction = self._offsets.pop(ticket, None)
        if transaction is not None:
            self._world.writing.offsets_told(transaction, error)
        self._told(ticket, error)

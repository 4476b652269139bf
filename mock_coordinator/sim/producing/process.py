"""A process with one producer and one user of it, who does one thing after the other. It may sleep:
then nothing happens in it until it wakes up, and then everything at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Final

from kip848_client._types import TopicPartition
from kip848_client.errors import DeliveryTimedOut, Kip848Error
from kip848_client.producing import (
    Appended,
    BatchDone,
    BatchFailed,
    BatchSplit,
    Command,
    Done,
    Event,
    Failed,
    ProduceSettings,
    RoomMade,
    Route,
    TransactionVersionLearnt,
)
from mock_coordinator.sim.node_requests import Wires
from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.producing.asking import Asking
from mock_coordinator.sim.producing.context import ProduceContext
from mock_coordinator.sim.producing.driver import ProducerDriver
from mock_coordinator.sim.producing.ledger import Record, Transaction
from mock_coordinator.sim.producing.shown import shown
from mock_coordinator.sim.producing.structure import Structure

__all__ = ["ROOM", "Life", "Process"]

Life = Generator[int, Kip848Error | None, None]
"""A user: gives a ticket, ``ROOM``, or a pause as a negative number of ms, and gets what became of
it."""
ROOM: Final = 0
"""To wait for room in the budget."""
_NOTHING: Final = -1
_PROD_EVERY: Final = 20
"""So many steps lie between two trials with events that must change nothing."""


class Process:
    """``ended`` is called when its user has nothing more to do."""

    def __init__(
        self,
        context: ProduceContext,
        name: str,
        settings: ProduceSettings,
        nodes: Sequence[int],
        ended: Callable[[Process], None],
    ) -> None:
        self.name: Final = name
        self._context = context
        self._ended = ended
        options = context.options
        self._driver = ProducerDriver(
            settings,
            Wires(
                kernel=context.kernel,
                network=context.network,
                client=name,
                codec=options.codec,
                versions=context.profile.api_versions,
                server_of=node_name,
                nodes=lambda: nodes,
                request_timeout_ms=options.request_timeout_ms,
            ),
            context.kernel.rng(name),
            heard=self._heard,
            enter=self.enter,
            watch=self._watch,
        )
        self.core = self._driver.core
        self.topic_ids = self._driver.ids
        self.settings = settings
        self.is_alive = True
        self._structure = Structure(self.core, settings)
        self._asking = Asking(settings)
        self._steps = 0
        self._asleep: list[Callable[[], None]] | None = None
        self._batches: dict[int, list[Record]] = {}
        self._appended: dict[TopicPartition, int] = {}
        self._ticket = 0
        self._told: dict[int, Kip848Error | None] = {}
        self._offsets: dict[int, Transaction] = {}
        self._life: Life | None = None
        self._waits_for = _NOTHING
        self._is_room_made = False

    # -- the process -------------------------------------------------------------------------

    def enter(self, action: Callable[[], None]) -> None:
        """Let something happen as soon as it runs."""
        if not self.is_alive:
            return
        if self._asleep is None:
            action()
        else:
            self._asleep.append(action)

    def sleep(self, for_ms: int) -> None:
        """Stand still."""
        if self._asleep is None:
            self._asleep = []
            self._context.kernel.after(for_ms, self.wake)

    def wake(self) -> None:
        """Go on."""
        held, self._asleep = self._asleep, None
        for action in held or ():
            self.enter(action)

    def die(self) -> None:
        """Without a word."""
        if self.is_alive:
            self.is_alive = False
            self._driver.close()
            self._context.requests += self._asking.requests
            self._context.tell(self.name, "gone")

    # -- the user ----------------------------------------------------------------------------

    def live(self, life: Life) -> None:
        """This is what its user does."""
        self._life = life
        self._resume(None)

    def _resume(self, value: Kip848Error | None) -> None:
        life = self._life
        while life is not None and self.is_alive:
            self._waits_for = _NOTHING
            try:
                wanted = life.send(value)
            except StopIteration:
                self._life = None
                self._ended(self)
                return
            self._waits_for = wanted
            if wanted < 0:
                pause = -wanted
                self._context.kernel.after(pause, lambda: self.enter(lambda: self._resume(None)))
                return
            if wanted == ROOM and self._is_room_made:
                value = None
            elif wanted in self._told:
                value = self._told.pop(wanted)
            else:
                return

    def ask(self, make: Callable[[int], Event], deadline_ms: int | None = None) -> int:
        """Post what this makes of a ticket; returns the ticket."""
        self._ticket += 1
        self._structure.asked(self._ticket, deadline_ms)
        ticket = self._ticket
        self._driver.feed(make(ticket))
        return ticket

    def forget(self, ticket: int, event: Event) -> None:
        """Wait no more for it."""
        self._structure.tickets.pop(ticket, None)
        self._driver.feed(event)

    def is_told(self, ticket: int) -> bool:
        """Whether its end is known."""
        return ticket in self._told

    def promise(self, ticket: int, transaction: Transaction) -> None:
        """The ticket is about the offsets of this transaction."""
        self._offsets[ticket] = transaction

    def learn(self, level: int) -> None:
        """A connection opens, and the broker tells its features."""
        self._driver.feed(TransactionVersionLearnt(level))

    def append(
        self, route: Route, key: bytes | None, value: bytes, transaction: Transaction | None
    ) -> bool:
        """Append a record; False when there is no room. Raises what the core raises."""
        now_ms = self._context.kernel.now_ms
        self._is_room_made = False
        turns = route if key is None else None
        placed = self.core.append(now_ms, route.of(key), now_ms, key, value, (), turns)
        if placed is None:
            self._driver.feed(Appended())
            return False
        tp = placed.tp
        index = self._appended.get(tp, 0)
        self._appended[tp] = index + 1
        record = Record(value, self.name, tp, index, transaction)
        self._context.ledger.records[value] = record
        if transaction is not None:
            transaction.records.append(record)
        rows = self._batches.setdefault(placed.batch, [])
        assert len(rows) == placed.row, "rows are counted"
        rows.append(record)
        self._structure.appended(placed.batch, now_ms)
        if placed.stir:
            self._driver.feed(Appended())
        return True

    # -- the core ----------------------------------------------------------------------------

    def _watch(self, event: Event, commands: Sequence[Command]) -> None:
        context, now_ms = self._context, self._context.kernel.now_ms
        self._steps += 1
        context.tell(self.name, "event", shown(event))
        for command in commands:
            context.tell(self.name, "command", shown(command))
        self._asking.took(event)
        self._asking.asks(now_ms, commands)
        self._structure.look(now_ms, event, commands)
        if self._steps % _PROD_EVERY == 0:
            self._structure.prod(now_ms)

    def _heard(self, command: Command) -> None:
        match command:
            case Done(ticket):
                self._tell(ticket, None)
            case Failed(ticket, error):
                self._tell(ticket, error)
            case RoomMade():
                self._is_room_made = True
                if self._life is not None and self._waits_for == ROOM:
                    self._context.kernel.after(0, lambda: self.enter(self._enter_room))
            case BatchDone(number, place):
                base = place.base_offset
                records = self._batches.pop(number)
                self._context.writing.acknowledged(
                    (record, base + row if base >= 0 else -1) for row, record in enumerate(records)
                )
            case BatchFailed(number, error):
                self._failed(self._batches.pop(number), error)
            case BatchSplit(number, parts):
                self._context.probes.reached("a batch split")
                records = self._batches.pop(number)
                for part, count in parts:
                    self._batches[part], records = records[:count], records[count:]
                assert not records, "the parts of a batch have all of its records"
            case _:
                pass

    def _enter_room(self) -> None:
        if self._waits_for == ROOM:
            self._resume(None)

    def _failed(self, records: list[Record], error: Kip848Error) -> None:
        doubt = isinstance(error, DeliveryTimedOut) and error.maybe_written
        if doubt:
            self._context.probes.reached("a batch in doubt")
        for record in records:
            self._context.writing.failed(record, maybe_written=doubt)

    def _tell(self, ticket: int, error: Kip848Error | None) -> None:
        transaction = self._offsets.pop(ticket, None)
        if transaction is not None:
            self._context.writing.offsets_told(transaction, error)
        self._told[ticket] = error
        if self._life is not None and self._waits_for == ticket:
            self._context.kernel.after(0, lambda: self.enter(lambda: self._go_on(ticket)))

    def _go_on(self, ticket: int) -> None:
        if self._waits_for == ticket and ticket in self._told:
            self._resume(self._told.pop(ticket))

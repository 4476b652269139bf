"""A process with one producer and one user of it, who does one thing after the other. It may sleep:
then nothing happens in it until it wakes up, and then everything at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Final

from kip848_client.core.produce import Event, ProduceSettings, Route
from kip848_client.errors import Kip848Error
from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.process_life import ProcessLife
from mock_coordinator.sim.producing.context import ProduceContext
from mock_coordinator.sim.producing.facts import Transaction
from mock_coordinator.sim.producing.side import ProducerSide

__all__ = ["ROOM", "Life", "Process"]

Life = Generator[int, Kip848Error | None, None]
"""A user: gives a ticket, ``ROOM``, or a pause as a negative number of ms, and gets what became of
it."""
ROOM: Final = 0
"""To wait for room in the budget."""
_NOTHING: Final = -1


class Process(ProcessLife):
    """``ended`` is called when its user has nothing more to do."""

    def __init__(
        self,
        context: ProduceContext,
        name: str,
        settings: ProduceSettings,
        nodes: Sequence[int],
        ended: Callable[[Process], None],
    ) -> None:
        super().__init__(context.kernel)
        self.name: Final = name
        self._context = context
        self._ended = ended
        wires = context.wires(name, node_name, lambda: nodes)
        self.side: Final = ProducerSide(
            context, settings, wires, enter=self.enter, told=self._tell, room=self._has_room
        )
        self.core: Final = self.side.core
        self._told: dict[int, Kip848Error | None] = {}
        self._life: Life | None = None
        self._waits_for = _NOTHING
        self._is_room_made = False

    # -- the process -------------------------------------------------------------------------

    def die(self) -> None:
        """Without a word."""
        if self.is_alive:
            self.is_alive = False
            self.side.close()
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
        return self.side.ask(make, deadline_ms)

    def forget(self, ticket: int, event: Event) -> None:
        """Wait no more for it."""
        self.side.forget(ticket, event)

    def is_told(self, ticket: int) -> bool:
        """Whether its end is known."""
        return ticket in self._told

    def append(
        self, route: Route, key: bytes | None, value: bytes, transaction: Transaction | None
    ) -> bool:
        """Append a record; False when there is no room. Raises what the core raises."""
        self._is_room_made = False
        return self.side.append(route, key, value, transaction)

    # -- what it learns ----------------------------------------------------------------------

    def _has_room(self) -> None:
        self._is_room_made = True
        if self._life is not None and self._waits_for == ROOM:
            self._context.kernel.after(0, lambda: self.enter(self._enter_room))

    def _enter_room(self) -> None:
        if self._waits_for == ROOM:
            self._resume(None)

    def _tell(self, ticket: int, error: Kip848Error | None) -> None:
        self._told[ticket] = error
        if self._life is not None and self._waits_for == ticket:
            self._context.kernel.after(0, lambda: self.enter(lambda: self._go_on(ticket)))

    def _go_on(self, ticket: int) -> None:
        if self._waits_for == ticket and ticket in self._told:
            self._resume(self._told.pop(ticket))

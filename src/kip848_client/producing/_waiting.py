"""Who waits for something that takes a while, and until when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kip848_client.errors import Kip848Error
from kip848_client.producing._commands import Command, Done, Failed

__all__ = ["Waiting"]


class _Asked(Protocol):
    """A request of the application that has a deadline."""

    @property
    def ticket(self) -> int: ...
    @property
    def deadline_ms(self) -> int: ...


class Waiting:
    """Tickets that wait for the same thing."""

    def __init__(self, emit: Callable[[Command], None]) -> None:
        self._emit = emit
        self._deadlines: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._deadlines)

    @property
    def oldest(self) -> int | None:
        """The ticket that has waited longest."""
        return next(iter(self._deadlines), None)

    def deadlines_ms(self) -> list[int]:
        """When each waits no longer."""
        return list(self._deadlines.values())

    def add(self, event: _Asked) -> None:
        """One more."""
        self._deadlines[event.ticket] = event.deadline_ms

    def forget(self, ticket: int) -> None:
        """It waits no more."""
        self._deadlines.pop(ticket, None)

    def first_done(self) -> None:
        """What the oldest has waited for is done."""
        ticket = next(iter(self._deadlines))
        del self._deadlines[ticket]
        self._emit(Done(ticket))

    def done(self) -> set[int]:
        """It is done for all; returns their tickets."""
        tickets = set(self._deadlines)
        for ticket in self._deadlines:
            self._emit(Done(ticket))
        self._deadlines.clear()
        return tickets

    def fail(self, error: Kip848Error) -> None:
        """It will not be."""
        for ticket in self._deadlines:
            self._emit(Failed(ticket, error))
        self._deadlines.clear()

    def overdue(self, now_ms: int, error: Callable[[], Kip848Error]) -> None:
        """Those whose time is over get this error."""
        for ticket, deadline_ms in tuple(self._deadlines.items()):
            if deadline_ms <= now_ms:
                del self._deadlines[ticket]
                self._emit(Failed(ticket, error()))

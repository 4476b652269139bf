"""Pending calls for the same result, with their deadlines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kip848_client.core.produce._commands import Command, Done, Failed
from kip848_client.errors import Kip848Error

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
        self._tickets: dict[int, tuple[int, int]] = {}
        """The deadline of each, and since when it has waited."""

    def __bool__(self) -> bool:
        return bool(self._tickets)

    @property
    def since_ms(self) -> int | None:
        """Since when the oldest ticket has waited."""
        return next((since_ms for _, since_ms in self._tickets.values()), None)

    def deadlines_ms(self) -> list[int]:
        """The deadline of each ticket."""
        return [deadline_ms for deadline_ms, _ in self._tickets.values()]

    def add(self, now_ms: int, event: _Asked) -> None:
        """Add a ticket."""
        self._tickets[event.ticket] = event.deadline_ms, now_ms

    def forget(self, ticket: int) -> None:
        """Forget a ticket that no longer waits."""
        self._tickets.pop(ticket, None)

    def first_done(self) -> None:
        """Complete the oldest ticket."""
        ticket = next(iter(self._tickets))
        del self._tickets[ticket]
        self._emit(Done(ticket))

    def done(self) -> set[int]:
        """Complete and return all tickets."""
        tickets = set(self._tickets)
        for ticket in self._tickets:
            self._emit(Done(ticket))
        self._tickets.clear()
        return tickets

    def fail(self, error: Kip848Error) -> None:
        """Fail all tickets."""
        for ticket in self._tickets:
            self._emit(Failed(ticket, error))
        self._tickets.clear()

    def overdue(self, now_ms: int, error: Callable[[], Kip848Error]) -> None:
        """Fail the tickets that have passed their deadline with this error."""
        for ticket, (deadline_ms, _) in tuple(self._tickets.items()):
            if deadline_ms <= now_ms:
                del self._tickets[ticket]
                self._emit(Failed(ticket, error()))

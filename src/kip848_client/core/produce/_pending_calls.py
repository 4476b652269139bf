"""Pending calls of the application for transactions: start, begin, commit and abort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.produce._commands import Command
from kip848_client.core.produce._waiting import Waiting
from kip848_client.errors import Kip848Error, LocalProtocolError

__all__ = ["PendingCalls"]


class PendingCalls:
    """All tickets of the application, by what they wait for."""

    def __init__(self, emit: Callable[[Command], None]) -> None:
        self.starts: Final = Waiting(emit)
        self.begins: Final = Waiting(emit)
        self.commits: Final = Waiting(emit)
        self.aborts: Final = Waiting(emit)
        self._all: Final = (self.starts, self.begins, self.commits, self.aborts)

    def __bool__(self) -> bool:
        return any(self._all)

    def due_ms(self) -> int | None:
        """The earliest deadline."""
        return min((each for one in self._all for each in one.deadlines_ms()), default=None)

    @property
    def since_ms(self) -> int | None:
        """Since when the oldest ticket has waited."""
        return min((each.since_ms for each in self._all if each.since_ms is not None), default=None)

    def forget(self, ticket: int) -> None:
        """Forget a ticket that no longer waits."""
        for each in self._all:
            each.forget(ticket)

    def close(self) -> None:
        """No further transaction begins."""
        error = LocalProtocolError("the producer is being closed; make a new one")
        self.starts.fail(error)
        self.begins.fail(error)

    def fail(self, error: Callable[[], Kip848Error]) -> None:
        """Fail all tickets."""
        for each in self._all:
            each.fail(error())

    def overdue(
        self,
        now_ms: int,
        *,
        commit: Callable[[], Kip848Error],
        abort: Callable[[], Kip848Error],
        init: Callable[[], Kip848Error],
    ) -> None:
        """Fail the tickets that have passed their deadline with these errors."""
        self.commits.overdue(now_ms, commit)
        self.aborts.overdue(now_ms, abort)
        self.starts.overdue(now_ms, init)
        self.begins.overdue(now_ms, init)

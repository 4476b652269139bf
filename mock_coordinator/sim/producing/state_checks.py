"""Checkers of the core itself: what it holds, whom it has told, what stale answers change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from kip848_client.core.produce import (
    BatchDone,
    BatchFailed,
    BatchSplit,
    CloseRequested,
    Command,
    CoordinatorFound,
    CoordinatorNotFound,
    Done,
    Event,
    Failed,
    ProduceAnswered,
    ProduceLost,
    ProducerCore,
    ProducerId,
    ProducerIdAnswered,
    ProduceSettings,
    TimerFired,
    TxnAnswered,
    TxnLost,
)
from mock_coordinator.sim.invariants import Violation

__all__ = ["Awaited", "Budget", "Inert", "Released", "StateChecks", "ToldOnce"]

_HEADER_BYTES: Final = 61
_NEVER: Final = 2_000_000_000
"""A number that no command has had."""


class Budget:
    """Records hold no more memory than they may."""


class Released:
    """When every end was reported, nothing is held."""


class ToldOnce:
    """Of each ticket and each batch the end is reported once, and of nothing else."""


class Awaited:
    """Every caller gets an answer within the given time."""


class Inert:
    """An answer to no open request changes nothing."""


class StateChecks:
    """Of one core."""

    def __init__(self, core: ProducerCore, settings: ProduceSettings) -> None:
        self._core = core
        self._settings = settings
        self.tickets: dict[int, int | None] = {}
        """By when the end of each must be reported."""
        self.batches: dict[int, int] = {}
        """The same of batches."""
        self._parts = 0
        """Of batches that a broker found too large: each has a header of its own."""
        self._closing: int | None = None
        self._is_closed = False

    def asked(self, ticket: int, deadline_ms: int | None) -> None:
        """The user waits."""
        self.tickets[ticket] = deadline_ms

    def appended(self, batch: int, now_ms: int) -> None:
        """A record is in this batch."""
        self.batches.setdefault(batch, now_ms + self._settings.delivery_timeout_ms)

    def look(self, now_ms: int, event: Event, commands: Sequence[Command]) -> None:
        """After a step."""
        if isinstance(event, CloseRequested) and self._closing is None:
            self._closing = event.ticket
        for command in commands:
            match command:
                case Done() | Failed():
                    if command.ticket not in self.tickets:
                        raise Violation(ToldOnce, f"no ticket is open for {command}")
                    del self.tickets[command.ticket]
                    self._is_closed = self._is_closed or command.ticket == self._closing
                case BatchDone() | BatchFailed():
                    self._ended(command.batch)
                case BatchSplit():
                    deadline_ms = self._ended(command.batch)
                    self.batches |= {number: deadline_ms for number, _ in command.parts}
                    self._parts += len(command.parts)
                case _:
                    pass
        if isinstance(event, TimerFired):
            self._check_time(now_ms)
        self._check_memory()

    def _ended(self, number: int) -> int:
        if number not in self.batches:
            raise Violation(ToldOnce, f"batch {number} was reported before, or is not known")
        return self.batches.pop(number)

    def _check_time(self, now_ms: int) -> None:
        late = [each for each, by in self.tickets.items() if by is not None and by < now_ms]
        if late:
            raise Violation(Awaited, f"tickets {late} are overdue")
        over = [each for each, by in self.batches.items() if by < now_ms]
        if over:
            raise Violation(Awaited, f"batches {over} are overdue")

    def _check_memory(self) -> None:
        snapshot = self._core.snapshot()
        held = snapshot.held_bytes
        if held > self._settings.buffer_bytes + _HEADER_BYTES * self._parts:
            raise Violation(Budget, f"{held} bytes are held")
        if not self.batches and (held or snapshot.unreported):
            raise Violation(Released, f"{held} bytes and {snapshot.unreported} batches are kept")

    # -- what is stale -----------------------------------------------------------------------

    def prod(self, now_ms: int) -> None:
        """Give the core answers to requests that are not open."""
        before = self._without_count()
        for event in _stale():
            count = self._core.snapshot().stale_answers
            commands = self._core.step(now_ms, event)
            if commands or self._without_count() != before:
                raise Violation(Inert, f"{event} leads to {commands}")
            if self._core.snapshot().stale_answers != count + (not self._is_closed):
                raise Violation(Inert, f"{event} is not counted")

    def _without_count(self) -> object:
        return replace(self._core.snapshot(), stale_answers=0)


def _stale() -> Iterator[Event]:
    yield ProduceAnswered(_NEVER, {})
    yield ProduceAnswered(_NEVER, {})
    yield ProduceLost(_NEVER, "late", maybe_sent=True)
    yield ProducerIdAnswered(_NEVER, 0, ProducerId(77, 7))
    yield TxnAnswered(_NEVER, 0, None, ProducerId(77, 8))
    yield TxnLost(_NEVER, "late", maybe_sent=True)
    yield CoordinatorFound(_NEVER, 1)
    yield CoordinatorNotFound(_NEVER, 0, "late")

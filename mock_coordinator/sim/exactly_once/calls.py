"""One call of the user's function after the other: the records of a ``Process``, and what is sent
of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kip848_client.core.types import TopicPartition
from kip848_client.processor.core import (
    Cut,
    Event,
    Failed,
    FunctionFailed,
    OutputRefused,
    Process,
    Processed,
    SendDeadLetters,
)
from mock_coordinator.sim.exactly_once.brokers import DEAD, OUT
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.exactly_once.values import is_poison, outputs_of

__all__ = ["Calls", "FunctionRaised", "Records", "Sent"]

Records = Sequence[tuple[int, bytes]]


class FunctionRaised(Exception):
    """What the user's function raises."""


class Sender(Protocol):
    """Who sends records of the open transaction."""

    def send(self, topic: str, source: TopicPartition, values: Sequence[bytes], sent: Sent) -> None:
        """Send them, one after the other."""
        ...


Sent = Callable[["Exception | None"], None]
"""Called when all are sent, or with what one was refused with."""


class Calls:
    """Of one ``Process`` or ``SendDeadLetters``. ``after`` waits, ``feed`` gives the processor's
    core its answer."""

    def __init__(
        self,
        context: ProcessContext,
        command: Process | SendDeadLetters,
        records: Records,
        sender: Sender,
        *,
        after: Callable[[int, Callable[[], None]], None],
        feed: Callable[[Event], None],
    ) -> None:
        self._context = context
        self.command = command
        self._records = records
        self._sender = sender
        self._after = after
        self._feed = feed
        self._rng = context.kernel.rng("function")
        self._row = 0
        """How many are whole."""
        self.is_cut = False
        self.is_discarded = False

    @property
    def has_some(self) -> bool:
        """Whether a record of it is whole."""
        return self._row > 0

    def cut(self, command: Cut) -> None:
        """End after the record that the function has."""
        if command.number == self.command.number:
            self.is_cut = True
            self.is_discarded = self.is_discarded or command.discard

    def begin(self) -> None:
        """The first call."""
        if isinstance(self.command, SendDeadLetters):
            values = [value for _, value in self._records]
            self._context.probes.reached("a dead letter")
            self._sender.send(DEAD, self.command.partition, values, self._put_aside)
        else:
            self._next()

    def _put_aside(self, error: Exception | None) -> None:
        command = self.command
        if error is not None:
            self._feed(Failed(command.number, error))
            return
        self._row = len(self._records)
        self._feed(Processed(command.number, command.until, self._row))

    def _next(self) -> None:
        if self._row == len(self._records) or (self.is_cut and self._row):
            self._end()
            return
        longest_ms = 10 if self._context.healed else self._context.options.work_ms_max
        self._after(self._rng.randint(0, longest_ms), self._call)

    def _end(self) -> None:
        command = self.command
        if self._row == len(self._records):
            until = command.until
        else:
            self._context.probes.reached("cut short")
            until = self._records[self._row - 1][0] + 1 if self._row else command.first
        self._feed(Processed(command.number, until, self._row))

    def _call(self) -> None:
        """The function returns, or raises."""
        if self.is_discarded:
            self._end()
            return
        batch = self._context.options.batch
        records = self._records if batch else self._records[self._row : self._row + 1]
        raises = self._context.happens("raises", self._context.options.raises)
        if raises or any(is_poison(value) for _, value in records):
            error = FunctionRaised(f"cannot process {records[0][1]!r}")
            first, until = self._span(records)
            self._feed(FunctionFailed(self.command.number, first, until, self._row, error))
            return
        outputs = [output for _, value in records for output in outputs_of(value)]
        tp = self.command.partition
        self._sender.send(OUT, tp, outputs, lambda error: self._sent(records, error))

    def _span(self, records: Records) -> tuple[int, int]:
        return records[0][0], records[-1][0] + 1

    def _sent(self, records: Records, error: Exception | None) -> None:
        if error is not None:
            self._context.probes.reached("an output refused")
            self._feed(OutputRefused(self.command.number, *self._span(records), error))
            return
        self._row += len(records)
        self._next()

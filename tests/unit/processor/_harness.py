"""A processor's core in virtual time, and what it asks for. The test answers."""

from __future__ import annotations

from typing import TypeVar

from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import BrokerError, CommitFailed, TransactionAborted, broker_error
from kip848_client.processor.core import _commands as do
from kip848_client.processor.core import _events as ev
from kip848_client.processor.core._core import ProcessorCore
from kip848_client.processor.core._model import Portion, ProcessorSettings, State

__all__ = ["P0", "P1", "Harness", "aborted_by", "portion", "refused"]

P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)
_Kind = TypeVar("_Kind", bound=do.Command)


def portion(tp: TopicPartition, first: int, records: int) -> Portion:
    """Records without gaps."""
    return Portion(tp, first, first + records, records)


def refused(code: ErrorCode) -> BrokerError:
    """What a broker has refused."""
    return broker_error(code, error_name(code))


def aborted_by(code: ErrorCode) -> TransactionAborted:
    """A transaction that a broker's answer to its offsets has harmed."""
    cause = CommitFailed("not committed", offsets={}, cause=refused(code))
    return TransactionAborted("cannot be committed", cause=cause)


class Harness:
    """The core, the time, and what it asked for in the last step."""

    def __init__(self, settings: ProcessorSettings | None = None, *, run: bool = True) -> None:
        self.core = ProcessorCore(settings or ProcessorSettings(), lambda ms: ms)
        self.now = 1_000
        self.last: tuple[do.Command, ...] = ()
        self.all: list[do.Command] = []
        if run:
            self.post(ev.RunRequested())

    def post(self, event: ev.Event) -> tuple[do.Command, ...]:
        """One step."""
        self.last = self.core.step(self.now, event)
        self.all += self.last
        return self.last

    def pass_time(self, ms: int) -> tuple[do.Command, ...]:
        """Time goes by, and the timer fires if it is due."""
        due = self.core.deadline_ms
        self.now += ms
        if due is not None and due <= self.now:
            return self.post(ev.TimerFired())
        self.last = ()
        return ()

    def asked(self, kind: type[_Kind]) -> _Kind:
        """The one command of this kind in the last step."""
        (found,) = [each for each in self.last if isinstance(each, kind)]
        return found

    def newest(self, kind: type[_Kind]) -> _Kind:
        """The newest command of this kind."""
        return next(each for each in reversed(self.all) if isinstance(each, kind))

    def all_of(self, kind: type[_Kind]) -> list[_Kind]:
        """All commands of this kind."""
        return [each for each in self.all if isinstance(each, kind)]

    # -- answers to the newest command of a kind -------------------------------------------------

    def polled(self, *portions: Portion) -> tuple[do.Command, ...]:
        """These are handed out."""
        return self.post(ev.Polled(self.newest(do.Poll).number, portions))

    def done(self, kind: type[do.Begin | do.SendOffsets | do.Commit | do.Abort]) -> None:
        """The producer has done it."""
        self.post(ev.Done(self.newest(kind).number))

    def failed(
        self,
        kind: type[do.Begin | do.SendOffsets | do.Commit | do.Abort | do.SendDeadLetters],
        error: Exception,
    ) -> None:
        """The producer has raised."""
        self.post(ev.Failed(self.newest(kind).number, error))

    def processed(self, records: int | None = None) -> None:
        """The function is through with that many records of what it got, or all; no gaps."""
        command = self.newest(do.Process)
        count = command.until - command.first if records is None else records
        self.post(ev.Processed(command.number, command.first + count, count))

    def letters_sent(self) -> None:
        """Dead letters are sent."""
        command = self.newest(do.SendDeadLetters)
        self.post(ev.Processed(command.number, command.until, command.until - command.first))

    def function_failed(self, offset: int, error: Exception, until: int | None = None) -> None:
        """The function has raised for the record at ``offset``."""
        command = self.newest(do.Process)
        last = offset + 1 if until is None else until
        before = offset - command.first
        self.post(ev.FunctionFailed(command.number, offset, last, before, error))

    def output_refused(self, offset: int, error: Exception) -> None:
        """An output of the record at ``offset`` was refused."""
        command = self.newest(do.Process)
        self.post(ev.OutputRefused(command.number, offset, offset + 1, error))

    # -- shortcuts -------------------------------------------------------------------------------

    def open(self, *portions: Portion) -> None:
        """Poll, begin: the function gets the first portion."""
        self.polled(*portions)
        self.done(do.Begin)
        assert self.core.state is State.OPEN

    def close_by_time(self) -> None:
        """The transaction has been open for long enough."""
        self.pass_time(100)

    def commit(self) -> None:
        """Offsets are taken, the commit is done."""
        self.done(do.SendOffsets)
        self.done(do.Commit)
        assert self.core.state is State.IDLE

    @property
    def ended(self) -> do.Ended:
        """How it ended."""
        (found,) = self.all_of(do.Ended)
        return found
